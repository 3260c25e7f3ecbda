"""The command `clean` on a store: it shows first, deletes only what it is asked to, and says so."""

from datetime import UTC, datetime, timedelta
from unittest.mock import Mock

import pytest

from bench.schema import Run
from bench.store import Store, results_prefix
from collector.results.load import load_run
from factories import put_documents
from stored_runs import CELL_A, CELL_B, make_failed, make_ok, make_own_run
from workspace import CallMain, Workspace

OPTIONS = ("--store", "file://results", "--raw-older-than", "90d")


@pytest.fixture
def run(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run that is over, a newer one, and a clock that is 200 days ahead of both."""
    store = Store.open(f"file://{workspace.folder}/results")
    newest = make_own_run(begun=datetime(2026, 3, 2, tzinfo=UTC), number="0000")
    run = make_own_run()
    put_documents(store, newest, [])
    put_documents(store, run, [make_ok(run, CELL_A), make_failed(run, CELL_B)])
    load_run(store, run.run_id, writes_tables=True)
    later = datetime.now(UTC) + timedelta(days=200)
    monkeypatch.setattr("runner.commands.clean.datetime", Mock(now=lambda _: later))
    return run


def list_raw(workspace: Workspace, run: Run) -> list[str]:
    return list(Store.open(f"file://{workspace.folder}/results").list_keys(results_prefix(run.run_id)))


def test_by_default_it_only_shows(call_main: CallMain, workspace: Workspace, run: Run) -> None:
    code, out, err = call_main("clean", *OPTIONS)

    assert (code, err) == (0, "")
    first, second, *_, last = out.splitlines()
    assert first.startswith(f"to delete: {run.run_id}: 2 raw results, ")
    assert second == "kept: smoke-20260302-000000-0000: the newest run"
    assert last == "nothing was deleted; --delete deletes what is shown"
    assert len(list_raw(workspace, run)) == 2


def test_it_deletes_what_is_shown_and_status_says_so(call_main: CallMain, workspace: Workspace, run: Run) -> None:
    code, out, err = call_main("clean", *OPTIONS, "--delete")

    assert (code, err) == (0, "")
    assert out.splitlines()[-1].startswith(f"deleted: {run.run_id}: 2 raw results, ")
    assert list_raw(workspace, run) == []
    code, out, _ = call_main("status", run.run_id)
    assert "2 raw results removed on " in out
    assert "their rows were in the data set then" in out
    code, out, _ = call_main("clean", *OPTIONS, "--delete")
    assert (code, "in all: 0 raw results of 0 runs" in out) == (0, True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "clean: give RUN_ID, --on and --store"),
        (("--raw-older-than", "90d"), "clean: give RUN_ID, --on and --store"),
        (("mine",), "clean: --on is missing"),
        (("--on", "gke"), "clean: RUN_ID is missing"),
        (("--store", "file://."), "--store: say which raw results are meant with --raw-older-than AGE"),
        (("--store", "file://.", "--raw-older-than", "3"), "--raw-older-than 3: expected a time of at least 1d"),
        (("--store", "file://.", "--raw-older-than", "3d", "--force"), "--force: is for Jobs"),
        (("mine", "--on", "gke", "--delete"), "--delete: is for stores"),
        (("--store", "file://none", "--raw-older-than", "3d"), "store file://none: there is no directory"),
    ],
)
def test_options_that_lead_nowhere_are_one_message(call_main: CallMain, words: tuple[str, ...], message: str) -> None:
    code, out, err = call_main("clean", *words)

    assert (code, out) == (2, "")
    assert err.startswith(f"error: {message}")
