"""Jobs that carry a run's id and are not its own: with results in another store, of another plan, of other images."""

import json
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from commands import CallMain, create
from rich.console import Console
from runs import Setup, make_cells, make_profile, wait_for

from bench.errors import UserError
from bench.store import Store
from fake_kubelet import FakeKubelet, Pod
from runner.kubernetes.cleanup import JobCleaner
from runner.kubernetes.connection import Connection
from runner.kubernetes.objects import read_job_status

StartKubelet = Callable[..., FakeKubelet]
NEW_IMAGES: Any = {"pytorch": {"cpu": "registry.example/benchmatrix/pytorch:2"}}


@pytest.fixture
def other_store(tmp_path: Path) -> Store:
    return Store.open(f"file://{tmp_path}/other")


def hang(pod: Pod) -> str:
    return "hang"


def measure(setup: Setup) -> None:
    """Measure what is missing as `benchmatrix run` does."""
    setup.make_cluster_run().measure(setup.run, setup.connection, setup.observed, Console(file=StringIO()))


def start_jobs(setup: Setup, number: int) -> None:
    """Submit Jobs as a runner does that is killed when so many run."""
    setup.start()
    wait_for(lambda: sum(job["status"].get("ready", 0) for job in setup.list_jobs()) >= number, "Jobs that run")


def list_uids(setup: Setup) -> set[str]:
    return {job["metadata"]["uid"] for job in setup.list_jobs()}


def test_the_same_run_id_with_another_store_measures_everything_for_itself(
    connection: Connection, namespace: str, store: Store, other_store: Store, start_kubelet: StartKubelet
) -> None:
    kubelet = start_kubelet(num_nodes=2)
    first = Setup.make(connection, namespace, store, make_cells(3))
    first.measure()
    before = list_uids(first)
    kubelet.store = other_store
    second = Setup.make(connection, namespace, other_store, make_cells(3))

    measure(second)

    assert [result.status for result in second.observed.results] == ["ok"] * 3
    assert list(second.count_records().values()) == [1] * 3
    assert before <= list_uids(second)
    assert second.observed.warnings == []


def test_a_run_that_goes_on_with_new_images_refuses_while_jobs_with_the_old_ones_run(
    connection: Connection, namespace: str, store: Store, start_kubelet: StartKubelet, call_main: CallMain
) -> None:
    kubelet = start_kubelet(hang, num_nodes=2)
    setup = Setup.make(connection, namespace, store, make_cells(2))
    start_jobs(setup, 2)
    newer = Setup.make(connection, namespace, store, make_cells(2), profile=make_profile(namespace, images=NEW_IMAGES))

    with pytest.raises(UserError) as refused:
        measure(newer)

    words = str(refused.value)
    assert f"run {namespace}: 2 of its Jobs in namespace {namespace} are unfinished" in words
    assert f"benchmatrix cancel {namespace} --on {connection.context} --store {store.url}" in words
    assert not newer.count_records()

    # What the message advises: the old Jobs are the run's own to `cancel`, and nothing stands in the way then.
    assert call_main("cancel", namespace, "--on", "current", "--store", store.url)[0] == 0
    kubelet.decide = lambda pod: "ok"
    measure(newer)
    images = {pod["spec"]["containers"][0]["image"] for pod in newer.list_pods()}
    assert [result.status for result in newer.observed.results] == ["ok"] * 2
    assert "registry.example/benchmatrix/pytorch:2" in images


def test_a_job_that_ended_with_old_images_and_left_no_record_is_measured_with_the_new_ones(
    connection: Connection, namespace: str, store: Store, other_store: Store, start_kubelet: StartKubelet
) -> None:
    kubelet = start_kubelet(num_nodes=1)
    kubelet.store = other_store  # as if the bucket had lost what the Jobs wrote
    setup = Setup.make(connection, namespace, store, make_cells(1))
    runner = setup.start()
    wait_for(lambda: setup.count_finished() == 1 and runner.done(), "the end of the run")
    for key in store.list_keys(f"runs/{namespace}/results/"):
        Path(store.url.removeprefix("file://"), key).unlink()
    kubelet.store = store
    newer = Setup.make(connection, namespace, store, make_cells(1), profile=make_profile(namespace, images=NEW_IMAGES))

    measure(newer)

    assert [result.status for result in newer.observed.results] == ["ok"]


def test_cancel_and_clean_ask_which_of_two_runs_is_meant_and_leave_the_other(
    connection: Connection,
    namespace: str,
    store: Store,
    other_store: Store,
    start_kubelet: StartKubelet,
    call_main: CallMain,
    tmp_path: Path,
) -> None:
    kubelet = start_kubelet(hang, num_nodes=3)
    mine = Setup.make(connection, namespace, store, make_cells(1))
    theirs = Setup.make(connection, namespace, other_store, make_cells(2))
    start_jobs(mine, 1)
    my_jobs = list_uids(mine)
    start_jobs(theirs, 3)
    words = (namespace, "--on", "current", "--namespace", namespace)

    for command in ("cancel", "clean"):
        code, _, err = call_main(command, *words)
        assert code == 2
        assert (
            f"error: run {namespace}: namespace {namespace} has Jobs of 2 runs of this name, with results in different "
            in err
        )
    (tmp_path / "mine.yaml").write_text(f"extends: kind\nnamespace: {namespace}\n")
    profile = ("--profile", str(tmp_path / "mine.yaml"))  # the words of `run`, which people take over
    code, out, _ = call_main("status", namespace, "--on", "current", *profile, "--store", other_store.url)
    assert (code, "Jobs: 2 running" in out) == (0, True)

    assert call_main("cancel", *words, "--store", other_store.url)[0] == 0
    assert list_uids(mine) == my_jobs
    kubelet.decide = lambda pod: "ok"
    measure(theirs)
    code, out, _ = call_main("clean", *words, "--store", other_store.url)
    assert (code, out.splitlines()[0].split(": ")[1].split(";")[0]) == (0, "2 Jobs deleted")
    assert list_uids(mine) == my_jobs


def copy_job(setup: Setup) -> str:
    """Copy a Job of the run by hand, with its labels; return the copy's uid.

    It is suspended, so that it stays unfinished.
    """
    (job,) = setup.list_jobs()
    labels = job["metadata"]["labels"]
    spec = job["spec"]["template"]["spec"]
    copy = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "my-copy", "labels": labels},
        "spec": {"suspend": True, "template": {"spec": spec}},
    }
    made = create(setup.connection, f"/apis/batch/v1/namespaces/{setup.profile.namespace}/jobs", copy)
    return str(made["metadata"]["uid"])


def test_a_job_that_names_no_repeat_is_named_and_passed_by(
    connection: Connection, namespace: str, store: Store, start_kubelet: StartKubelet, call_main: CallMain
) -> None:
    start_kubelet(num_nodes=1)
    setup = Setup.make(connection, namespace, store, make_cells(1))
    cluster_run = setup.make_cluster_run()
    (tracked,) = cluster_run.list_missing(setup.run)
    copy = json.loads(cluster_run.make_renderer(setup.run).render(tracked.repeat.planned, tracked.key))
    copy["metadata"] |= {"name": "my-copy", "labels": copy["metadata"]["labels"] | {"benchmatrix/repeat": "abc"}}
    copy["spec"]["suspend"] = True
    uid = create(connection, f"/apis/batch/v1/namespaces/{namespace}/jobs", copy)["metadata"]["uid"]

    setup.measure()

    assert [result.status for result in setup.observed.results] == ["ok"]
    expected = "Job my-copy has the labels of this run and names no repeat (benchmatrix/repeat): it is passed by"
    assert expected in setup.observed.warnings
    words = (namespace, "--on", "current", "--store", store.url)
    code, out, _ = call_main("status", *words)
    assert (code, "1 finished" in out) == (0, True)
    assert call_main("cancel", *words)[0] == 0
    assert call_main("clean", *words, "--force")[0] == 0
    assert uid not in list_uids(setup)  # it writes to the run's store, and so it is the run's own to end


def test_a_job_that_took_the_name_of_one_since_it_was_listed_is_left(
    connection: Connection, namespace: str, store: Store, start_kubelet: StartKubelet
) -> None:
    start_kubelet(num_nodes=1)
    setup = Setup.make(connection, namespace, store, make_cells(1))
    setup.measure()
    uid = copy_job(setup)
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs/my-copy"
    cleaner = JobCleaner(connection=connection, namespace=namespace, run_id=namespace, store=store)
    listed = replace(read_job_status(connection.get_object(path)), uid="0b9f3a3c-5d1e-4c6f-9a57-1d2f3c4b5a69")

    cleaner._for_each([listed], cleaner._mark_job)
    cleaner._for_each([listed], cleaner._delete_job)

    left = read_job_status(connection.get_object(path))
    assert (left.uid, left.is_cancelled) == (uid, False)


def test_a_job_of_the_same_name_that_somebody_else_made_is_not_taken_for_the_runs_own(
    connection: Connection, namespace: str, store: Store, start_kubelet: StartKubelet
) -> None:
    start_kubelet()
    setup = Setup.make(connection, namespace, store, make_cells(1))
    (tracked,) = setup.make_cluster_run().list_missing(setup.run)
    container = {"name": "bench", "image": "registry.example/other:1"}
    pod = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    body = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": tracked.name},
        "spec": {"suspend": True, "template": pod},
    }
    create(connection, f"/apis/batch/v1/namespaces/{namespace}/jobs", body)

    with pytest.raises(UserError, match=f"Job {tracked.name} in namespace {namespace} is not of this run"):
        setup.measure()
