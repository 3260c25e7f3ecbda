"""Where attempts ran, nodes at fault, and one node for what is compared."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from bench.errors import EXIT_NODE_FAULT
from bench.schema import Cell, Node, NodeFault, read_placement
from bench.store import Store, placement_key, placements_prefix
from cluster_objects import load_job, load_pod
from collector.comparisons import COMPARISONS
from collector.results.frames import CELL_COLUMNS, PROTOCOL_FIELDS, SHARING_FIELDS
from factories import make_cell, make_placement, make_result, make_run
from job_manifests import RUN_ID, load
from node_faults import make_node_fault
from ongoing_runs import SameThread, make_ongoing, submit, track, track_cell
from runner.kubernetes.connection import ApiError
from runner.kubernetes.nodes import (
    BLOCK_FIELDS,
    LEFT_OUT_TIME,
    MAX_FAULTS,
    NodeFaults,
    Placements,
    PoolHealth,
    SharedNodes,
    find_former_nodes,
    identify_block,
)
from runner.kubernetes.objects import JobStatus
from runner.kubernetes.rendering import ANY_NODE, NodeWish
from runner.kubernetes.tracked_jobs import TrackedJob

NOW = datetime(2026, 11, 22, 6, tzinfo=UTC)
RUN = make_run()


def make_fault(number: int, node: str | None = "bad", **fields: Any) -> NodeFault:
    given: dict[str, Any] = {"attempt": f"a{number}", "node_name": node, "pool": "gpu", "at": NOW}
    return make_node_fault(RUN, **(given | {"reason": "GPU is lost"} | fields))


def make_health(*seen: str) -> PoolHealth:
    """Return what is known of a pool of which these nodes have taken a pod."""
    return PoolHealth(pool="gpu", seen_at=dict.fromkeys(seen, NOW))


def fail(health: PoolHealth, *numbers: int, node: str | None = "bad") -> None:
    for number in numbers:
        health.add(make_fault(number, node), is_earlier=False)


def test_one_fault_makes_a_node_the_last_choice_and_a_second_leaves_it_out_for_an_hour_or_until_it_measures() -> None:
    health, later = make_health("good"), NOW + LEFT_OUT_TIME
    assert health.find_avoided(NOW) == ANY_NODE
    fail(health, 1)
    assert health.find_avoided(NOW) == NodeWish(disliked=("bad",))
    fail(health, 2)
    assert health.find_avoided(NOW) == NodeWish(excluded=("bad",))
    assert health.find_avoided(later) == ANY_NODE
    health.seen_at["good"] = later
    health.add(make_fault(3, at=later), is_earlier=False)
    assert health.is_left_out("bad", later)
    health.add_ok("bad", later)
    assert health.find_avoided(later) == ANY_NODE


def test_a_node_is_not_left_out_while_no_other_can_measure() -> None:
    health = make_health("bad", "worse")
    fail(health, 1, 2, 3)
    fail(health, 4, node="worse")
    assert health.find_avoided(NOW) == NodeWish(disliked=("bad", "worse"))


def test_the_run_stops_when_every_node_that_took_a_cell_fails() -> None:
    health = make_health()
    for number in range(MAX_FAULTS):
        assert health.explain_stop(NOW) == ""
        fail(health, number, node=f"node-{number % 2}")
    message = health.explain_stop(NOW)
    assert message.startswith("every node of the pool 'gpu' that took a cell is at fault (node-0, node-1): 6 attempts")
    assert message.endswith("the last on node-1: GPU is lost")


def test_the_run_goes_on_while_a_node_may_be_sound() -> None:
    health = make_health("measuring")
    fail(health, *range(MAX_FAULTS + 3))
    assert health.explain_stop(NOW) == ""
    health = make_health()
    fail(health, *range(MAX_FAULTS - 1))
    health.add_ok(None, NOW)
    fail(health, MAX_FAULTS)
    assert health.explain_stop(NOW) == ""


def make_faults(folder: Path, *jobs: TrackedJob) -> NodeFaults:
    return NodeFaults(run=make_ongoing(folder, *jobs, dispatcher=SameThread()))


def fail_for_node(faults: NodeFaults, tracked: TrackedJob, number: int) -> tuple[JobStatus, NodeFault]:
    """Have a Job noted that failed for its node; return it, and the fault."""
    job = replace(load_job("oom"), name=tracked.name, uid=f"job-{number}")
    now = datetime.now(UTC)
    pod = replace(load_pod("oom"), uid=f"pod-{number}", node="bad", exit_code=EXIT_NODE_FAULT, ended_at=now)
    (fault,) = faults.note_job(tracked, job, [pod])
    return job, fault


def test_an_attempt_counts_once_however_often_it_is_reported(tmp_path: Path) -> None:
    tracked = track("gpu", 1)
    faults = make_faults(tmp_path, tracked)
    assert [fail_for_node(faults, tracked, 1)[1].num_in_a_row for _ in range(3)] == [1, 1, 1]
    assert faults.count_faults(tracked) == 1


def test_faults_of_earlier_runners_count_for_nodes_and_repeats_but_do_not_stop_this_one(tmp_path: Path) -> None:
    tracked = track("gpu", 1)
    faults = make_faults(tmp_path, tracked)
    now, cell_id = datetime.now(UTC), tracked.key.cell_id
    faults.load(make_fault(number, at=now, cell_id=cell_id) for number in range(MAX_FAULTS))
    faults.find_pool("gpu").seen_at["good"] = now
    assert faults.find_avoided(tracked).excluded == ("bad",)
    assert faults.count_faults(tracked) == MAX_FAULTS
    assert faults.count_faults(replace(tracked, key=replace(tracked.key, retry_round=1))) == 0
    assert faults.find_pool("gpu").explain_stop(now + timedelta(hours=2)) == ""


def test_jobs_that_had_failed_when_the_runner_began_do_not_stop_it(tmp_path: Path) -> None:
    """All Jobs that were in flight fail as a runner stops; the nodes may be mended before the next one begins."""
    jobs = [track("gpu", seed) for seed in range(2 * MAX_FAULTS)]
    before = make_faults(tmp_path, *jobs)
    failed = [fail_for_node(before, tracked, number)[0] for number, tracked in enumerate(jobs)]
    assert before.stop is not None

    faults = make_faults(tmp_path, *jobs)
    faults.begin(failed)
    for number, tracked in enumerate(jobs):
        fail_for_node(faults, tracked, number)
    for number, tracked in enumerate(jobs[:MAX_FAULTS]):
        assert (faults.count_faults(tracked), faults.stop) == (1, None)
        fail_for_node(faults, tracked, 100 + number)
    assert faults.stop is not None


def test_a_node_that_measures_a_long_cell_is_sound(tmp_path: Path) -> None:
    long_cell, *others = (track("gpu", seed) for seed in range(MAX_FAULTS + 1))
    faults = make_faults(tmp_path, long_cell, *others)
    submit(faults.run.jobs, long_cell)
    long_cell.node, long_cell.job = "good", load_job("running")
    faults.find_pool("gpu").seen_at["good"] = datetime.now(UTC) - LEFT_OUT_TIME
    for number, tracked in enumerate(others):
        fail_for_node(faults, tracked, number)
    assert faults.stop is None
    assert faults.find_avoided(others[0]).excluded == ("bad",)


CELLS = [make_cell(), make_cell(mode="compiled"), make_cell(framework="tensorflow", mode="graph"), make_cell(seed=9)]
PLANNED_RUN = make_run(cells=CELLS, repeats=2)
BLOCK, SECOND_ROUND = identify_block(CELLS[0], 1), identify_block(CELLS[0], 2)


class NodelessServer:
    """Says of every node that it is gone."""

    def get_object(self, *_: object, **__: object) -> Any:
        raise ApiError(HTTPStatus.NOT_FOUND, "NotFound", "no such node")


@pytest.mark.parametrize(("request_of_cpu", "cores"), [("0", None), ("-1", None), ("", None), ("500m", 0.5)])
def test_a_pod_whose_request_a_policy_changed_is_placed(
    tmp_path: Path, request_of_cpu: str, cores: float | None
) -> None:
    run = make_ongoing(tmp_path, connection=NodelessServer())
    assert Placements(run=run).write(replace(load_pod("running"), cpu_request=request_of_cpu)) == ""
    (key,) = run.store.list_keys(placements_prefix(RUN_ID))
    assert read_placement(run.store.get(key)).cpu_request_cores == cores


class Nodes:
    """An API server that has these nodes, or refuses to say which it has."""

    def __init__(self, *names: str, is_forbidden: bool = False) -> None:
        self.names, self.is_forbidden = names, is_forbidden

    def read_items(self, _path: str, read: Any, **_: Any) -> list[str]:
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


def find(store: Store, nodes: Nodes) -> dict[Any, tuple[str, str]]:
    return find_former_nodes(make_ongoing(store, plan=PLANNED_RUN, connection=nodes), (BLOCK, SECOND_ROUND))


def test_a_block_was_on_the_node_of_most_of_its_attempts_each_round_on_its_own(store: Store) -> None:
    for cell, node in ((0, "node-2"), (1, "node-1"), (2, "node-2"), (3, "node-3")):
        place(store, cell, node)
    place(store, 0, "node-3", repeat=2, instance_type="m6i.xlarge")
    expected = {BLOCK: ("node-2", ""), SECOND_ROUND: ("node-3", "m6i.xlarge")}
    # Where nodes may not be listed, the node may still be there; of one that is gone the machine type is left.
    for nodes in (Nodes("node-1", "node-2", "node-3"), Nodes(is_forbidden=True)):
        assert find(store, nodes) == expected
    assert find(store, Nodes("node-2")) == expected | {SECOND_ROUND: ("", "m6i.xlarge")}


EAGER, COMPILED, GRAPH, OTHER = CELLS
TYPES = {"node-1": "m6i.xlarge"}


class Sharing:
    """The shared nodes of a run, and what they let go; by default a cell waits for no time worth mentioning."""

    def __init__(self, store: Store, *cells: Cell, patience_seconds: float = 1e-9, nodes: Nodes | None = None) -> None:
        profile = load("gke", same_node_patience_seconds=patience_seconds)
        self.dispatcher, self.jobs = SameThread(), [track_cell(cell) for cell in cells]
        server = nodes or Nodes("node-1")
        run = make_ongoing(store, plan=PLANNED_RUN, connection=server, dispatcher=self.dispatcher, profile=profile)
        self.nodes = SharedNodes(run=run, find_instance_type=TYPES.get)
        self.first = self.nodes.begin(self.jobs)
        self.let_go: list[TrackedJob] = []

    def note(self, tracked: TrackedJob, node: str, *, uid: str = "", is_deleted: bool = False, **fields: Any) -> None:
        given: dict[str, Any] = {"phase": "Running"} | fields
        pod = replace(load_pod("unschedulable"), uid=uid or tracked.name, node=node, **given)
        self.let_go += self.nodes.note_pod(tracked, pod, is_deleted=is_deleted)

    def wait_in_vain(self, tracked: TrackedJob) -> None:
        """Have the pod of a Job wait for the node of its block, which its first cell has left."""
        self.nodes.find_wish(tracked)
        tracked.state, tracked.pods = "in-flight", {"x": load_pod("unschedulable")}

    def check(self) -> list[TrackedJob]:
        """Return the Jobs that have waited too long: at the second look any time has passed."""
        return [*self.nodes.check(), *self.nodes.check()]


def test_a_block_is_what_the_report_compares_on_one_kind_of_hardware() -> None:
    fields = {name for name in CELL_COLUMNS if name not in PROTOCOL_FIELDS}
    compared = [one for one in COMPARISONS if one.same_hardware and "batch_size" not in one.free]
    free = {name for found in compared for name in (found.field, *found.free)}
    assert free - {"num_gpus"} == {"framework", "mode", "precision"}
    # A cell with tenants is held against the cell alone, so it is in the same block.
    assert set(BLOCK_FIELDS) == fields - {"framework", "mode", "precision", *SHARING_FIELDS}


def test_cells_that_need_other_nodes_are_in_other_blocks() -> None:
    shared: list[dict[str, Any]] = [{}, {"tenants": 2}, {"tenants": 4}, {"tenants": 2, "sharing": "mps"}]
    assert len({identify_block(make_cell(device="gpu", **fields), 1) for fields in shared}) == 4
    assert identify_block(make_cell(tenants=2), 1) == identify_block(make_cell(), 1)


def test_the_first_of_each_block_and_round_goes_at_once_in_the_order_of_the_run(store: Store) -> None:
    order = [(GRAPH, 1), (OTHER, 1), (EAGER, 1), (EAGER, 2), (GRAPH, 2)]
    jobs = [track_cell(cell, number) for cell, number in order]
    assert Sharing(store).nodes.begin(jobs) == [jobs[0], jobs[1], jobs[3]]
    assert Sharing(store, patience_seconds=0.0).nodes.begin(jobs) == jobs


def test_the_next_of_a_block_goes_when_the_node_of_the_one_before_is_known_and_only_one_at_a_time(store: Store) -> None:
    sharing = Sharing(store, EAGER, GRAPH, COMPILED)
    jobs = sharing.jobs
    assert sharing.nodes.find_wish(jobs[0]) == ANY_NODE
    sharing.note(jobs[0], "", phase="Pending")
    assert sharing.let_go == []
    for phase in ("Pending", "Running", "Failed"):  # a pod is reported more than once
        sharing.note(jobs[0], "node-1", phase=phase)
    assert sharing.let_go == [jobs[1]]
    assert sharing.nodes.find_wish(jobs[1]) == NodeWish(node="node-1")
    sharing.note(jobs[1], "node-1")
    assert sharing.let_go == jobs[1:]


def test_a_block_whose_first_never_got_a_node_is_held_back_no_longer(store: Store) -> None:
    sharing = Sharing(store, EAGER, GRAPH, COMPILED)
    assert sharing.nodes.note_end(sharing.jobs[0]) == sharing.jobs[1:]
    assert {sharing.nodes.find_wish(tracked) for tracked in sharing.jobs} == {ANY_NODE}


def test_one_that_another_runner_submitted_already_is_passed_over(store: Store) -> None:
    sharing = Sharing(store, EAGER, GRAPH, COMPILED)
    sharing.jobs[1].state = "in-flight"
    sharing.note(sharing.jobs[0], "node-1")
    assert sharing.let_go == [sharing.jobs[2]]


def test_one_that_waits_too_long_is_released_to_a_node_of_the_same_type(store: Store) -> None:
    sharing = Sharing(store, EAGER, GRAPH)
    first, second = sharing.jobs
    sharing.note(first, "node-1")
    sharing.wait_in_vain(second)
    assert sharing.check() == []  # a cell of the run is on the node: it is a matter of its turn
    sharing.note(first, "node-1", is_deleted=True)
    assert sharing.check() == [second]
    assert second.is_released
    (warning,) = sharing.dispatcher.warnings
    assert "node node-1 has not taken a cell" in warning
    assert sharing.nodes.find_wish(second) == NodeWish(instance_type="m6i.xlarge")


def test_a_node_at_fault_is_not_waited_for(store: Store) -> None:
    sharing = Sharing(store, EAGER, GRAPH)
    first, second = sharing.jobs
    sharing.note(first, "node-1", phase="Failed")
    avoided = NodeWish(excluded=("node-1",))
    for tracked in sharing.jobs:  # the one that met the fault, too
        assert sharing.nodes.find_wish(tracked, avoided) == replace(avoided, instance_type="m6i.xlarge")
    others = NodeWish(excluded=("node-2",))
    assert sharing.nodes.find_wish(second, others) == replace(others, node="node-1")


@pytest.mark.parametrize(
    ("left_by", "is_released"),
    [
        ("deletion", True),
        ("a lost node", True),  # on which its pod is being deleted for ever
        ("an end that nobody watched", True),
        ("a pod that another replaces", True),
        ("nobody", False),
        ("deletion, and it has its node", False),
        ("deletion, and it has its record", False),
    ],
)
def test_a_cell_waits_for_its_node_only_while_a_cell_of_the_run_is_there(
    store: Store, left_by: str, is_released: bool
) -> None:
    sharing = Sharing(store, EAGER, GRAPH)
    first, second = sharing.jobs
    sharing.note(first, "node-1")
    sharing.wait_in_vain(second)
    match left_by.partition(",")[0]:
        case "deletion":
            sharing.note(first, "node-1", is_deleted=True)
        case "a lost node":
            pod = replace(load_pod("running"), uid=first.name, node="node-1", deleted_at=datetime.now(UTC))
            sharing.nodes.note_pod(first, pod, is_deleted=False)
        case "an end that nobody watched":
            sharing.nodes.forget_pods()
        case "a pod that another replaces":
            sharing.note(first, "node-1", is_deleted=True)
            sharing.note(second, "node-1", uid="lost", phase="Failed")
    if left_by.endswith("its node"):
        second.pods = {}
    if left_by.endswith("its record"):
        sharing.nodes.note_end(second)
    assert sharing.check() == ([second] if is_released else [])


def test_where_the_node_of_the_finished_cells_is_gone_the_rest_prefers_its_machine_type(store: Store) -> None:
    place(store, 0, "node-1", instance_type="c3-standard-8")
    sharing = Sharing(store, GRAPH, COMPILED, nodes=Nodes("node-2"))
    assert sharing.nodes.find_wish(sharing.jobs[0]) == NodeWish(instance_type="c3-standard-8")
    sharing.note(sharing.jobs[0], "node-2")
    assert sharing.nodes.find_wish(sharing.jobs[1]) == NodeWish(node="node-2")


def test_the_rest_of_a_block_follows_a_job_that_an_earlier_runner_bound_to_a_node(store: Store) -> None:
    sharing = Sharing(store, EAGER, GRAPH)
    sharing.nodes.note_job(sharing.jobs[1], replace(load_job("running"), required_node="node-1"))
    assert sharing.nodes.find_wish(sharing.jobs[0]) == NodeWish(node="node-1")


def test_a_node_that_one_cell_waited_for_in_vain_is_waited_for_by_no_other_until_it_takes_one(store: Store) -> None:
    for cell in (0, 3):
        place(store, cell, "full")
    sharing = Sharing(store, GRAPH, OTHER, nodes=Nodes("full"))
    first, other = sharing.jobs
    assert sharing.nodes.find_wish(first) == NodeWish(node="full")
    sharing.wait_in_vain(first)
    assert sharing.check() == [first]
    assert sharing.nodes.find_wish(other) == ANY_NODE
    sharing.nodes.note_pod(None, replace(load_pod("unschedulable"), node="full", phase="Running"), is_deleted=False)
    assert sharing.nodes.find_wish(other) == NodeWish(node="full")
