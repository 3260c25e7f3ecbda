"""Pods of cells whose Job is gone: their record is waited for, `clean` deletes the run's own."""

import pytest
from disruptions import orphan
from runs import DEADLINE_SECONDS, MakeSetup, StartKubelet, check_all_once, make_cells, wait_for

from bench.store import Store
from runner.kubernetes.cleanup import RunCancelled
from workspace import CallMain


def test_clean_deletes_the_pods_of_a_run_whose_job_is_gone(
    make_setup: MakeSetup, namespace: str, store: Store, start_kubelet: StartKubelet, call_main: CallMain
) -> None:
    kubelet = start_kubelet(lambda pod: "hang", num_nodes=2)
    kubelet.may_end.clear()
    setup, other = make_setup(make_cells(1)), make_setup(make_cells(1), run_id="other")
    running = setup.start()
    pod = orphan(setup)
    other.submit()
    words = ("clean", namespace, "--on", "current", "--store", store.url)

    code, _, err = call_main(*words)
    assert code == 2
    assert f"error: run {namespace}: 1 of its 1 Jobs, and pods without a Job, are not finished, such as {pod}; " in err

    assert "0 Jobs deleted" in call_main(*words, "--force")[1]
    with pytest.raises(RunCancelled):  # though nobody has ended what it waits for
        running.result(DEADLINE_SECONDS)
    wait_for(lambda: pod not in str(setup.list_pods()), "the pod to be gone")
    assert len(other.list_jobs()) == 1


def test_a_job_deleted_without_its_pod_is_not_made_again_while_that_pod_measures(
    make_setup: MakeSetup, start_kubelet: StartKubelet
) -> None:
    kubelet = start_kubelet(num_nodes=2)
    kubelet.may_end.clear()
    setup = make_setup(make_cells(1))
    running = setup.start()
    pod = orphan(setup)

    (warning,) = wait_for(lambda: list(setup.observed.warnings), "a warning")
    kubelet.may_end.set()
    running.result(DEADLINE_SECONDS)

    assert f"was deleted without its pod {pod}, which runs on" in warning
    assert setup.list_jobs() == []
    check_all_once(setup, kubelet, 1)
