"""The page computes intervals and verdicts as the collector does, and states a difference by the same rule."""

from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser

from browser_visits import visit
from collector.statistics import Estimate, adjust_p_value

JUDGE = """([estimates, size]) => estimates.map((estimate) => {
  const interval = findInterval(estimate, size);
  return { interval, adjusted: adjustPValue(findPValue(estimate), size) };
})"""
HEAT_MAP = """() => CELLS.ids.flatMap((_, row) => {
  const { ratio, pValue, numTests, reference } = HEAT.comparisons[row];
  const { kind, words } = describeCell(CELLS, row);
  return pValue === null ? [] : [{ kind, words, interval: findInterval(ratio, numTests), numTests,
    tableSize: CELLS.findTable(row, reference)?.size ?? null }];
})"""


@pytest.mark.parametrize("size", [1, 7, 300, 20_000])
def test_the_page_states_a_difference_exactly_where_the_collector_does(
    browser: Browser, report: Path, size: int
) -> None:
    rng = np.random.default_rng(size)
    estimates = [
        Estimate(center=float(np.exp(log)), log_standard_error=float(error), degrees_of_freedom=float(freedom))
        for error, freedom in zip(np.exp(rng.uniform(-9, 0, 300)), rng.uniform(1, 40, 300), strict=True)
        for log in [rng.normal() * 3 * error]
    ]
    packed = [
        {"center": one.center, "error": one.log_standard_error, "freedom": one.degrees_of_freedom} for one in estimates
    ]
    found = visit(browser, report).page.evaluate(JUDGE, [packed, size])
    for estimate, judged in zip(estimates, found, strict=True):
        low, high = judged["interval"]
        assert (low, high) == pytest.approx(estimate.find_joint_interval(size), rel=1e-6)
        assert judged["adjusted"] == pytest.approx(adjust_p_value(estimate.p_value or 0.0, size), rel=1e-6)
        is_stated = not low <= 1 <= high
        assert (judged["adjusted"] < 0.05) is is_stated
        assert estimate.excludes_one(size) is is_stated
    stated = sum(estimate.excludes_one(size) for estimate in estimates)
    assert 0 < stated < len(estimates) or size > 300


def test_what_the_heat_map_states_is_what_its_intervals_say(browser: Browser, report: Path) -> None:
    cells = visit(browser, report).page.evaluate(HEAT_MAP)
    # A pair that a table has is judged as there, whatever the baseline is; else with all pairs of this map.
    assert all(cell["numTests"] == (cell["tableSize"] or len(cells)) for cell in cells)
    assert any(cell["tableSize"] for cell in cells)
    for cell in cells:
        low, high = cell["interval"]
        direction = "longer" if low > 1 else "shorter" if high < 1 else "same"
        assert cell["kind"] == direction
        assert "(95 % interval of the ratio " in cell["words"]
    assert {cell["kind"] for cell in cells} >= {"longer", "shorter"}
