"""Which of several return samples dominates, and does the sample support it?

    from surefoot.comparison import compare, compare_file

    print(compare({"careful": careful, "bold": bold}))
    compare_file("returns.csv", out="comparison")

raw_tables, numerals, dates, prices, returns: columns of returns, read from files and tables.
memory: dependence over time. resampling, process, tally, bootstrap: the tests of a pair; pairs: of
all. stepdown: all columns at once. bands, further, almost: more about a pair. verdicts: `compare`.
summaries, result: `Comparison` and its run directory. words, markup: it as text.
"""

from surefoot.comparison.almost import (
    AlmostDominance,
    RelativeRank,
    almost_dominance,
    relative_ranking,
)
from surefoot.comparison.bands import Band, confidence_band
from surefoot.comparison.bootstrap import DominanceTest, PairTests, dominance_test, pair_tests
from surefoot.comparison.further import FurtherTest, further_tests
from surefoot.comparison.result import Comparison, Verdict, check_directory
from surefoot.comparison.returns import ReturnTable, read_returns, write_returns
from surefoot.comparison.stepdown import Maximality, maximality
from surefoot.comparison.summaries import AnnualMeasures, Summary
from surefoot.comparison.verdicts import compare, compare_file

__all__ = [
    "AlmostDominance",
    "AnnualMeasures",
    "Band",
    "Comparison",
    "DominanceTest",
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
    "confidence_band",
    "dominance_test",
    "further_tests",
    "maximality",
    "pair_tests",
    "read_returns",
    "relative_ranking",
    "write_returns",
]
