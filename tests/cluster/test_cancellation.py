"""`cancel --store` and runners that do not see their Jobs just then: the mark in the store stops them."""

from collections.abc import Callable

import pytest
from commands import CallMain, create, make_call
from disruptions import FirstHangs, forget_watches, keep_watches_shut, refuse_watches
from runs import Setup, make_cells, wait_for

from bench.store import Store, cancelled_prefix
from fake_kubelet import FakeKubelet
from faulty_server import Fault, FaultyServer
from runner.kubernetes.cancellation import Cancellation, RunCancelled
from runner.kubernetes.connection import Connection
from runner.matrix.plan import read_user_name
from runner.runs import read_run

StartKubelet = Callable[..., FakeKubelet]
ConnectThrough = Callable[[FaultyServer], Connection]


@pytest.fixture
def call_main(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> CallMain:
    return make_call(monkeypatch, capfd)


def count_ready(setup: Setup) -> int:
    return sum(job["status"].get("ready", 0) for job in setup.list_jobs())


def list_marks(setup: Setup) -> list[str]:
    return list(setup.store.list_keys(cancelled_prefix(setup.run.run_id)))


@pytest.mark.parametrize("num_cells", [3, 12], ids=["all submitted", "most to submit"])
def test_a_runner_that_lists_anew_after_a_cancellation_makes_no_job(
    connection: Connection,
    namespace: str,
    store: Store,
    start_kubelet: StartKubelet,
    faulty: FaultyServer,
    connect_through: ConnectThrough,
    call_main: CallMain,
    num_cells: int,
) -> None:
    start_kubelet(FirstHangs(3), num_nodes=3)
    setup = Setup.make(connection, namespace, store, make_cells(num_cells), max_in_flight=3)
    through = connect_through(faulty)
    runner = setup.start(through)
    wait_for(lambda: count_ready(setup) == 3, "three cells that run")
    keep_watches_shut(faulty)

    code, out, err = call_main("cancel", namespace, "--on", "current", "--store", store.url)
    forget_watches(faulty)

    assert (0, "") == (code, err)
    assert f"run {namespace} in namespace {namespace}: 3 unfinished Jobs deleted, 0 finished ones left\n" == out
    with pytest.raises(RunCancelled):
        runner.result(60)
    assert 3 == through.num_requests["create jobs"]
    assert 2 == through.num_requests["list jobs"]
    assert [] == [warning for warning in setup.observed.warnings if "made again" in warning]
    assert [] == setup.list_jobs()

    again = setup.measure()  # the mark is of an earlier cancellation now

    assert ["ok"] * num_cells == [result.status for result in again.results]


def test_a_runner_that_never_saw_its_jobs_looks_for_a_mark_before_it_makes_them_again(
    connection: Connection,
    namespace: str,
    store: Store,
    start_kubelet: StartKubelet,
    faulty: FaultyServer,
    connect_through: ConnectThrough,
    call_main: CallMain,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("runner.kubernetes.pending_pods.UNSEEN_SECONDS", 1.0)
    start_kubelet(lambda pod: "hang", num_nodes=1)
    setup = Setup.make(connection, namespace, store, make_cells(1))
    faulty.choose_fault = refuse_watches
    through = connect_through(faulty)
    runner = setup.start(through)
    wait_for(lambda: count_ready(setup) == 1, "a cell that runs")

    code, _, _ = call_main("cancel", namespace, "--on", "current", "--store", store.url)

    assert 0 == code
    with pytest.raises(RunCancelled):
        runner.result(60)
    assert 1 == through.num_requests["list jobs"]


def test_a_runner_that_a_quota_lets_make_no_job_is_stopped(
    connection: Connection, namespace: str, store: Store, call_main: CallMain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runner.kubernetes.submission.QUOTA_PAUSE_SECONDS", 1.0)
    path = f"/api/v1/namespaces/{namespace}/resourcequotas"
    create(connection, path, {"metadata": {"name": "none"}, "spec": {"hard": {"count/jobs.batch": "0"}}})
    wait_for(lambda: connection.get_object(f"{path}/none").get("status", {}).get("hard"), "the quota to be known")
    setup = Setup.make(connection, namespace, store, make_cells(2))
    runner = setup.start(Connection(context=connection.context, patience_seconds=60.0))
    wait_for(lambda: setup.observed.warnings, "a word about the quota")

    _, out, _ = call_main("cancel", namespace, "--on", "current", "--store", store.url)

    assert f"run {namespace} in namespace {namespace}: 0 unfinished Jobs deleted, 0 finished ones left\n" == out
    with pytest.raises(RunCancelled):
        runner.result(60)


def test_the_mark_is_there_before_a_job_is_touched_and_in_nobodys_way(
    connection: Connection,
    namespace: str,
    store: Store,
    faulty: FaultyServer,
    connect_through: ConnectThrough,
    call_main: CallMain,
) -> None:
    setup = Setup.make(connection, namespace, store, make_cells(3))
    cluster_run = setup.make_cluster_run()
    renderer = cluster_run.make_renderer(setup.run)
    for task in cluster_run.list_tasks(setup.run):
        path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
        connection.request("create", path, body=renderer.render(task.repeat.planned, task.key))
    num_marks_at_writes: list[int] = []

    def note_marks(method: str, path: str) -> Fault | None:
        if method in ("PATCH", "DELETE"):
            num_marks_at_writes.append(len(list_marks(setup)))
        return None

    faulty.choose_fault = note_marks
    connect_through(faulty)
    words = ("cancel", namespace, "--on", "current", "--store", store.url)

    code, out, _ = call_main(*words)

    assert 0 == code
    assert "3 unfinished Jobs deleted" in out
    assert [1] * 6 == num_marks_at_writes
    (key,) = list_marks(setup)
    mark = Cancellation.model_validate_json(store.get(key))
    assert (namespace, read_user_name()) == (mark.run_id, mark.user)
    assert 0 == call_main(*words)[0]
    assert 2 == len(list_marks(setup))
    assert [namespace] == store.list_run_ids()
    assert setup.run == read_run(store, namespace)
    assert 3 == len(cluster_run.list_tasks(setup.run))


def test_without_a_store_no_mark_is_left_nor_where_the_cluster_refuses(
    connection: Connection, namespace: str, store: Store, call_main: CallMain
) -> None:
    setup = Setup.make(connection, namespace, store, make_cells(1))
    words = ("cancel", namespace, "--namespace", namespace, "--on")

    assert 0 == call_main(*words, "current")[0]
    assert [] == list_marks(setup)
    code, _, err = call_main(*words, f"{connection.context}-user", "--store", store.url)
    assert 2 == code
    assert err.startswith(f"error: --on {connection.context}-user: jobs.batch is forbidden")
    assert [] == list_marks(setup)
