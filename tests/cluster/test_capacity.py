"""Waiting for nodes, lists in pages, and the deletion of recorded Jobs, on a real API server."""

from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import parse_qs

import pytest
from rich.console import Console
from runs import DEADLINE_SECONDS, Observed, Site, check_all_once, make_cells, make_profile, wait_for

from bench.store import parse_placement_key, placements_prefix
from fake_kubelet import Pod
from faulty_server import Fault, FaultyServer
from runner.kubernetes import connection as connections
from runner.kubernetes import submission
from runner.kubernetes.connection import Connection
from runner.profiles.loading import load_profile
from runner.runs import Retries

# Waiting


def test_no_more_jobs_wait_than_the_nodes_can_take_next(site: Site) -> None:
    kubelet = site.start_kubelet(num_nodes=1)
    kubelet.may_end.clear()
    profile = make_profile(site.namespace, pools=load_profile("kind").pools)
    setup = site.make_setup(make_cells(6), profile=profile)
    running = setup.start()
    wait_for(setup.count_ready, "a cell that runs")
    num_ticks = setup.observed.num_ticks
    wait_for(lambda: setup.observed.num_ticks >= num_ticks + 2, "another look")
    assert len(setup.list_jobs()) == 2  # it was all 6 before in flight followed the nodes

    kubelet.may_end.set()
    running.result(DEADLINE_SECONDS)
    check_all_once(setup, kubelet, 6)


def test_with_a_deadline_a_job_that_no_node_takes_is_created_again_until_one_does(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submission, "MIN_REQUEUE_SECONDS", 1.0)
    kubelet = site.start_kubelet()
    profile = make_profile(site.namespace, pools=load_profile("kind").pools)
    setup = site.make_setup(make_cells(1), profile=profile, unschedulable_seconds=1)
    setup.run = setup.run.model_copy(update={"created_at": datetime.now(UTC)})
    run = replace(setup.make_cluster_run(), deadline_seconds=86_400.0, is_requeued=True)
    seen: set[str] = set()

    class AddingNode(Observed):
        """Adds a node when the second Job waits."""

        def tick(self, jobs: object) -> None:
            seen.update(job["metadata"]["uid"] for job in setup.list_jobs())
            if len(seen) == 2 and not kubelet.nodes:
                kubelet.add_node(f"late-{site.namespace}")

    observed = setup.observed = AddingNode()
    run.measure(setup.run, site.connection, observed, Console(quiet=True))

    assert len(seen) >= 2
    check_all_once(setup, kubelet, 1)
    first, *others = observed.warnings
    assert first.startswith("no node can take a cell of the pool cpu at present: 2 of its Jobs are submitted at once")
    assert [warning for warning in others if "no node took the pod" not in warning] == []


# Lists


def test_a_runner_reads_lists_by_the_page_and_no_pod_that_has_succeeded(
    site: Site, faulty: FaultyServer, through: Connection
) -> None:
    kubelet = site.start_kubelet(num_nodes=1)
    setup = site.make_setup(make_cells(2))
    asked: list[tuple[str, dict[str, list[str]]]] = []

    def note(method: str, path: str) -> Fault | None:
        place, _, query = path.partition("?")
        if method == "GET":
            asked.append((place.rpartition("/")[2], parse_qs(query)))
        return None

    faulty.choose_fault = note
    setup.start(through).result(DEADLINE_SECONDS)

    check_all_once(setup, kubelet, 2)
    lists = {kind: query for kind, query in asked if kind in ("jobs", "pods") and "watch" not in query}
    assert lists.keys() == {"jobs", "pods"}
    assert all(int(query["limit"][0]) == connections.PAGE_SIZE for query in lists.values())
    of_pods = [query["fieldSelector"][0] for kind, query in asked if kind == "pods"]
    assert set(of_pods) == {"status.phase!=Succeeded"}


# Deletion


def test_recorded_jobs_are_deleted_in_batches_and_nothing_is_lost_or_run_twice(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submission, "NUM_KEPT", 1)
    monkeypatch.setattr(submission, "BATCH_SIZE", 4)

    def fail_one(pod: Pod) -> str:
        return "crash" if '"seed":1' in str(pod["spec"]) else "ok"

    kubelet = site.start_kubelet(fail_one, num_nodes=2)
    profile = make_profile(site.namespace, ttl_seconds_after_finished=3600)
    setup = site.make_setup(make_cells(8), repeats=2, profile=profile, max_in_flight=4)

    setup.measure()

    wait_for(lambda: len(setup.list_jobs()) <= 8, "Jobs that are deleted")
    assert sorted(result.status for result in setup.observed.results) == ["failed"] * 2 + ["ok"] * 14
    assert set(setup.count_records().values()) == {1}
    assert set(kubelet.measured.values()) == {1}
    assert setup.connection.num_requests["deletecollection jobs"] <= 8
    placed = [parse_placement_key(key) for key in site.store.list_keys(placements_prefix(setup.run.run_id))]
    assert len(placed) >= 8  # those of deleted Jobs were written before

    assert setup.measure().results == []
    assert set(kubelet.measured.values()) == {1}


def test_finished_jobs_of_an_earlier_runner_are_deleted_too(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = {"crash"}

    def fail_one(pod: Pod) -> str:
        return ends.pop() if ends and '"seed":1' in str(pod["spec"]) else "ok"

    site.start_kubelet(fail_one, num_nodes=2)
    setup = site.make_setup(make_cells(4), max_in_flight=4)
    setup.measure()
    assert len(setup.list_jobs()) == 4
    monkeypatch.setattr(submission, "NUM_KEPT", 0)
    monkeypatch.setattr(submission, "BATCH_SIZE", 3)
    setup.retries = Retries(failed=True)

    setup.measure()

    # Left: the Job that failed, whose repeat the second runner measured, and its own.
    wait_for(lambda: len(setup.list_jobs()) <= 2, "Jobs that are deleted")
    assert sorted(setup.count_records().values()) == [1, 1, 1, 2]
