"""The figures of ratios have the intervals of their tables, and stand where a wide page has room for them."""

import pytest

from collector.analysis import Analysis, analyze_run
from collector.report.figure import FigureGroup
from collector.report.question_figures import draw_plot
from collector.results.frames import list_rows
from collector.statistics import Estimate
from measured_runs import Collect
from spread_runs import make_framework_pair


def list_drawn(groups: tuple[FigureGroup, ...]) -> list[tuple[float, float, float]]:
    """Return ratio, low and high of the rows of all figures that have an interval, each once."""
    rows = [
        row for group in groups for figure in group.figures for own in figure.spec["datasets"].values() for row in own
    ]
    return list(
        dict.fromkeys((row["ratio"], row["ratio_low"], row["ratio_high"]) for row in rows if row.get("ratio_low"))
    )


def list_joint(analysis: Analysis, name: str) -> list[tuple[float, float, float]]:
    """Return the same of a comparison, with the intervals that hold together over its tested ratios."""
    pairs = list_rows(analysis.comparisons[name])
    number = sum(pair["p_value"] is not None for pair in pairs)
    assert number > 1
    estimates = [
        Estimate(
            center=pair["ratio"],
            log_standard_error=pair["log_standard_error"],
            degrees_of_freedom=pair["degrees_of_freedom"],
        )
        for pair in pairs
    ]
    return [(one.center, *(one.find_joint_interval(number) or ())) for one in estimates]


def test_lines_of_ratios_are_the_intervals_of_the_table(collect: Collect) -> None:
    analysis = analyze_run(collect(*make_framework_pair(0.9), *make_framework_pair(1.2, batch_size=1)))
    drawn = list_drawn(draw_plot("frameworks", analysis))
    for own, expected in zip(sorted(drawn), sorted(list_joint(analysis, "frameworks")), strict=True):
        assert own == pytest.approx(expected)
