"""collector.facts: what was run, in words."""

import pytest

from bench.schema import Result
from collector.facts import describe_windows
from factories import make_cell, make_failed_result, make_result
from measured_runs import Collect

SHORT = make_result(step_seconds=(0.25,) * 4)
LONG = make_result(make_cell(batch_size=1), step_seconds=(0.05,) * 100)


@pytest.mark.parametrize(
    ("results", "words"),
    [
        ((SHORT, LONG), "4 to 100 steps a repeat, 1 to 5 s"),
        ((SHORT,), "4 steps a repeat, 1 s"),
        ((make_failed_result(),), ""),
    ],
)
def test_how_much_was_timed_is_the_span_of_the_repeats_that_ended_ok(
    collect: Collect, results: tuple[Result, ...], words: str
) -> None:
    assert describe_windows(collect(*results, repeats=1)) == words
