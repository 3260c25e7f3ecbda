"""Nights as real pods: three scheduled runs of the chart, of which the last has one cell slowed, end in one alarm."""

import json
import os
import subprocess
from collections.abc import Callable, Collection
from statistics import median

import helm_python
from chart_release import RELEASE, await_scheduled_run, make_schedule_values, start_scheduled_run
from pod_quota import lower_cpu_quota
from real_cluster import PROGRAM, ROOT, RealCluster

from bench.schema import Alarm, AlarmedChange, Result
from bench.store import LATEST_REPORT_KEY, report_key
from chart import CHART
from collector.changes import read_history
from runner.commands.options import EXIT_NOT_OK
from webhook_receiver import receive

MATRIX = {
    "name": "nights",
    "axes": {"model": ["conv6"], "phase": ["train", "infer"], "framework": ["jax"]},
    "defaults": {
        "device": "cpu",
        "batch_size": 8,
        "num_warmup_steps": 2,
        "num_steps": 10,
        "min_seconds": 3,
        "repeats": 2,
        "timeout_seconds": 300,
    },
}
LAST = "night-3"
SLOWED = "-train-"
CORES = 0.3
"""Of the one that the cells ask for: slower by far more than a third, less than which two nights before cannot confirm
(docs/nights.md), and so few that a busy neighbour leaves them to the cell."""
NIGHT_SECONDS = 3600.0
"""A night that takes longer, its confirmation of 10 repeats included, has failed."""
WEBHOOK_VARIABLE = "BENCHMATRIX_WEBHOOK_0"
"""As the chart calls that of its first webhook: the same name is the same channel."""


def measure_night(real_cluster: RealCluster, name: str) -> None:
    """Measure a night as its CronJob would, and print what its repeats were."""
    start_scheduled_run(real_cluster, name)
    job = await_scheduled_run(real_cluster, name, NIGHT_SECONDS)
    print_repeats(real_cluster.read_results(name))
    assert job["status"].get("succeeded") == 1, job["status"]


def print_repeats(results: list[Result]) -> None:
    for result in sorted(results, key=lambda result: (result.cell_id, result.repeat)):
        assert result.status == "ok", result.error
        assert result.samples is not None
        assert result.validity is not None
        assert result.cpu_use is not None
        use = result.cpu_use
        print(
            f"{result.run_id} {result.finished_at:%H:%M:%S} {result.cell_id} {result.repeat}: median step "
            f"{1000 * median(result.samples.step_seconds):.2f} ms, {result.validity.verdict}, own cores "
            f"{use.own_cores:.2f}, others {use.other_cores}, stopped for {use.throttled_seconds} of "
            f"{use.window_seconds:.1f} s"
        )


def watch_again(real_cluster: RealCluster, url: str) -> "subprocess.CompletedProcess[str]":
    """Look at the newest night once more, with the webhook that has the alarm already."""
    command = [*PROGRAM, "watch", "--store", real_cluster.store_url, "--webhook", f"json:{WEBHOOK_VARIABLE}"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), WEBHOOK_VARIABLE: url}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def check_alarm(body: bytes) -> AlarmedChange:
    """Check that an alarm tells of the slowed cell alone, with the quota as what changed; return what it tells."""
    print(json.dumps(json.loads(body), indent=1))
    (regression,) = Alarm.model_validate_json(body).regressions
    (cell_id,) = regression.cell_ids
    assert SLOWED in cell_id
    assert regression.since_run_id == LAST
    assert regression.shift.low > 1
    changes = [(part.what, part.before, part.after) for part in regression.changes]
    assert ("cpu_quota_cores", "1.0", str(CORES)) in changes
    return regression


def check_confirmation(real_cluster: RealCluster, regression: AlarmedChange, slowed: Collection[str]) -> None:
    """Check that the slowed cell alone was measured again, and that all of its pods were slowed."""
    assert regression.confirmation_run_id is not None
    repeats = real_cluster.read_results(regression.confirmation_run_id)
    print_repeats(repeats)
    (cell_id,) = regression.cell_ids
    assert {result.cell_id for result in repeats} == {cell_id}
    night = [result for result in real_cluster.read_results(LAST) if result.cell_id == cell_id]
    assert {result.attempt for result in [*repeats, *night]} <= set(slowed)
    assert [change.suspicion.cell_ids for change in read_history(real_cluster.store, "nights").changes] == [(cell_id,)]


def check_report(real_cluster: RealCluster) -> None:
    """Check that the report at the stable key is that of the last night, and says what became of its change."""
    report = real_cluster.store.get(LATEST_REPORT_KEY)
    assert report == real_cluster.store.get(report_key(LAST))
    assert b"Changes over the nights" in report
    assert b"measured again, it is slower by" in report


def test_a_cell_that_is_slowed_in_the_third_night_is_measured_again_and_told_once(
    real_cluster: RealCluster,
    provide_image: Callable[[str], str],
    helm: helm_python.Config,
    own_node: None,
    host: str,
) -> None:
    control, jax = provide_image("control"), provide_image("jax:cpu")
    with receive(host) as receiver:
        real_cluster.make_secret("alarms", {"url": receiver.url})
        webhooks = [{"kind": "json", "secret": "alarms", "key": "url"}]
        values = make_schedule_values(real_cluster, control, jax, MATRIX, watch={"webhooks": webhooks})
        helm.install(CHART, RELEASE, values)
        for name in ("night-1", "night-2"):
            measure_night(real_cluster, name)
        assert receiver.bodies == []

        with lower_cpu_quota(real_cluster, SLOWED, CORES) as slowed:
            measure_night(real_cluster, LAST)
        again = watch_again(real_cluster, receiver.url)

    print(again.stdout)
    assert again.returncode == EXIT_NOT_OK, again.stderr
    (body,) = receiver.bodies
    regression = check_alarm(body)
    check_confirmation(real_cluster, regression, slowed)
    check_report(real_cluster)
