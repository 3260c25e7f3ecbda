"""What is said of repeats without a result: a run that goes on has some to go, one that has ended misses them."""

import socket
from pathlib import Path
from typing import Any

import pytest

from bench.store import Store
from collector.results.load import load_run
from factories import make_cell, make_result, make_run, put_documents
from runner.commands.status import RunState, find_run_state
from runner.local.process import LOCK_DIR, find_measured_run, hold_host_lock

TRAIN, INFER = make_cell(), make_cell(phase="infer")


@pytest.fixture(autouse=True)
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock that no run outside of this test has."""
    folder = tmp_path / "lock"
    folder.mkdir()
    monkeypatch.setenv(LOCK_DIR, str(folder))


def find_state(tmp_path: Path, *repeats: int, **fields: Any) -> RunState:
    """Return the state of a run of two cells with three repeats each, of which TRAIN has these."""
    store = Store.open(f"file://{tmp_path}")
    place: dict[str, Any] = {"hostname": socket.gethostname()} | fields
    run = make_run([TRAIN, INFER], repeats=3, run_id="mine", **place)
    put_documents(store, run, [make_result(TRAIN, run_id="mine", repeat=number) for number in repeats])
    return find_run_state(load_run(store, "mine"))


def test_a_run_that_is_measured_here_has_repeats_to_go(tmp_path: Path) -> None:
    with hold_host_lock("mine"):
        state = find_state(tmp_path, 1, 2)
        assert find_measured_run() == "mine"
    result = make_result(TRAIN)
    taken = (result.finished_at - result.started_at).total_seconds()
    assert state.is_running is True
    assert state.seconds_left == pytest.approx(4 * taken)  # those of INFER by the mean of all
    assert state.describe(4).startswith("4 to go, running, about ")


def test_a_run_that_has_ended_misses_its_repeats(tmp_path: Path) -> None:
    assert find_measured_run() is None  # nobody has made the lock yet
    with hold_host_lock("another"):
        assert find_state(tmp_path, 1).describe(5) == "5 missing"
    assert find_state(tmp_path, 1).describe(5) == "5 missing"


@pytest.mark.parametrize("fields", [{"hostname": "another"}, {"executor": "kubernetes"}])
def test_of_a_run_elsewhere_only_the_store_is_known(tmp_path: Path, fields: dict[str, str]) -> None:
    assert find_state(tmp_path, 1, **fields).describe(5) == "5 not there yet"
