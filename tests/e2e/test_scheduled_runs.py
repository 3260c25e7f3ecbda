"""The chart on a cluster with real pods: doctor, and scheduled runs started by hand up to their reports."""

from collections.abc import Callable

import helm_python
from chart_release import (
    RELEASE,
    await_scheduled_run,
    list_runners,
    make_schedule_values,
    read_log,
    start_scheduled_run,
)
from real_cluster import RealCluster, is_running_for, wait_for

from bench.schema import Run
from bench.store import LATEST_REPORT_KEY, LATEST_RUN_KEY, parse_result_key, report_key, results_prefix
from chart import CHART

MATRIX = {
    "name": "scheduled",
    "axes": {"model": ["conv6"], "phase": ["train", "infer"], "framework": ["jax"]},
    "defaults": {
        "device": "cpu",
        "batch_size": 8,
        "num_warmup_steps": 2,
        "num_steps": 10,
        "min_seconds": 5,
        "repeats": 2,
        "timeout_seconds": 120,
    },
}


def check_scheduled_run(real_cluster: RealCluster, name: str) -> Run:
    """Check that every repeat has one record and that the newest report is this run's; return the run."""
    keys = [parse_result_key(key) for key in real_cluster.store.list_keys(results_prefix(name))]
    assert len(keys) == len({(key.cell_id, key.repeat) for key in keys if key}) == 4
    assert {result.status for result in real_cluster.read_results(name)} == {"ok"}
    latest = Run.model_validate_json(real_cluster.store.get(LATEST_RUN_KEY))
    assert latest.run_id == name
    assert latest.ending is not None
    assert (latest.ending.num_repeats, latest.ending.missing) == ({"ok": 4}, ())
    report = real_cluster.store.get(LATEST_REPORT_KEY)
    assert report == real_cluster.store.get(report_key(name))
    assert b"4 of 4 repeats ok" in report
    return latest


def test_two_scheduled_runs_report_and_a_runner_that_is_deleted_is_replaced(
    real_cluster: RealCluster, provide_image: Callable[[str], str], helm: helm_python.Config
) -> None:
    values = make_schedule_values(real_cluster, provide_image("control"), provide_image("jax:cpu"), MATRIX)
    helm.install(CHART, RELEASE, values)
    print(helm.test(RELEASE, timeout=120, logs=True)["logs"])

    start_scheduled_run(real_cluster, "first-run")
    first = await_scheduled_run(real_cluster, "first-run")

    assert first["status"].get("succeeded") == 1, first["status"]
    run = check_scheduled_run(real_cluster, "first-run")
    assert run.git_revision is not None

    start_scheduled_run(real_cluster, "second-run")
    real_cluster.wait_for_pod(lambda pod: is_running_for(pod, "-train-", 3.0))
    (runner,) = list_runners(real_cluster, "second-run")
    real_cluster.connection.request(
        "delete", f"/api/v1/namespaces/{real_cluster.namespace}/pods/{runner['metadata']['name']}"
    )
    second = await_scheduled_run(real_cluster, "second-run")

    assert second["status"].get("succeeded") == 1, second["status"]
    check_scheduled_run(real_cluster, "second-run")
    (replaced,) = list_runners(real_cluster, "second-run")
    assert runner["metadata"]["uid"] != replaced["metadata"]["uid"]
    log = read_log(real_cluster.connection, real_cluster.namespace, replaced["metadata"]["name"])
    assert "run second-run is resumed" in log

    helm.uninstall(RELEASE)

    jobs = f"/apis/batch/v1/namespaces/{real_cluster.namespace}/jobs"
    wait_for(lambda: not real_cluster.connection.list_items(jobs), "runners and cells to be gone")
    check_scheduled_run(real_cluster, "second-run")  # the bucket keeps them
