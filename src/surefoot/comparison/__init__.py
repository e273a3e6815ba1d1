"""Which of several return samples dominates, and does the sample support it?

    from surefoot.comparison import compare, compare_file

    print(compare({"careful": careful, "bold": bold}))
    compare_file("returns.csv", out="comparison")

raw_tables, numerals, dates, row_index, prices, returns: columns of returns, read from files and
tables. summaries: one column on its own. settings, memory, resampling, process, tally, bootstrap:
the tests of a pair; bands, further, almost: more about it. pairs, stepdown, more: all pairs.
verdicts: `compare`. result: `Comparison`. words, further_words, markup, saving: it as text, as HTML
and a table, and on disk.
"""

from surefoot.comparison.almost import (
    AlmostDominance,
    RelativeRank,
    almost_dominance,
    relative_ranking,
)
from surefoot.comparison.bands import DifferenceBand
from surefoot.comparison.bootstrap import DominanceTest, PairTests, dominance_test, pair_tests
from surefoot.comparison.further import FurtherTest, further_tests
from surefoot.comparison.more import Further, FurtherPair
from surefoot.comparison.result import Comparison, Verdict
from surefoot.comparison.returns import ReturnTable, read_returns, write_returns
from surefoot.comparison.saving import check_directory
from surefoot.comparison.stepdown import Maximality, maximality
from surefoot.comparison.summaries import AnnualMeasures, Summary
from surefoot.comparison.verdicts import compare, compare_file

__all__ = [
    "AlmostDominance",
    "AnnualMeasures",
    "Comparison",
    "DifferenceBand",
    "DominanceTest",
    "Further",
    "FurtherPair",
    "FurtherTest",
    "Maximality",
    "PairTests",
    "RelativeRank",
    "ReturnTable",
    "Summary",
    "Verdict",
    "almost_dominance",
    "check_directory",
    "compare",
    "compare_file",
    "dominance_test",
    "further_tests",
    "maximality",
    "pair_tests",
    "read_returns",
    "relative_ranking",
    "write_returns",
]
