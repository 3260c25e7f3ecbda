"""Cells that a real Kueue evicts in mid-measurement: quota that its owner takes back, a queue that is drained."""

from disruptions import FirstHangs, check_measured_again
from queues import Queues
from runs import Setup, Site, make_cells, wait_for

from bench.errors import EXIT_PREEMPTED
from runner.kubernetes.names import RUN_LABEL

TWO = {"cpu": "2", "memory": "6Gi", "ephemeral-storage": "1Ti"}
"""Enough for two cells of the profile `kind`."""


def count_running(setup: Setup) -> int:
    jobs = [job for job in setup.list_jobs() if job["metadata"]["labels"][RUN_LABEL] == setup.run.run_id]
    return sum(bool(job["status"].get("ready")) for job in jobs)


def test_a_reclaimed_cell_is_measured_again_and_counted_as_disrupted(site: Site, queues: Queues) -> None:
    flavor, cohort = queues.add_flavor(), site.namespace
    reclaiming = {"reclaimWithinCohort": "Any"}
    queues.add("team-a", {flavor: TWO}, cohort=cohort, preemption=reclaiming)
    queues.add("team-b", {flavor: TWO}, cohort=cohort, preemption=reclaiming)
    kubelet = site.start_kubelet(num_nodes=4, killed_exit_code=EXIT_PREEMPTED)
    kubelet.may_end.clear()
    first, second = (
        site.make_setup(make_cells(number), run_id=f"{site.namespace}-{team}", queue=team)
        for number, team in ((5, "team-a"), (2, "team-b"))
    )

    borrowing = first.start()
    wait_for(lambda: count_running(first) == 4, "a team to run on the other's quota as well")
    reclaiming_run = second.start()
    wait_for(lambda: count_running(second) == 2, "the other team to get its quota back")
    kubelet.may_end.set()
    borrowing.result()
    reclaiming_run.result()

    assert [result.status for result in first.observed.results] == ["ok"] * 5
    assert sorted(first.count_records().values()) == [1] * 5
    assert first.observed.disrupted.total() == 2
    assert second.observed.disrupted.total() == 0
    assert list(kubelet.measured.values()) == [1] * 7


def test_a_queue_that_is_drained_lets_go_of_its_cell_and_takes_it_again(site: Site, queues: Queues) -> None:
    name = queues.add("drained", {queues.add_flavor(): TWO})
    decide = FirstHangs()
    kubelet = site.start_kubelet(decide, num_nodes=1, killed_exit_code=EXIT_PREEMPTED)
    setup = site.make_setup(make_cells(1), queue="drained")

    running = setup.start()
    decide.await_running(setup)
    queues.patch(name, stopPolicy="HoldAndDrain")
    wait_for(lambda: not setup.list_pods(), "its pod to be deleted")
    wait_for(lambda: setup.list_jobs()[0]["spec"]["suspend"], "its Job to be suspended")
    queues.patch(name, stopPolicy="None")
    running.result()

    check_measured_again(setup, kubelet)
