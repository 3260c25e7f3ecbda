"""What keeps cells from running: reported in the cluster's own words, waited for, and at last given up."""

import re
from types import SimpleNamespace

import pytest
from commands import patch
from disruptions import LostNode, check_measured_again
from runs import DEADLINE_SECONDS, Setup, Site, check_all_once, make_cells, set_quota, wait_for

from runner.kubernetes import failures


@pytest.fixture(autouse=True)
def warn_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the session ask, warn and try again after a second rather than ten."""
    for name in ("submission.QUOTA_PAUSE_SECONDS", "failures.ASK_SECONDS", "failures.WARN_SECONDS"):
        monkeypatch.setattr(f"runner.kubernetes.{name}", 1.0)


# Quotas


@pytest.mark.parametrize("counted", ["count/jobs.batch", "count/pods"])
def test_finished_jobs_make_room_for_others_in_a_quota_that_counts_them(site: Site, counted: str) -> None:
    kubelet = site.start_kubelet(num_nodes=4)
    set_quota(site.connection, site.namespace, **{counted: "4"})
    setup = site.make_setup(make_cells(12))  # whose finished Jobs stay for a day

    setup.measure()

    check_all_once(setup, kubelet, 12)
    assert len(setup.list_jobs()) <= 4 if counted == "count/jobs.batch" else len(setup.list_pods()) <= 4
    assert len(setup.observed.warnings) == 1
    assert f"exceeded quota: small, requested: {counted}=1" in setup.observed.warnings[0]


def test_a_quota_on_cores_is_told_in_the_job_controllers_words_and_waited_for(site: Site) -> None:
    kubelet = site.start_kubelet(num_nodes=4)
    set_quota(site.connection, site.namespace, **{"requests.cpu": "0"})
    setup = site.make_setup(make_cells(3))
    running = setup.start()
    wait_for(lambda: setup.observed.warnings, "a warning")

    path = f"/api/v1/namespaces/{site.namespace}/resourcequotas/small"
    patch(site.connection, path, {"spec": {"hard": {"requests.cpu": "4"}}})
    running.result(DEADLINE_SECONDS)

    check_all_once(setup, kubelet, 3)
    assert len(setup.observed.warnings) == 1  # not one for each Job
    assert "is forbidden: exceeded quota: small, requested: requests.cpu=1" in setup.observed.warnings[0]


# Nodes


def test_what_no_node_takes_is_told_in_the_schedulers_words_and_given_up(site: Site) -> None:
    kubelet = site.start_kubelet()
    kubelet.add_node(f"small-{site.namespace}", capacity={"cpu": "500m"})
    setup = site.make_setup(make_cells(3), unschedulable_seconds=4)

    setup.measure()

    assert [("failed", "unschedulable")] * 3 == [
        (result.status, result.error.kind) for result in setup.observed.results if result.error
    ]
    assert len(setup.observed.warnings) == 1  # not one for each cell
    words = r"no node took the pod: 0/\d nodes are available: .*1 Insufficient cpu.* \(waiting: conv6-.*, for example\)"
    assert re.fullmatch(words, setup.observed.warnings[0])
    assert set(setup.count_records().values()) == {1}
    assert setup.list_jobs() == []
    wait_for(lambda: not setup.list_pods(), "pods that are gone")


def test_a_pod_that_waits_for_its_turn_is_not_given_up(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The session's clock is the test's, so that it does not matter how long the scheduler takes."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr("runner.kubernetes.failures.time", SimpleNamespace(monotonic=lambda: clock.now))
    kubelet = site.start_kubelet(num_nodes=1)
    kubelet.may_end.clear()
    setup = site.make_setup(make_cells(2), unschedulable_seconds=2)
    running = setup.start()
    wait_for(lambda: count_waiting(setup) == 1 and count_ready(setup) == 1, "one cell that runs and one that waits")
    for _ in range(3):
        clock.now += 10.0
        num_ticks = setup.observed.num_ticks
        wait_for(lambda num=num_ticks: setup.observed.num_ticks >= num + 2, "another look at the pods")  # type: ignore[misc]
    kubelet.may_end.set()
    running.result(DEADLINE_SECONDS)

    check_all_once(setup, kubelet, 2)
    assert setup.observed.warnings == []


def count_ready(setup: Setup) -> int:
    """Return how many cells run, as far as the session knows."""
    return sum(tracked.job is not None and tracked.job.num_ready for tracked in setup.observed.jobs)


def count_waiting(setup: Setup) -> int:
    """Return how many pods no node takes, as far as the session knows."""
    return sum(bool(pod.unschedulable) for tracked in setup.observed.jobs for pod in tracked.pods.values())


def test_a_secret_that_is_missing_is_told_and_waited_for_a_moment(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(failures.WAITING, "CreateContainerConfigError", ("bad-configuration", 3.0))
    site.start_kubelet(lambda pod: "secret", num_nodes=1)
    setup = site.make_setup(make_cells(1))

    setup.measure()

    (result,) = setup.observed.results
    assert result.error is not None
    assert (result.status, result.error.kind) == ("failed", "bad-configuration")
    message = 'the pod cannot be created: CreateContainerConfigError: secret "benchmatrix-store" not found'
    assert result.error.message == message
    assert [message] == [warning.partition(" (waiting: ")[0] for warning in setup.observed.warnings]
    assert setup.list_jobs() == []


def test_a_node_that_goes_silent_is_told_about_and_its_cell_measured_again_when_it_is_deleted(
    lost_node: LostNode,
) -> None:
    lost_node.running.result(DEADLINE_SECONDS)

    (warning,) = lost_node.setup.observed.warnings
    assert f"node {lost_node.node} does not say that it has" in warning
    check_measured_again(lost_node.setup, lost_node.kubelet)
