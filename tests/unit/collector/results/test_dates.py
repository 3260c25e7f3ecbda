"""Dates that cannot be are named, and the results count."""

from datetime import timedelta
from pathlib import Path

import pytest

from bench.schema import EARLIEST
from factories import START, make_result
from measured_runs import collect_results

DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        (-3, "1 result dated more than a day before the run was made, on 2026-03-01 (runs/"),
        (20_000, "1 result dated in the future (runs/"),
    ],
)
def test_an_odd_date_is_named(days: int, expected: str, tmp_path: Path) -> None:
    started = START + days * DAY
    result = make_result(started_at=started, finished_at=started + timedelta(minutes=1))
    found = collect_results(tmp_path, result, repeats=1)
    [text] = found.doubts
    assert text.startswith(expected)
    assert found.results["status"].tolist() == ["ok"]


def test_a_clock_that_is_some_hours_off_or_was_never_set_is_none(tmp_path: Path) -> None:
    results = [
        make_result(started_at=START - 0.9 * DAY),
        make_result(repeat=2, started_at=EARLIEST, finished_at=EARLIEST),
    ]
    assert collect_results(tmp_path, *results, repeats=2).doubts == ()
