"""Pods of cells whose Job is gone: their record is waited for, `clean` deletes the run's own."""

import pytest
from disruptions import orphan
from runs import DEADLINE_SECONDS, Site, check_all_once, make_cells, wait_for

from runner.kubernetes.cleanup import RunCancelled
from workspace import CallMain


def test_clean_deletes_the_pods_of_a_run_whose_job_is_gone(site: Site, call_main: CallMain) -> None:
    kubelet = site.start_kubelet(lambda pod: "hang", num_nodes=2)
    kubelet.may_end.clear()
    setup, other = site.make_setup(make_cells(1)), site.make_setup(make_cells(1), run_id="other")
    running = setup.start()
    pod = orphan(setup)
    other.submit()
    words = ("clean", *site.words)

    code, _, err = call_main(*words)
    assert code == 2
    assert (
        f"error: run {site.namespace}: 1 of its 1 Jobs, and pods without a Job, are not finished, such as {pod}; "
        in err
    )

    assert "0 Jobs deleted" in call_main(*words, "--force")[1]
    with pytest.raises(RunCancelled):  # though nobody has ended what it waits for
        running.result(DEADLINE_SECONDS)
    wait_for(lambda: pod not in str(setup.list_pods()), "the pod to be gone")
    assert len(other.list_jobs()) == 1


def test_a_job_deleted_without_its_pod_is_not_made_again_while_that_pod_measures(site: Site) -> None:
    kubelet = site.start_kubelet(num_nodes=2)
    kubelet.may_end.clear()
    setup = site.make_setup(make_cells(1))
    running = setup.start()
    pod = orphan(setup)

    (warning,) = wait_for(lambda: list(setup.observed.warnings), "a warning")
    kubelet.may_end.set()
    running.result(DEADLINE_SECONDS)

    assert f"was deleted without its pod {pod}, which runs on" in warning
    assert setup.list_jobs() == []
    check_all_once(setup, kubelet, 1)
