"""Hold what a page of a report says of two cells against what the collector says of them."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

from collector.analysis import Analysis
from collector.ratio_verdicts import MACHINES_DIFFER, NO_DIFFERENCE, count_tested
from collector.ratio_words import quote_longer
from collector.results.intervals import read_estimate
from collector.statistics import invert_estimate

COMPARE = """([one, other]) => {
  const find = ([id, environment]) => CELLS.ids.findIndex(
    (own, row) => own === id && CELLS.get("environment_id", row) === environment);
  const found = CELLS.compare(find(one), find(other));
  return found.reason ? { reason: found.reason } : {
    center: found.ratio.center, interval: found.interval, pValue: found.pValue, verdict: found.verdict };
}"""


def list_pairs(analysis: Analysis) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Yield the pairs of the tables: whether a table gives times or speedups, how many ratios it tested, the pair."""
    for name in ("frameworks", "devices", "modes", "precisions"):
        pairs = analysis.comparisons[name]
        for pair in pairs.to_dict("records"):
            found = {str(key): value for key, value in pair.items()}
            yield ("time" if name == "frameworks" else "speed"), count_tested(pairs), found


def check_pair(page: Any, measure: str, num_tested: int, pair: dict[str, Any]) -> str:
    """Hold the page's comparison of a pair against the collector's; return what kind of pair it is."""
    sides = [[pair[f"cell_id_{side}"], pair[f"environment_id_{side}"]] for side in ("subject", "reference")]
    sides = [[cell, None if pd.isna(environment) else environment] for cell, environment in sides]
    found = page.evaluate(COMPARE, sides)
    if pd.isna(pair["ratio"]):
        # The page names both free fields of a side, the table only the compared one.
        assert found["reason"].split(" of ")[0] == pair["verdict"].split(" of ")[0]
        return "no ratio"
    center, interval = found["center"], found["interval"]
    if measure == "speed":
        center, interval = 1 / center, [1 / end for end in reversed(interval)] if interval else None
    assert center == pytest.approx(pair["ratio"], rel=1e-6)
    if interval is None:
        assert pd.isna(pair["ratio_low"])
        return "no interval"
    size = 1 if pd.isna(pair["p_value"]) else num_tested
    assert interval == pytest.approx(read_estimate(pair, center="ratio").find_joint_interval(size), rel=1e-5)
    if pair["verdict"] == MACHINES_DIFFER:
        assert (found["pValue"], found["verdict"]) == (None, MACHINES_DIFFER)
        return "no verdict"
    assert found["pValue"] == pytest.approx(pair["p_value"], rel=1e-3, abs=1e-12)
    assert found["verdict"].partition(" takes ")[2] == describe_as_tabled(pair, num_tested)
    return "ratio"


def describe_as_tabled(pair: dict[str, Any], num_tested: int) -> str:
    """Return by how much the slower side takes longer as its table has it; nothing where that shows no difference."""
    ratio = read_estimate(pair, center="ratio")
    slower = ratio if ratio.center >= 1 else invert_estimate(ratio)
    return "" if pair["verdict"] == NO_DIFFERENCE else quote_longer(slower, num_tested)
