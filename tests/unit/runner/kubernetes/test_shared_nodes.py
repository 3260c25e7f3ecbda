"""Cells that are compared go to one node: which are held back, when they are let go, and where they may run."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from bench.schema import Cell, PlannedCell
from cluster_objects import load_job, load_pod
from collector.comparisons import COMPARISONS
from collector.results.cells import PROTOCOL_FIELDS, SHARING_FIELDS
from collector.results.frames import CELL_COLUMNS
from factories import make_cell, make_run
from node_faults import make_node_fault
from runner.kubernetes.dispatcher import Dispatcher
from runner.kubernetes.names import JobKey
from runner.kubernetes.nodes import BLOCK_FIELDS, BlockKey, FormerNode, NodeHealth, SharedNodes, identify_block
from runner.kubernetes.rendering import ANY_NODE, AvoidedNodes, NodeWish
from runner.kubernetes.tracked_jobs import TrackedJob
from runner.matrix.plan import Repeat

EAGER, GRAPH = make_cell(), make_cell(framework="tensorflow", mode="graph")
OTHER_BATCH = make_cell(batch_size=128)
NOW = datetime(2026, 11, 22, 6, tzinfo=UTC)
TYPES = {"node-1": "m6i.xlarge"}


def track(cell: Cell, number: int = 1) -> TrackedJob:
    planned = PlannedCell(cell=cell, repeats=3, timeout_seconds=60.0)
    key = JobKey(run_id="demo", cell_id=cell.cell_id, number=number, retry_round=0)
    return TrackedJob(repeat=Repeat(planned=planned, number=number), key=key)


class Sharing:
    """Shared nodes whose submissions and deletions are kept."""

    def __init__(
        self,
        *jobs: TrackedJob,
        patience_seconds: float = 300.0,
        former: Mapping[BlockKey, FormerNode] | None = None,
    ) -> None:
        self.warnings: list[str] = []
        self.let_go: list[TrackedJob] = []
        self.deleted: list[str] = []
        self.dispatcher = Dispatcher(warn_user=self.warnings.append, patience_seconds=1.0)
        self.nodes = SharedNodes(
            dispatcher=self.dispatcher,
            submit_next=self.let_go.append,
            delete_job=self.deleted.append,
            find_instance_type=TYPES.get,
            patience_seconds=patience_seconds,
            find_former_nodes=lambda keys: {key: node for key, node in (former or {}).items() if key in keys},
        )
        self.first = self.nodes.begin(jobs)

    def note(
        self,
        tracked: TrackedJob,
        node: str,
        *,
        uid: str = "",
        is_deleted: bool = False,
        is_being_deleted: bool = False,
        **fields: Any,
    ) -> None:
        given: dict[str, Any] = {"phase": "Running", "is_deleted": is_being_deleted} | fields
        pod = replace(load_pod("unschedulable"), uid=uid or tracked.name, node=node, **given)
        self.nodes.note_pod(tracked, pod, is_deleted=is_deleted)


def wait_in_vain(tracked: TrackedJob) -> None:
    """Have a Job's pod wait for a node."""
    tracked.state = "in-flight"
    tracked.pods = {"x": load_pod("unschedulable")}


def test_a_block_is_what_the_report_compares_on_one_kind_of_hardware() -> None:
    fields = {name for name in CELL_COLUMNS if name not in PROTOCOL_FIELDS}
    compared = [comparison for comparison in COMPARISONS if comparison.same_hardware and not comparison.derived]
    free = {name for found in compared for name in (found.field, *found.free)}
    assert free - {"num_gpus"} == {"framework", "mode", "precision"}
    # A cell with tenants is held against the cell alone, so it is in the same block.
    assert set(BLOCK_FIELDS) == fields - {"framework", "mode", "precision", *SHARING_FIELDS}


def test_cells_that_need_other_nodes_are_in_other_blocks() -> None:
    cells = [
        make_cell(device="gpu"),
        make_cell(device="gpu", tenants=2),
        make_cell(device="gpu", tenants=4),
        make_cell(device="gpu", tenants=2, sharing="mps"),
    ]
    assert len({identify_block(cell, 1) for cell in cells}) == 4
    assert identify_block(make_cell(tenants=2), 1) == identify_block(make_cell(), 1)


def test_the_first_of_each_block_and_round_goes_at_once_in_the_order_of_the_run() -> None:
    jobs = [track(GRAPH, 1), track(OTHER_BATCH, 1), track(EAGER, 1), track(EAGER, 2), track(GRAPH, 2)]
    assert Sharing(*jobs).first == [jobs[0], jobs[1], jobs[3]]
    assert Sharing(*jobs, patience_seconds=0.0).first == jobs


def test_the_next_of_a_block_goes_when_the_node_of_the_one_before_is_known_and_only_one_at_a_time() -> None:
    jobs = [track(EAGER), track(GRAPH), track(make_cell(mode="compiled"))]
    sharing = Sharing(*jobs)
    assert sharing.nodes.find_wish(jobs[0]) == ANY_NODE
    sharing.note(jobs[0], "", phase="Pending")
    assert sharing.let_go == []
    for phase in ("Pending", "Running", "Failed"):  # a pod is reported more than once
        sharing.note(jobs[0], "node-1", phase=phase)
    assert sharing.let_go == [jobs[1]]
    assert sharing.nodes.find_wish(jobs[1]) == NodeWish(node="node-1")
    sharing.note(jobs[1], "node-1")
    assert sharing.let_go == jobs[1:]


def test_a_block_whose_first_never_got_a_node_is_held_back_no_longer() -> None:
    jobs = [track(EAGER), track(GRAPH), track(make_cell(mode="compiled"))]
    sharing = Sharing(*jobs)
    sharing.nodes.note_end(jobs[0])
    assert sharing.let_go == jobs[1:]
    assert {sharing.nodes.find_wish(tracked) for tracked in jobs} == {ANY_NODE}


def test_one_that_another_runner_submitted_already_is_passed_over() -> None:
    jobs = [track(EAGER), track(GRAPH), track(make_cell(mode="compiled"))]
    sharing = Sharing(*jobs)
    jobs[1].state = "in-flight"
    sharing.note(jobs[0], "node-1")
    assert sharing.let_go == [jobs[2]]


def test_one_that_waits_too_long_is_released_to_a_node_of_the_same_type() -> None:
    jobs = [track(EAGER), track(GRAPH)]
    sharing = Sharing(*jobs, patience_seconds=1e-9)
    sharing.note(jobs[0], "node-1")
    sharing.nodes.find_wish(jobs[1])
    wait_in_vain(jobs[1])

    sharing.nodes.check()
    sharing.nodes.check()
    assert not jobs[1].is_released  # a cell of the run is on the node: it is a matter of its turn
    sharing.note(jobs[0], "node-1", is_deleted=True)
    sharing.nodes.check()
    sharing.nodes.check()

    sharing.dispatcher.run_next()
    assert sharing.deleted == [jobs[1].name]
    assert len(sharing.warnings) == 1
    assert "node node-1 has not taken a cell" in sharing.warnings[0]
    assert sharing.nodes.find_wish(jobs[1]) == NodeWish(instance_type="m6i.xlarge")


def test_a_node_that_is_left_out_for_its_faults_is_not_waited_for() -> None:
    jobs = [track(EAGER), track(GRAPH)]
    sharing = Sharing(*jobs)
    sharing.note(jobs[0], "node-1")
    avoided = AvoidedNodes(excluded=("node-1.internal",), names=frozenset({"node-1"}))
    assert sharing.nodes.find_wish(jobs[1], avoided) == NodeWish(instance_type="m6i.xlarge", avoided=avoided)
    others = AvoidedNodes(excluded=("node-2",), names=frozenset({"node-2"}))
    assert sharing.nodes.find_wish(jobs[1], others) == NodeWish(node="node-1", avoided=others)


def test_no_cell_is_bound_to_a_node_at_fault_however_often_it_was() -> None:
    jobs = [track(EAGER), track(GRAPH)]
    sharing = Sharing(*jobs)
    sharing.note(jobs[0], "node-1", phase="Failed")
    health = NodeHealth()
    health.add(make_node_fault(make_run(), node_name="node-1", pool="cpu", at=NOW), NOW)
    for tracked in jobs:  # the one that met the fault, too
        assert sharing.nodes.find_wish(tracked, health.find_avoided("cpu", NOW, {})).node == ""


@pytest.mark.parametrize("end", ["placed", "recorded"])
def test_one_that_has_its_node_or_its_record_is_not_released(end: str) -> None:
    jobs = [track(EAGER), track(GRAPH)]
    sharing = Sharing(*jobs, patience_seconds=1e-9)
    sharing.note(jobs[0], "node-1", is_deleted=True)
    sharing.nodes.find_wish(jobs[1])
    wait_in_vain(jobs[1])
    if end == "placed":
        jobs[1].pods = {}
    else:
        sharing.nodes.note_end(jobs[1])
    for _ in range(3):
        sharing.nodes.check()
    assert not jobs[1].is_released


def test_a_pod_that_replaces_one_on_a_lost_node_is_released_too() -> None:
    jobs = [track(EAGER), track(GRAPH)]
    sharing = Sharing(*jobs, patience_seconds=1e-9)
    sharing.note(jobs[0], "node-1", is_deleted=True)
    sharing.nodes.find_wish(jobs[1])
    sharing.note(jobs[1], "node-1", uid="lost", phase="Failed")
    wait_in_vain(jobs[1])
    for _ in range(2):
        sharing.nodes.check()
    assert jobs[1].is_released


def test_pods_that_went_while_nothing_was_watched_do_not_keep_a_node_busy() -> None:
    jobs: Sequence[TrackedJob] = [track(EAGER), track(GRAPH)]
    sharing = Sharing(*jobs, patience_seconds=1e-9)
    sharing.note(jobs[0], "node-1")
    sharing.nodes.find_wish(jobs[1])
    wait_in_vain(jobs[1])
    sharing.nodes.forget_pods()
    for _ in range(2):
        sharing.nodes.check()
    assert jobs[1].is_released


def test_a_job_that_an_earlier_runner_bound_to_a_node_is_released_too() -> None:
    (tracked,) = jobs = [track(GRAPH)]
    sharing = Sharing(*jobs, patience_seconds=1e-9)
    sharing.nodes.note_job(tracked, replace(load_job("running"), required_node="gone"))
    wait_in_vain(tracked)
    for _ in range(2):
        sharing.nodes.check()
    assert tracked.is_released
    sharing.nodes.note_job(tracked, load_job("running"))  # the one that was created in its place
    tracked.is_released = False
    for _ in range(2):
        sharing.nodes.check()
    assert not tracked.is_released


def test_a_pod_that_never_ends_on_a_lost_node_does_not_keep_the_node_busy() -> None:
    jobs = [track(EAGER), track(GRAPH)]
    sharing = Sharing(*jobs, patience_seconds=1e-9)
    sharing.note(jobs[0], "node-1")
    sharing.nodes.find_wish(jobs[1])
    wait_in_vain(jobs[1])
    sharing.nodes.check()
    sharing.note(jobs[0], "node-1", is_being_deleted=True)
    for _ in range(2):
        sharing.nodes.check()
    assert jobs[1].is_released


def test_a_runner_that_comes_back_sends_the_rest_of_a_block_to_the_node_of_its_finished_cells() -> None:
    jobs = [track(GRAPH), track(make_cell(mode="compiled")), track(OTHER_BATCH)]
    former = {identify_block(EAGER, 1): FormerNode(name="node-1", instance_type="m6i.xlarge")}
    sharing = Sharing(*jobs, former=former)
    assert sharing.first == [jobs[0], jobs[2]]
    assert sharing.nodes.find_wish(jobs[0]) == NodeWish(node="node-1")
    assert sharing.nodes.find_wish(jobs[2]) == ANY_NODE
    sharing.note(jobs[0], "node-1")
    assert sharing.let_go == [jobs[1]]
    assert sharing.nodes.find_wish(jobs[1]) == NodeWish(node="node-1")


def test_where_the_node_of_the_finished_cells_is_gone_the_rest_prefers_its_machine_type() -> None:
    jobs = [track(GRAPH), track(make_cell(mode="compiled"))]
    former = {identify_block(EAGER, 1): FormerNode(name="", instance_type="c3-standard-8")}
    sharing = Sharing(*jobs, former=former)
    assert sharing.nodes.find_wish(jobs[0]) == NodeWish(instance_type="c3-standard-8")
    sharing.note(jobs[0], "node-2")
    assert sharing.nodes.find_wish(jobs[1]) == NodeWish(node="node-2")


def test_the_rest_of_a_block_follows_a_job_that_an_earlier_runner_bound_to_a_node() -> None:
    jobs = [track(EAGER), track(GRAPH)]
    sharing = Sharing(*jobs)
    sharing.nodes.note_job(jobs[1], replace(load_job("running"), required_node="node-1"))
    assert sharing.nodes.find_wish(jobs[0]) == NodeWish(node="node-1")


def test_a_node_that_one_cell_waited_for_in_vain_is_waited_for_by_no_other_until_it_takes_one() -> None:
    jobs = [track(GRAPH), track(make_cell(batch_size=128, mode="graph", framework="tensorflow"))]
    former = {identify_block(cell, 1): FormerNode(name="gone", instance_type="") for cell in (EAGER, OTHER_BATCH)}
    sharing = Sharing(*jobs, patience_seconds=1e-9, former=former)
    assert sharing.nodes.find_wish(jobs[0]) == NodeWish(node="gone")
    wait_in_vain(jobs[0])
    for _ in range(2):
        sharing.nodes.check()
    assert jobs[0].is_released
    assert sharing.nodes.find_wish(jobs[1]) == ANY_NODE
    sharing.nodes.note_pod(None, replace(load_pod("unschedulable"), node="gone", phase="Running"), is_deleted=False)
    assert sharing.nodes.find_wish(jobs[1]) == NodeWish(node="gone")


def test_wishes_of_one_shape_differ_in_the_node_alone() -> None:
    wish = NodeWish(node="node-1")
    assert wish.shape == replace(wish, node="node-2").shape
    assert len({wish.shape, ANY_NODE.shape, NodeWish(instance_type="t").shape}) == 3
