"""Which of several return samples dominates, and does the sample support it?

    from surefoot.comparison import compare, compare_file

    print(compare({"careful": careful, "bold": bold}))
    compare_file("returns.csv", out="comparison")

returns: columns of returns, read from files and tables. resampling, process, bootstrap: the tests
of a pair. verdicts: `compare`, pair by pair. result: `Comparison` and its run directory. words:
it as text.
"""

from surefoot.comparison.bootstrap import DominanceTest, PairTests, dominance_test, pair_tests
from surefoot.comparison.result import Comparison, Summary, Verdict, check_directory
from surefoot.comparison.returns import read_returns, write_returns
from surefoot.comparison.verdicts import compare, compare_file

__all__ = [
    "Comparison",
    "DominanceTest",
    "PairTests",
    "Summary",
    "Verdict",
    "check_directory",
    "compare",
    "compare_file",
    "dominance_test",
    "pair_tests",
    "read_returns",
    "write_returns",
]
