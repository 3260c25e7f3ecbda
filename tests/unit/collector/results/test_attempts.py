"""attempts: which of several attempts at a repeat counts."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from bench.schema import EARLIEST, LATEST, Verdict
from bench.store import Store
from factories import START, make_failed_result, make_result, make_run, make_validity
from measured_runs import put_and_load


def test_the_earliest_ok_attempt_counts(store: Store) -> None:
    later, middle = START + timedelta(hours=2), START + timedelta(hours=1)
    attempts = [
        make_failed_result(attempt="a1"),
        make_result(attempt="a2", started_at=later, finished_at=later + timedelta(seconds=10)),
        make_result(attempt="a3", started_at=middle, finished_at=middle + timedelta(seconds=10)),
    ]
    row = put_and_load(store, make_run(repeats=1), attempts).results.iloc[0]
    assert tuple(row[["attempt", "status", "num_attempts"]]) == ("a3", "ok", 3)


@pytest.mark.parametrize(
    ("second", "third", "expected"),
    [
        ("noisy", "valid", ("a2", "noisy")),
        ("contaminated", "valid", ("a3", "valid")),
        ("throttled", "valid", ("a2", "throttled")),
        ("contaminated",) * 2 + (("a1", "contaminated"),),
    ],
)
def test_the_earliest_attempt_that_nobody_disturbed_counts_however_good_it_is(
    second: Verdict, third: Verdict, expected: tuple[str, str], store: Store
) -> None:
    attempts = []
    for hours, verdict in enumerate(("contaminated", second, third)):
        at, validity = START + timedelta(hours=hours), make_validity(*([] if verdict == "valid" else [verdict]))
        attempts.append(
            make_result(
                attempt=f"a{hours + 1}", started_at=at, finished_at=at + timedelta(seconds=10), validity=validity
            )
        )
    failed = START + timedelta(hours=3)
    attempts.append(make_failed_result(attempt="a4", started_at=failed, finished_at=failed))

    row = put_and_load(store, make_run(repeats=1), attempts).results.iloc[0]

    assert tuple(row[["attempt", "verdict", "num_attempts"]]) == (*expected, 4)


@pytest.mark.parametrize("graver", ["over-peak", "wrong-device"])
def test_a_disturbed_attempt_does_not_count_for_a_graver_verdict(graver: Verdict, store: Store) -> None:
    later = START + timedelta(hours=1)
    attempts = [
        make_result(attempt="a1", validity=make_validity(graver, "contaminated")),
        make_result(attempt="a2", started_at=later, finished_at=later + timedelta(seconds=10)),
    ]
    row = put_and_load(store, make_run(repeats=1), attempts).results.iloc[0]
    assert tuple(row[["attempt", "verdict"]]) == ("a2", "valid")


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


def test_without_an_ok_attempt_the_latest_one_counts(store: Store) -> None:
    later = START + timedelta(hours=1)
    attempts = [
        make_failed_result(attempt="a1", status="timeout", started_at=later, finished_at=later + timedelta(seconds=10)),
        make_failed_result(attempt="a2", status="oom"),
    ]
    row = put_and_load(store, make_run(repeats=1), attempts).results.iloc[0]
    assert tuple(row[["attempt", "status", "num_attempts"]]) == ("a1", "timeout", 2)
