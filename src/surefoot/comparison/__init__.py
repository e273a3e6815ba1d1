"""Which of several return samples dominates, and does the sample support it?

from surefoot.comparison import compare, compare_file

print(compare({"careful": careful, "bold": bold}))
compare_file("returns.csv").save("comparison")
"""

from surefoot.comparison.comparison import compare, compare_file
from surefoot.comparison.directory import save_comparison, write_returns
from surefoot.comparison.inference import DominanceTest, PairTests, dominance_test, pair_tests
from surefoot.comparison.reading import read_returns
from surefoot.comparison.result import Comparison, Summary, Verdict

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
