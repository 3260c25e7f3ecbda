"""Which nodes later Jobs keep off, and when no node of a pool can measure."""

from datetime import UTC, datetime, timedelta
from typing import Any

from bench.schema import NodeFault
from factories import make_run
from node_faults import make_node_fault
from runner.kubernetes.nodes import LEFT_OUT_TIME, MAX_FAULTS, NodeHealth
from runner.kubernetes.rendering import NONE_AVOIDED, AvoidedNodes

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
