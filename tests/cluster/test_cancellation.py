"""`cancel --store` and runners that do not see their Jobs just then: the mark in the store stops them."""

import json
from pathlib import Path

import pytest
import yaml
from rich.console import Console
from runs import DEADLINE_SECONDS, Observed, Setup, Site, make_cells, set_quota, wait_for

from bench.errors import UserError
from bench.store import Store, cancelled_prefix, confirmation_run_id
from faulty_server import Fault, FaultyServer
from runner.commands.run_execution import confirm_there
from runner.kubernetes.cleanup import RunCancelled, leave_mark
from runner.kubernetes.connection import Connection
from runner.nights import describe_matrix
from runner.runs import read_run
from runner.sources import read_user_name
from s3_server import S3Server
from workspace import CallMain


def list_marks(setup: Setup) -> list[str]:
    return list(setup.store.list_keys(cancelled_prefix(setup.run.run_id)))


def test_a_runner_that_a_quota_lets_make_no_job_is_stopped(
    site: Site, call_main: CallMain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runner.kubernetes.submission.QUOTA_PAUSE_SECONDS", 1.0)
    set_quota(site.connection, site.namespace, **{"count/jobs.batch": "0"})
    setup = site.make_setup(make_cells(2))
    runner = setup.start(Connection(context=site.connection.context, patience_seconds=DEADLINE_SECONDS))
    wait_for(lambda: setup.observed.warnings, "a warning about the quota")

    _, out, _ = call_main("cancel", *site.words)

    assert (
        out == f"run {site.namespace} in namespace {site.namespace}: 0 unfinished Jobs deleted, 0 finished ones left\n"
    )
    with pytest.raises(RunCancelled):
        runner.result(DEADLINE_SECONDS)


def test_the_mark_is_there_before_a_job_is_touched_and_in_nobodys_way(
    site: Site, faulty: FaultyServer, call_main: CallMain
) -> None:
    setup = site.make_setup(make_cells(3))
    setup.submit()
    num_marks_at_writes: list[int] = []

    def note_marks(method: str, path: str) -> Fault | None:
        if method == "DELETE":
            num_marks_at_writes.append(len(list_marks(setup)))
        return None

    faulty.choose_fault = note_marks
    words = ("cancel", *site.words)

    code, out, _ = call_main(*words)

    assert code == 0
    assert "3 unfinished Jobs deleted" in out
    assert num_marks_at_writes == [1] * 3
    (key,) = list_marks(setup)
    mark = json.loads(site.store.get(key))
    assert (mark["run_id"], mark["user"]) == (site.namespace, read_user_name())
    assert call_main(*words)[0] == 0
    assert len(list_marks(setup)) == 2
    assert site.store.list_run_ids() == [site.namespace]
    assert read_run(site.store, site.namespace) == setup.run
    assert len(setup.list_missing()) == 3


def test_a_cancelled_night_ends_the_run_that_measures_it_again(site: Site, call_main: CallMain) -> None:
    site.start_kubelet(lambda pod: "hang", num_nodes=1)
    night = site.make_setup(make_cells(1))
    again = confirmation_run_id(night.run.matrix, site.namespace)
    confirmation = site.make_setup(make_cells(1), run_id=again)
    runner = confirmation.start()
    wait_for(lambda: confirmation.count_ready() == 1, "a cell that is measured again")

    code, out, _ = call_main("cancel", *site.words)

    assert code == 0
    assert out.splitlines() == [
        f"run {site.namespace} in namespace {site.namespace}: 0 unfinished Jobs deleted, 0 finished ones left",
        f"run {again} in namespace {site.namespace}: 1 unfinished Jobs deleted, 0 finished ones left",
    ]
    with pytest.raises(RunCancelled):
        runner.result(DEADLINE_SECONDS)
    assert confirmation.list_jobs() == []


def test_a_night_that_is_cancelled_before_its_confirmation_begins_is_not_measured_again(
    connection: Connection, namespace: str, s3_server: S3Server, tmp_path: Path
) -> None:
    store = Store.open(f"s3://{s3_server.bucket}")
    night = Setup.make(connection, namespace, store, make_cells(1))
    again = confirmation_run_id(night.run.matrix, namespace)
    path = tmp_path / "again.yaml"
    path.write_text(yaml.safe_dump(describe_matrix(night.run, list(night.run.cells))))
    measure = confirm_there(night.make_cluster_run(), night.run, connection, Observed(), Console(quiet=True))
    leave_mark(store, namespace)

    with pytest.raises(UserError, match=f"{again}, or its night, was cancelled"):
        measure(str(path), again)
    assert night.list_jobs() == []


def test_no_mark_is_left_where_the_cluster_refuses(site: Site, call_main: CallMain) -> None:
    setup = site.make_setup(make_cells(1))

    code, _, err = call_main(
        "cancel", site.namespace, "--on", f"{site.connection.context}-user", "--store", site.store.url
    )

    assert code == 2
    assert err.startswith(f"error: --on {site.connection.context}-user: ")
    assert f"lacks rights in namespace {site.namespace} that `cancel` needs: list, delete jobs.batch" in err
    assert list_marks(setup) == []
