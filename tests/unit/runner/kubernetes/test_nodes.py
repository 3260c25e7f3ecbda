"""Nodes at fault, and one node for what is compared."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any, cast

import pytest

from bench.exit_codes import EXIT_NODE_FAULT
from bench.schema import Cell, Node, NodeFault, PlannedCell
from bench.store import Store, placement_key
from cluster_objects import load_job, load_pod
from collector.comparisons import COMPARISONS
from collector.results.frames import CELL_COLUMNS, PROTOCOL_FIELDS, SHARING_FIELDS
from factories import make_cell, make_placement, make_result, make_run
from node_faults import make_node_fault
from runner.kubernetes.connection import ApiError, Connection
from runner.kubernetes.dispatcher import Dispatcher
from runner.kubernetes.names import JobKey
from runner.kubernetes.nodes import (
    BLOCK_FIELDS,
    LEFT_OUT_TIME,
    MAX_FAULTS,
    BlockKey,
    FormerNode,
    FormerNodes,
    NodeFaultRecorder,
    NodeFaultTracker,
    NodeHealth,
    SharedNodes,
    identify_block,
)
from runner.kubernetes.objects import JobStatus
from runner.kubernetes.rendering import ANY_NODE, NONE_AVOIDED, AvoidedNodes, NodeWish
from runner.kubernetes.tracked_jobs import TrackedJob, TrackedJobs
from runner.matrix.plan import Repeat
from tracked_cells import submit, track

NOW = datetime(2026, 11, 22, 6, tzinfo=UTC)
RUN = make_run()
CELL_ID = RUN.cells[0].cell.cell_id


def make_fault(number: int, node: str | None = "bad", **fields: Any) -> NodeFault:
    given: dict[str, Any] = {
        "attempt": f"a{number}",
        "node_name": node,
        "pool": "gpu",
        "at": NOW,
        "reason": "GPU is lost",
    }
    return make_node_fault(RUN, **(given | fields))


def fail(health: NodeHealth, *numbers: int, node: str | None = "bad", **fields: Any) -> NodeFault:
    for number in numbers:
        found = health.add(make_fault(number, node, **fields), NOW)
    return found


def find_avoided(health: NodeHealth, pool: str = "gpu", now: datetime = NOW) -> AvoidedNodes:
    return health.find_avoided(pool, now, {"bad": "bad.internal"})


def test_one_fault_makes_a_node_the_last_choice_and_a_second_leaves_it_out() -> None:
    health = NodeHealth()
    health.note_seen("gpu", "good", NOW)
    assert find_avoided(health) == NONE_AVOIDED
    first = fail(health, 1)
    assert find_avoided(health) == AvoidedNodes(disliked=("bad.internal",), names=frozenset({"bad"}))
    second = fail(health, 2)
    assert find_avoided(health) == AvoidedNodes(excluded=("bad.internal",), names=frozenset({"bad"}))
    assert [(fault.num_in_a_row, fault.is_left_out) for fault in (first, second)] == [(1, False), (2, True)]
    assert find_avoided(health, "cpu") == NONE_AVOIDED


def test_an_attempt_counts_once_however_often_it_is_reported() -> None:
    health = NodeHealth()
    health.note_seen("gpu", "good", NOW)
    assert fail(health, 1, 1, 1).num_in_a_row == 1
    assert health.count_faults(CELL_ID, 1, 0) == 1


def test_a_node_is_not_left_out_while_no_other_can_measure() -> None:
    health = NodeHealth()
    health.note_seen("gpu", "bad", NOW)
    assert not fail(health, 1, 2, 3).is_left_out
    assert find_avoided(health) == AvoidedNodes(disliked=("bad.internal",), names=frozenset({"bad"}))
    health.note_seen("gpu", "worse", NOW)
    fail(health, 4, node="worse")
    assert find_avoided(health).excluded == ()


def test_what_ended_ok_on_a_node_clears_it() -> None:
    health = NodeHealth()
    health.note_seen("gpu", "good", NOW)
    fail(health, 1, 2)
    health.note_ok("gpu", "bad", NOW)
    assert find_avoided(health) == NONE_AVOIDED
    assert fail(health, 3).num_in_a_row == 1


def test_a_node_is_tried_again_after_an_hour_and_left_out_again_at_its_next_fault() -> None:
    health = NodeHealth()
    later = NOW + LEFT_OUT_TIME
    health.note_seen("gpu", "good", later)
    fail(health, 1, 2)
    assert find_avoided(health, now=later) == NONE_AVOIDED
    assert health.add(make_fault(3, at=later), later).is_left_out


def test_faults_of_earlier_runners_count_for_nodes_and_repeats_but_do_not_stop_this_one() -> None:
    health = NodeHealth()
    health.load([make_fault(number, at=NOW - timedelta(seconds=number)) for number in range(MAX_FAULTS)])
    health.note_seen("gpu", "good", NOW)
    assert find_avoided(health).excluded == ("bad.internal",)
    assert health.count_faults(CELL_ID, 1, 0) == MAX_FAULTS
    assert health.count_faults(CELL_ID, 1, 1) == 0
    health = NodeHealth()
    health.load([make_fault(number) for number in range(MAX_FAULTS)])
    assert health.explain_stop("gpu", NOW) == ""


def test_the_run_stops_when_every_node_that_took_a_cell_fails() -> None:
    health = NodeHealth()
    for number in range(MAX_FAULTS):
        assert health.explain_stop("gpu", NOW) == ""
        fail(health, number, node=f"node-{number % 2}")
    message = health.explain_stop("gpu", NOW)
    assert message.startswith("every node of the pool 'gpu' that took a cell is at fault (node-0, node-1): 6 attempts")
    assert message.endswith("the last on node-1: GPU is lost")
    assert health.explain_stop("cpu", NOW) == ""


def test_the_run_goes_on_while_a_node_may_be_sound() -> None:
    health = NodeHealth()
    health.note_seen("gpu", "measuring", NOW)
    fail(health, *range(MAX_FAULTS + 3))
    assert health.explain_stop("gpu", NOW) == ""
    health = NodeHealth()
    fail(health, *range(MAX_FAULTS - 1))
    health.note_ok("gpu", "other", NOW)
    fail(health, MAX_FAULTS)
    assert health.explain_stop("gpu", NOW) == ""


@pytest.fixture
def dispatcher() -> Iterator[Dispatcher]:
    dispatcher = Dispatcher(warn_user=lambda message: None, patience_seconds=60.0)
    yield dispatcher
    dispatcher.stop()


def make_tracker(dispatcher: Dispatcher, folder: Path, jobs: TrackedJobs) -> NodeFaultTracker:
    recorder = NodeFaultRecorder(connection=cast(Connection, None), store=Store.open(f"file://{folder}"))
    return NodeFaultTracker(dispatcher=dispatcher, recorder=recorder, jobs=jobs, can_avoid_nodes=True)


def fail_for_node(tracker: NodeFaultTracker, tracked: TrackedJob, number: int, node: str = "bad") -> JobStatus:
    """Have the tracker note a Job that failed for its node; return the Job."""
    job = replace(load_job("oom"), name=tracked.name, uid=f"job-{number}")
    now = datetime.now(UTC)
    pod = replace(load_pod("oom"), uid=f"pod-{number}", node=node, exit_code=EXIT_NODE_FAULT, ended_at=now)
    tracker.note_job(tracked, job, [pod])
    return job


def test_jobs_that_had_failed_when_the_runner_began_do_not_stop_it(dispatcher: Dispatcher, tmp_path: Path) -> None:
    """All Jobs that were in flight fail as a runner stops; the nodes may be mended before the next one begins."""
    jobs = TrackedJobs(track("gpu", seed) for seed in range(2 * MAX_FAULTS))
    before = make_tracker(dispatcher, tmp_path, jobs)
    failed = [fail_for_node(before, tracked, number) for number, tracked in enumerate(jobs)]
    assert before.stop is not None

    tracker = make_tracker(dispatcher, tmp_path, jobs)
    tracker.begin(failed)
    for number, tracked in enumerate(jobs):
        fail_for_node(tracker, tracked, number)
    assert tracker.stop is None
    for number, tracked in enumerate(list(jobs)[:MAX_FAULTS]):
        assert tracker.count_faults(tracked) == 1
        assert tracker.stop is None
        fail_for_node(tracker, tracked, 100 + number)
    assert tracker.stop is not None


def test_a_node_that_measures_a_long_cell_is_sound(dispatcher: Dispatcher, tmp_path: Path) -> None:
    long_cell, *others = (track("gpu", seed) for seed in range(MAX_FAULTS + 1))
    jobs = TrackedJobs([long_cell, *others])
    submit(jobs, long_cell)
    long_cell.node, long_cell.job = "good", load_job("running")
    tracker = make_tracker(dispatcher, tmp_path, jobs)
    tracker.health.note_seen("gpu", "good", datetime.now(UTC) - LEFT_OUT_TIME)
    for number, tracked in enumerate(others):
        fail_for_node(tracker, tracked, number)
    assert tracker.stop is None
    assert tracker.find_avoided(others[0]).excluded == ("bad",)


def test_a_node_that_ended_a_long_cell_is_sound(dispatcher: Dispatcher, tmp_path: Path) -> None:
    tracked = track("gpu", 1)
    tracker = make_tracker(dispatcher, tmp_path, TrackedJobs([tracked]))
    tracker.health.note_seen("gpu", "good", datetime.now(UTC) - LEFT_OUT_TIME)
    assert not tracker.has_sound_node(tracked)
    tracker.health.note_ok("gpu", "good", datetime.now(UTC))
    assert tracker.has_sound_node(tracked)


CELLS = [make_cell(), make_cell(mode="compiled"), make_cell(framework="tensorflow", mode="graph"), make_cell(seed=9)]
PLANNED_RUN = make_run(cells=CELLS, repeats=2)
BLOCK, SECOND_ROUND, OTHER_BLOCK = identify_block(CELLS[0], 1), identify_block(CELLS[0], 2), identify_block(CELLS[3], 1)


class Nodes:
    """An API server that has these nodes, or refuses to say which it has."""

    def __init__(self, *names: str, is_forbidden: bool = False) -> None:
        self.names, self.is_forbidden = names, is_forbidden

    def read_items(self, path: str, read: Callable[[dict[str, Any]], str], *, patience_seconds: float) -> list[str]:
        assert path == "/api/v1/nodes"
        if self.is_forbidden:
            raise ApiError(status=HTTPStatus.FORBIDDEN, reason="Forbidden", message="nodes is forbidden")
        return [read({"metadata": {"name": name}}) for name in self.names]


def place(store: Store, cell: int, node_name: str, *, repeat: int = 1, instance_type: str | None = None) -> str:
    """Put the placement of one more attempt into the store, and return its key."""
    attempt = f"a{len(list(store.list_keys('')))}"
    result = make_result(CELLS[cell], run_id=PLANNED_RUN.run_id, repeat=repeat, attempt=attempt)
    placement = make_placement(result, Node(instance_type=instance_type), node_name=node_name)
    key = placement_key(PLANNED_RUN.run_id, result.cell_id, repeat, attempt)
    store.put(key, placement.to_json())
    return key


def find(store: Store, nodes: Nodes, blocks: Sequence[tuple[object, ...]] = (BLOCK,)) -> dict[Any, FormerNode]:
    return FormerNodes(connection=cast(Connection, nodes), store=store, run=PLANNED_RUN).find(blocks)


def test_a_block_was_on_the_node_of_most_of_its_attempts_each_round_on_its_own(store: Store) -> None:
    for cell, node in ((0, "node-2"), (1, "node-1"), (2, "node-2"), (3, "node-3")):
        place(store, cell, node)
    place(store, 0, "node-3", repeat=2, instance_type="m6i.xlarge")
    found = find(store, Nodes("node-1", "node-2", "node-3"), (BLOCK, SECOND_ROUND))
    assert found == {
        BLOCK: FormerNode(name="node-2", instance_type=""),
        SECOND_ROUND: FormerNode(name="node-3", instance_type="m6i.xlarge"),
    }


def test_of_a_node_that_is_gone_the_machine_type_is_left(store: Store) -> None:
    place(store, 0, "node-1", instance_type="m6i.xlarge")
    assert find(store, Nodes("node-2")) == {BLOCK: FormerNode(name="", instance_type="m6i.xlarge")}


def test_where_nodes_may_not_be_listed_the_node_may_still_be_there(store: Store) -> None:
    place(store, 0, "node-1")
    assert find(store, Nodes(is_forbidden=True)) == {BLOCK: FormerNode(name="node-1", instance_type="")}


def test_a_damaged_placement_and_one_of_a_cell_that_is_not_of_the_plan_count_as_none(store: Store) -> None:
    store.put(place(store, 0, "node-1"), b"{")
    place(store, 3, "node-1")
    stranger = make_result(make_cell(batch_size=77), run_id=PLANNED_RUN.run_id)
    key = placement_key(PLANNED_RUN.run_id, stranger.cell_id, 1, "a")
    store.put(key, make_placement(stranger).to_json())
    assert find(store, Nodes("node-1")) == {}
    assert set(find(store, Nodes("node-1"), (OTHER_BLOCK,))) == {OTHER_BLOCK}


EAGER, GRAPH = make_cell(), make_cell(framework="tensorflow", mode="graph")
OTHER_BATCH = make_cell(batch_size=128)
TYPES = {"node-1": "m6i.xlarge"}


def track_cell(cell: Cell, number: int = 1) -> TrackedJob:
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
    jobs = [
        track_cell(GRAPH, 1),
        track_cell(OTHER_BATCH, 1),
        track_cell(EAGER, 1),
        track_cell(EAGER, 2),
        track_cell(GRAPH, 2),
    ]
    assert Sharing(*jobs).first == [jobs[0], jobs[1], jobs[3]]
    assert Sharing(*jobs, patience_seconds=0.0).first == jobs


def test_the_next_of_a_block_goes_when_the_node_of_the_one_before_is_known_and_only_one_at_a_time() -> None:
    jobs = [track_cell(EAGER), track_cell(GRAPH), track_cell(make_cell(mode="compiled"))]
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
    jobs = [track_cell(EAGER), track_cell(GRAPH), track_cell(make_cell(mode="compiled"))]
    sharing = Sharing(*jobs)
    sharing.nodes.note_end(jobs[0])
    assert sharing.let_go == jobs[1:]
    assert {sharing.nodes.find_wish(tracked) for tracked in jobs} == {ANY_NODE}


def test_one_that_another_runner_submitted_already_is_passed_over() -> None:
    jobs = [track_cell(EAGER), track_cell(GRAPH), track_cell(make_cell(mode="compiled"))]
    sharing = Sharing(*jobs)
    jobs[1].state = "in-flight"
    sharing.note(jobs[0], "node-1")
    assert sharing.let_go == [jobs[2]]


def test_one_that_waits_too_long_is_released_to_a_node_of_the_same_type() -> None:
    jobs = [track_cell(EAGER), track_cell(GRAPH)]
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
    jobs = [track_cell(EAGER), track_cell(GRAPH)]
    sharing = Sharing(*jobs)
    sharing.note(jobs[0], "node-1")
    avoided = AvoidedNodes(excluded=("node-1.internal",), names=frozenset({"node-1"}))
    assert sharing.nodes.find_wish(jobs[1], avoided) == NodeWish(instance_type="m6i.xlarge", avoided=avoided)
    others = AvoidedNodes(excluded=("node-2",), names=frozenset({"node-2"}))
    assert sharing.nodes.find_wish(jobs[1], others) == NodeWish(node="node-1", avoided=others)


def test_no_cell_is_bound_to_a_node_at_fault_however_often_it_was() -> None:
    jobs = [track_cell(EAGER), track_cell(GRAPH)]
    sharing = Sharing(*jobs)
    sharing.note(jobs[0], "node-1", phase="Failed")
    health = NodeHealth()
    health.add(make_node_fault(make_run(), node_name="node-1", pool="cpu", at=NOW), NOW)
    for tracked in jobs:  # the one that met the fault, too
        assert sharing.nodes.find_wish(tracked, health.find_avoided("cpu", NOW, {})).node == ""


@pytest.mark.parametrize("end", ["placed", "recorded"])
def test_one_that_has_its_node_or_its_record_is_not_released(end: str) -> None:
    jobs = [track_cell(EAGER), track_cell(GRAPH)]
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
    jobs = [track_cell(EAGER), track_cell(GRAPH)]
    sharing = Sharing(*jobs, patience_seconds=1e-9)
    sharing.note(jobs[0], "node-1", is_deleted=True)
    sharing.nodes.find_wish(jobs[1])
    sharing.note(jobs[1], "node-1", uid="lost", phase="Failed")
    wait_in_vain(jobs[1])
    for _ in range(2):
        sharing.nodes.check()
    assert jobs[1].is_released


def test_pods_that_went_while_nothing_was_watched_do_not_keep_a_node_busy() -> None:
    jobs: Sequence[TrackedJob] = [track_cell(EAGER), track_cell(GRAPH)]
    sharing = Sharing(*jobs, patience_seconds=1e-9)
    sharing.note(jobs[0], "node-1")
    sharing.nodes.find_wish(jobs[1])
    wait_in_vain(jobs[1])
    sharing.nodes.forget_pods()
    for _ in range(2):
        sharing.nodes.check()
    assert jobs[1].is_released


def test_a_job_that_an_earlier_runner_bound_to_a_node_is_released_too() -> None:
    (tracked,) = jobs = [track_cell(GRAPH)]
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
    jobs = [track_cell(EAGER), track_cell(GRAPH)]
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
    jobs = [track_cell(GRAPH), track_cell(make_cell(mode="compiled")), track_cell(OTHER_BATCH)]
    former = {identify_block(EAGER, 1): FormerNode(name="node-1", instance_type="m6i.xlarge")}
    sharing = Sharing(*jobs, former=former)
    assert sharing.first == [jobs[0], jobs[2]]
    assert sharing.nodes.find_wish(jobs[0]) == NodeWish(node="node-1")
    assert sharing.nodes.find_wish(jobs[2]) == ANY_NODE
    sharing.note(jobs[0], "node-1")
    assert sharing.let_go == [jobs[1]]
    assert sharing.nodes.find_wish(jobs[1]) == NodeWish(node="node-1")


def test_where_the_node_of_the_finished_cells_is_gone_the_rest_prefers_its_machine_type() -> None:
    jobs = [track_cell(GRAPH), track_cell(make_cell(mode="compiled"))]
    former = {identify_block(EAGER, 1): FormerNode(name="", instance_type="c3-standard-8")}
    sharing = Sharing(*jobs, former=former)
    assert sharing.nodes.find_wish(jobs[0]) == NodeWish(instance_type="c3-standard-8")
    sharing.note(jobs[0], "node-2")
    assert sharing.nodes.find_wish(jobs[1]) == NodeWish(node="node-2")


def test_the_rest_of_a_block_follows_a_job_that_an_earlier_runner_bound_to_a_node() -> None:
    jobs = [track_cell(EAGER), track_cell(GRAPH)]
    sharing = Sharing(*jobs)
    sharing.nodes.note_job(jobs[1], replace(load_job("running"), required_node="node-1"))
    assert sharing.nodes.find_wish(jobs[0]) == NodeWish(node="node-1")


def test_a_node_that_one_cell_waited_for_in_vain_is_waited_for_by_no_other_until_it_takes_one() -> None:
    jobs = [track_cell(GRAPH), track_cell(make_cell(batch_size=128, mode="graph", framework="tensorflow"))]
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
