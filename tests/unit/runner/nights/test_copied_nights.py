"""Repeats that are copies of another night's do not count as measured again."""

from collections.abc import Container
from pathlib import Path

import pytest

from bench.schema import read_result
from bench.store import Store
from nights import SimulatedNights
from runner.nights import Watch


@pytest.fixture
def nights(tmp_path: Path) -> SimulatedNights:
    return SimulatedNights(store=Store.open(f"file://{tmp_path}/store"))


def copy_results(store: Store, source: str, target: str, numbers: Container[int] = range(9)) -> None:
    """Put the results of a run into another one, under the ids that they need there."""
    for key in store.list_keys(f"runs/{source}/results/"):
        result = read_result(store.get(key))
        if result.repeat in numbers:
            copied = result.model_copy(update={"run_id": target})
            store.put(key.replace(source, target, 1), copied.to_json())


def test_a_copy_of_a_night_is_no_night(nights: SimulatedNights) -> None:
    for number in range(2):
        nights.put_night(number)
    run = nights.put_night(2, repeats=1)
    for key in list(nights.store.list_keys("runs/night-2/results/")):
        nights.store.delete(key)
    copy_results(nights.store, "night-1", run.run_id, numbers=(1,))
    report = Watch(store=nights.store).look()
    assert (report.num_nights, report.night.run_id) == (2, "night-1")
    expected = "3 of its repeats have the measurements of another run (of night-1): they do not count"
    expected = f"run night-2: {expected}"
    assert expected in report.warnings


def test_of_a_night_with_some_copied_repeats_the_others_count(nights: SimulatedNights) -> None:
    nights.put_night(0)
    nights.put_night(1, repeats=3)
    for key in list(nights.store.list_keys("runs/night-1/results/")):
        if "/1-" in key:
            nights.store.delete(key)
    copy_results(nights.store, "night-0", "night-1", numbers=(1,))
    report = Watch(store=nights.store).look()
    assert report.num_nights == 2
    assert [text for text in report.warnings if "measurements of another run" in text] != []
