"""Which of several return samples dominates, and does the sample support it?

from surefoot.comparing import compare, compare_file

print(compare({"careful": careful, "bold": bold}))
compare_file("returns.csv").save("comparison")
"""

from surefoot.comparing.comparison import compare, compare_file
from surefoot.comparing.directory import save_comparison, write_returns
from surefoot.comparing.inference import DominanceTest, PairTests, dominance_test, pair_tests
from surefoot.comparing.reading import read_returns
from surefoot.comparing.result import Comparison, Summary, Verdict

__all__ = [
    "Comparison",
    "DominanceTest",
    "PairTests",
    "Summary",
    "Verdict",
    "compare",
    "compare_file",
    "dominance_test",
    "pair_tests",
    "read_returns",
    "save_comparison",
    "write_returns",
]
