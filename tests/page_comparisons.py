"""Hold what a page of a report says of two cells against what the collector says of them."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

from collector.analysis import Analysis
from collector.ratio_verdicts import MACHINES_DIFFER
from collector.ratio_words import quote_longer
from collector.statistics import Estimate

COMPARE = """([one, other]) => {
  const find = ([id, environment]) => CELLS.ids.findIndex(
    (own, row) => own === id && CELLS.get("environment_id", row) === environment);
  const found = CELLS.compare(find(one), find(other));
  return found.reason ? { reason: found.reason } : {
    center: found.ratio.center, interval: found.interval, pValue: found.pValue, verdict: found.verdict };
}"""


def list_pairs(analysis: Analysis) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the pairs of the tables, with whether a table gives times or speedups."""
    for name in ("frameworks", "devices", "modes", "precisions"):
        for pair in analysis.comparisons[name].to_dict("records"):
            yield ("time" if name == "frameworks" else "speed"), {str(key): value for key, value in pair.items()}


def check_pair(page: Any, measure: str, pair: dict[str, Any]) -> str:
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
    assert interval == pytest.approx([pair["ratio_low"], pair["ratio_high"]], rel=1e-5)
    if pair["verdict"] == MACHINES_DIFFER:
        assert (found["pValue"], found["verdict"]) == (None, MACHINES_DIFFER)
        return "no verdict"
    assert found["pValue"] == pytest.approx(pair["p_value"], rel=1e-3, abs=1e-12)
    assert found["verdict"].partition(" takes ")[2] == describe_alone(pair)
    return "ratio"


def describe_alone(pair: dict[str, Any]) -> str:
    """Return what the interval of a ratio alone says of the side that takes longer; nothing where it holds 1."""
    ratio = Estimate(
        center=max(pair["ratio"], 1 / pair["ratio"]),
        log_standard_error=pair["log_standard_error"],
        degrees_of_freedom=pair["degrees_of_freedom"],
    )
    return quote_longer(ratio, 1) if ratio.excludes_one(1) else ""
