"""What tests read of the lines on trust: those of a run by their titles."""

from typing import Any

from collector.analysis import analyze_run
from collector.report.trust import list_trust_lines
from collector.report.trust_line import TrustLine
from factories import make_cell, make_result
from measured_runs import Collect


def read_lines(collect: Collect, *results: Any, repeats: int = 2) -> dict[str, TrustLine]:
    """Return the lines of a run of these results by their titles."""
    lines = list_trust_lines(analyze_run(collect(*results, repeats=repeats)))
    return {line.title: line for line in lines}


def make_two(cell: Any = None, *, seconds: tuple[float, float] = (0.1, 0.1), **overrides: Any) -> list[Any]:
    """Return two repeats of a cell, each with the seconds of its steps."""
    cell = cell or make_cell()
    return [
        make_result(cell, repeat=repeat, step_seconds=(own,) * 3, **overrides)
        for repeat, own in enumerate(seconds, start=1)
    ]
