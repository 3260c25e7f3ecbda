"""Two runners of one run at once, by mistake: no Job is created twice, each repeat has one record, both end well."""

import pytest
from disruptions import FirstHangs, forget_watches, keep_watches_shut
from runs import DEADLINE_SECONDS, Setup, Site, make_cells, wait_for

from fake_kubelet import Pod
from faulty_server import FaultyServer
from runner.kubernetes.cleanup import JobCleaner, RunCancelled
from runner.kubernetes.connection import Connection


def make_twins(site: Site, number: int, **options: object) -> list[Setup]:
    """Return two runners of the same run."""
    return [site.make_setup(make_cells(number), **options) for _ in range(2)]


def test_two_runners_share_a_run(site: Site) -> None:
    def decide(pod: Pod) -> str:
        return "crash" if '"seed":3' in str(pod["spec"]) else "ok"

    kubelet = site.start_kubelet(decide, num_nodes=6)
    twins = make_twins(site, 30)

    other = Connection(context=site.connection.context, patience_seconds=DEADLINE_SECONDS)
    running = [twin.start(used) for twin, used in zip(twins, (site.connection, other), strict=True)]
    ends = [done.result(DEADLINE_SECONDS) for done in running]

    for observed in ends:
        assert {result.status for result in observed.results} == {"ok", "failed"}
        assert observed.warnings == []
    assert list(twins[0].count_records().values()) == [1] * 30
    assert list(kubelet.measured.values()) == [1] * 30
    assert len(twins[0].list_jobs()) == 30


def test_cancel_stops_both_even_if_one_sees_nothing_at_present(
    site: Site, faulty: FaultyServer, through: Connection
) -> None:
    site.start_kubelet(FirstHangs(3), num_nodes=3)
    twins = make_twins(site, 12, max_in_flight=3)
    seeing, blind = (twin.start(used) for twin, used in zip(twins, (site.connection, through), strict=True))
    wait_for(lambda: twins[0].count_ready() == 3, "cells that run")
    keep_watches_shut(faulty)
    num_before = through.num_requests["create jobs"]

    run_id = twins[0].run.run_id
    cleaner = JobCleaner(connection=site.connection, namespace=site.namespace, run_id=run_id, store=site.store)
    counts = cleaner.cancel()[0]
    forget_watches(faulty)

    for running in (seeing, blind):
        with pytest.raises(RunCancelled):
            running.result(DEADLINE_SECONDS)
    assert counts.num_deleted >= 3
    assert counts.num_left == 0
    assert through.num_requests["create jobs"] == num_before
    assert not [warning for twin in twins for warning in twin.observed.warnings if "created again" in warning]
    assert twins[0].list_jobs() == []

    again = twins[0].measure()  # the mark is of an earlier cancellation now

    assert [result.status for result in again.results] == ["ok"] * 12
