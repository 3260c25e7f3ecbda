"""attempts: which of several attempts at a repeat counts."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from bench.schema import EARLIEST, LATEST
from bench.store import Store
from factories import START, make_failed_result, make_result, make_run, make_validity
from measured_runs import put_and_load


@pytest.mark.parametrize(
    ("attempts", "chosen"),
    [
        (["failed", "valid", "valid"], 1),
        (["oom", "timeout"], 1),  # without one that ended ok, the latest
        (["contaminated", "noisy", "valid", "failed"], 1),
        (["contaminated", "contaminated", "valid", "failed"], 2),
        (["contaminated", "throttled", "valid", "failed"], 1),
        (["contaminated", "contaminated", "failed"], 0),
        # Others disturbed it, whatever graver verdict it has.
        (["over-peak contaminated", "valid"], 1),
        (["wrong-device contaminated", "valid"], 1),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_turned", [False, True])
def test_the_earliest_attempt_that_nobody_disturbed_counts_however_good_it_is(
    attempts: list[str], chosen: int, is_turned: bool, store: Store
) -> None:
    results = []
    for hours, ending in enumerate(attempts):
        at = START + timedelta(hours=hours)
        own: dict[str, Any] = {"started_at": at, "finished_at": at + timedelta(seconds=10)}
        own["attempt"] = f"a{9 - hours if is_turned else hours}"  # what it is called decides nothing
        if ending in ("failed", "oom", "timeout"):
            results.append(make_failed_result(status=ending, **own))  # type: ignore[arg-type]
        else:
            verdicts: list[Any] = [] if ending == "valid" else ending.split()
            results.append(make_result(validity=make_validity(*verdicts), **own))
    row = put_and_load(store, make_run(repeats=1), results).results.iloc[0]
    assert tuple(row[["attempt", "num_attempts"]]) == (results[chosen].attempt, len(attempts))


@pytest.mark.parametrize("moved_to", [EARLIEST, LATEST])
def test_an_attempt_by_a_clock_that_was_not_set_is_neither_the_earliest_nor_the_latest(
    moved_to: datetime, store: Store
) -> None:
    unset: dict[str, Any] = {"started_at": moved_to, "finished_at": moved_to}
    sound = [make_result(attempt="a1", **unset), make_result(attempt="a2")]
    failed = [make_failed_result(repeat=2, attempt="a1", **unset), make_failed_result(repeat=2, attempt="a2")]
    alone = [make_result(repeat=3, attempt="a1", **unset)]
    rows = put_and_load(store, make_run(repeats=3), [*sound, *failed, *alone]).results
    assert rows["attempt"].to_list() == ["a2", "a2", "a1"]
