"""Which of several return samples dominates, and does the sample support it?

from surefoot.compare import compare, compare_file

print(compare({"careful": careful, "bold": bold}))
compare_file("returns.csv").save("comparison")
"""

from surefoot.compare.comparison import compare, compare_file
from surefoot.compare.inference import DominanceTest, PairTests, dominance_test, pair_tests
from surefoot.compare.reading import read_returns
from surefoot.compare.result import Comparison, Summary, Verdict

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
]
