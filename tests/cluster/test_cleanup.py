"""`cancel`, `clean` and `status --on` on a real API server: what they end, what they leave, what they say."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from runs import DEADLINE_SECONDS, Setup, Site, make_cells, make_profile, wait_for

from bench.schema import Cell
from bench.store import Store
from cluster_objects import load_job
from fake_kubelet import Pod, read_variables
from runner.kubernetes.cleanup import RunCancelled
from runner.kubernetes.names import select_run
from runner.kubernetes.objects import JobStatus, read_job_status
from runner.kubernetes.run import inspect_run, measure_rate
from workspace import CallMain

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def hang_after_the_first(pod: Pod) -> str:
    """Let the cell with seed 0 end well, the others run on."""
    return "hang" if read_seed(pod) else "ok"


def read_seed(pod: Pod) -> int:
    """Return the seed of a pod's cell, by which `make_cells` tells them apart."""
    return Cell.model_validate_json(read_variables(pod)["BENCH_CELL"]).seed


def list_jobs(setup: Setup) -> list[JobStatus]:
    """Return the Jobs of the run, but those that are being deleted."""
    path = f"/apis/batch/v1/namespaces/{setup.profile.namespace}/jobs"
    found = setup.connection.list_items(path, labelSelector=select_run(setup.run.run_id))
    return [read_job_status(job) for job in found if "deletionTimestamp" not in job["metadata"]]


def list_ended(setup: Setup) -> list[str]:
    return [job.name for job in list_jobs(setup) if job.end]


def test_cancel_stops_the_runner_and_leaves_what_is_finished(site: Site, call_main: CallMain) -> None:
    site.start_kubelet(hang_after_the_first, num_nodes=4)  # three cells hang at most, so one node is left for the rest
    setup = site.make_setup(make_cells(12), max_in_flight=3)
    other = site.make_setup(make_cells(1), run_id=f"{site.namespace}-other")
    other.measure()
    runner = setup.start()
    wait_for(lambda: len(list_ended(setup)) == 1 and len(list_jobs(setup)) == 4, "the first end, and more to submit")
    ended = list_ended(setup)

    code, out, err = call_main("cancel", *site.words, "--dry-run")
    assert (code, err) == (0, "")
    assert "3 unfinished Jobs would be deleted, 1 finished ones left; nothing was changed" in out
    assert len(list_jobs(setup)) == 4
    for command in ("cancel", "clean"):
        out = call_main(command, *site.words, "--namespace", "kube-public", "--dry-run")[1]
        assert re.match(rf"run {site.namespace} in namespace kube-public: 0 (unfinished )?Jobs would be deleted", out)
    assert call_main("status", *site.words, "--namespace", "kube-public")[1].splitlines()[1:] == ["Jobs: none"]

    code, out, err = call_main("cancel", *site.words)

    assert (code, err) == (0, "")
    with pytest.raises(RunCancelled):
        runner.result(DEADLINE_SECONDS)
    assert f"run {site.namespace} in namespace {site.namespace}: " in out
    assert "1 finished ones left" in out
    assert [job.name for job in list_jobs(setup)] == ended
    assert len(list_jobs(other)) == 1
    assert sum(setup.count_records().values()) == 1
    assert (
        0,
        f"run {site.namespace} in namespace {site.namespace}: 0 unfinished Jobs deleted, 1 finished ones left\n",
        "",
    ) == (call_main("cancel", *site.words))
    assert run_status(call_main, site.namespace, site.store)[1:] == [
        "Jobs: 1 finished",
        "the run was cancelled: 11 repeats stay missing until it is resumed",
    ]


def test_clean_refuses_while_cells_run_and_removes_all_with_force(site: Site, call_main: CallMain) -> None:
    site.start_kubelet(hang_after_the_first, num_nodes=2)
    setup = site.make_setup(make_cells(2))
    other = site.make_setup(make_cells(1), run_id="other")
    other.measure()
    runner = setup.start()
    wait_for(lambda: setup.count_ready() == 1 and len(list_ended(setup)) == 1, "one cell that runs and one that ended")
    words = ("clean", *site.words)

    code, out, err = call_main(*words)
    assert (code, out) == (2, "")
    assert f"error: run {site.namespace}: 1 of its 2 Jobs, and pods without a Job, are not finished" in err
    assert len(list_jobs(setup)) == 2
    assert call_main(*words, "--dry-run")[0] == 2
    assert "2 Jobs would be deleted; nothing was changed" in call_main(*words, "--dry-run", "--force")[1]
    assert len(list_jobs(setup)) == 2

    code, out, _ = call_main(*words, "--force")
    assert code == 0
    assert out == f"run {site.namespace} in namespace {site.namespace}: 2 Jobs deleted; results stay in the store\n"
    with pytest.raises(RunCancelled):
        runner.result(DEADLINE_SECONDS)
    assert list_jobs(setup) == []
    assert len(list_jobs(other)) == 1
    assert sum(setup.count_records().values()) == 1


def test_a_run_that_the_store_does_not_have_is_told(site: Site, call_main: CallMain) -> None:
    site.make_setup(make_cells(1))

    code, _, err = call_main("cancel", "nobodys", *site.words[1:])

    assert code == 2
    assert f"error: store {site.store.url}: no run nobodys here; name the right one, or the right --store\n" == err


def test_status_tells_what_a_kubelet_says_of_a_pod_that_it_does_not_start(site: Site) -> None:
    kubelet = site.start_kubelet(lambda pod: "stuck", num_nodes=1)
    setup = site.make_setup(make_cells(1))
    setup.submit()
    (pod,) = wait_for(lambda: [pod for pod in setup.list_pods() if "ContainerCreating" in str(pod)], "the pod")
    kubelet.put_event(pod, "FailedCreatePodSandBox", "plugin type=calico failed")

    found = inspect_run(site.connection, site.namespace, setup.run.run_id, setup.store.url, 1)

    assert found == (True, ["Jobs: 1 waiting", "  1 waiting: FailedCreatePodSandBox: plugin type=calico failed"])


def test_status_tells_what_runs_and_why_the_rest_waits(site: Site, call_main: CallMain) -> None:
    def decide(pod: Pod) -> str:
        return {0: "ok", 1: "hang", 2: "image"}[read_seed(pod)]

    site.start_kubelet(decide, num_nodes=3)
    setup = site.make_setup(make_cells(3))
    large = make_profile(site.namespace)
    pool = large.pools["cpu"].model_copy(update={"cpus": 64})
    setup_large = site.make_setup(
        make_cells(2), profile=large.model_copy(update={"pools": {"cpu": pool}}), run_id="large"
    )
    queued = site.make_setup(make_cells(2), run_id="queued", queue="team")
    for started in (setup, setup_large, queued):
        started.submit()
    wait_for(lambda: setup.count_ready() == 1 and list_ended(setup), "one that runs and one that ended")
    wait_for(lambda: "ImagePullBackOff" in str(setup.list_pods()), "the pod without an image")
    wait_for(lambda: str(setup.list_pods()).count("Unschedulable") >= 2, "two without a node")

    lines = run_status(call_main, site.namespace, site.store)
    assert lines[1] == "Jobs: 1 finished, 1 running, 1 waiting"
    assert lines[2] == '  1 waiting: ImagePullBackOff: Back-off pulling image "x": not found'
    assert re.fullmatch(r"[0-9.]+ finish per minute, about .* left", lines[3])
    lines = run_status(call_main, "large", site.store)
    assert lines[1] == "Jobs: 2 waiting"
    assert lines[2].startswith("  2 waiting: 0/")
    assert "Insufficient cpu" in lines[2]
    assert run_status(call_main, "queued", site.store) == [
        "queued: 2 repeats: 2 not there yet",
        "Jobs: 2 queued by Kueue",
        "  2 queued: the cluster has no Kueue (kueue.x-k8s.io), which would start them",
    ]


def run_status(call_main: CallMain, run_id: str, store: Store) -> list[str]:
    code, out, err = call_main("status", run_id, "--store", store.url, "--on", "current")
    assert (code, err) == (0, "")
    return out.splitlines()


def test_the_rate_is_that_of_the_last_ten_minutes() -> None:
    def make_job(state: str, ended: int | None) -> JobStatus:
        at = NOW + timedelta(minutes=ended or 0)
        return replace(load_job(state), created_at=at - timedelta(minutes=1), ended_at=at if ended else None)

    jobs, unfinished = [make_job("complete", minute) for minute in range(-29, 0)], [make_job("running", None)]
    # Ends at the minutes -10, -9, ... -1 before now.
    assert measure_rate(jobs + unfinished, NOW) == 10 / 600
    assert measure_rate(unfinished, NOW) is None
