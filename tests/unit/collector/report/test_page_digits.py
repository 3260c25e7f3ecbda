"""The page writes ratios with the digits that the collector writes them with."""

from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser

from browser_visits import visit
from collector.ratio_words import format_longer, format_percent, format_ratio, format_ratios
from collector.statistics import Estimate

WRITE = """(cases) => cases.map(([center, low, high]) => ({
  longer: formatLonger(center, low, high),
  ratio: formatRatio(center, [low, high]),
  percent: formatPercent(100 * (center - 1)),
}))"""


def make_estimates(number: int) -> list[Estimate]:
    """Return ratios of times above 1, some near 1 and some far, known well or badly."""
    generator = np.random.default_rng(7)
    sizes, errors = generator.uniform(-5, 1.5, number), generator.uniform(-6, 0, number)
    return [
        Estimate(center=float(1 + 10**size), log_standard_error=float(10**error), degrees_of_freedom=4)
        for size, error in zip(sizes, errors, strict=True)
    ]


@pytest.mark.parametrize("size", [1, 12])
def test_ratios_have_the_digits_of_the_collector(browser: Browser, report: Path, size: int) -> None:
    estimates = make_estimates(300)
    intervals = [estimate.find_joint_interval(size) or (0.0, 0.0) for estimate in estimates]
    cases = [[one.center, *interval] for one, interval in zip(estimates, intervals, strict=True)]
    found = visit(browser, report).page.evaluate(WRITE, cases)
    for estimate, (low, high), texts in zip(estimates, intervals, found, strict=True):
        assert tuple(texts["longer"]) == format_longer(estimate, size)
        assert texts["ratio"] == [format_ratio(estimate.center), " to ".join(format_ratios(low, high))]
        assert texts["percent"] == f"{format_percent(estimate.center - 1)} %"
