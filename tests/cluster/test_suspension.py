"""Jobs that somebody suspends, on a real API server without Kueue: what the runner says, and what it counts."""

from commands import patch
from disruptions import FirstHangs, check_measured_again
from runs import Setup, Site, make_cells, wait_for

from bench.errors import EXIT_PREEMPTED


def suspend(setup: Setup, *, is_suspended: bool) -> None:
    """Suspend the one Job, or start it, as Kueue does."""
    (job,) = setup.list_jobs()
    path = f"/apis/batch/v1/namespaces/{setup.profile.namespace}/jobs/{job['metadata']['name']}"
    patch(setup.connection, path, {"spec": {"suspend": is_suspended}})


def test_a_job_suspended_in_mid_measurement_is_measured_again_and_counted(site: Site) -> None:
    decide = FirstHangs()
    kubelet = site.start_kubelet(decide, num_nodes=1, killed_exit_code=EXIT_PREEMPTED)
    setup = site.make_setup(make_cells(1), queue="team")

    running = setup.start()
    (warning,) = wait_for(lambda: setup.observed.warnings, "a warning that nothing starts the Job")
    suspend(setup, is_suspended=False)
    decide.await_running(setup)
    suspend(setup, is_suspended=True)
    wait_for(lambda: not setup.list_pods(), "its pod to be deleted")
    suspend(setup, is_suspended=False)
    running.result()

    assert "the cluster has no Kueue (kueue.x-k8s.io), which would start them" in warning
    check_measured_again(setup, kubelet)
