"""Which of several return samples dominates, and does the sample support it?

    from surefoot.comparison import compare, compare_file

    print(compare({"careful": careful, "bold": bold}))
    compare_file("returns.csv", out="comparison")

raw_tables, numerals, dates, row_index, prices, returns: columns of returns, read from files and
tables. summaries: one column on its own. memory, resampling, process, bootstrap, bands: a pair of
them. verdicts: `compare`, pair by pair. result: `Comparison`. words, markup, saving: it as text, as
HTML and a table, and on disk.
"""

from surefoot.comparison.bands import DifferenceBand
from surefoot.comparison.bootstrap import DominanceTest, PairTests, dominance_test, pair_tests
from surefoot.comparison.result import Comparison, Verdict
from surefoot.comparison.returns import ReturnTable, read_returns, write_returns
from surefoot.comparison.saving import check_directory
from surefoot.comparison.summaries import AnnualMeasures, Summary
from surefoot.comparison.verdicts import compare, compare_file

__all__ = [
    "AnnualMeasures",
    "Comparison",
    "DifferenceBand",
    "DominanceTest",
    "PairTests",
    "ReturnTable",
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
