"""The states of a repeat and the transitions between them."""

from contextlib import nullcontext
from itertools import product
from typing import get_args

import pytest

from bench.schema import PlannedCell
from factories import make_cell
from runner.kubernetes.names import JobKey
from runner.kubernetes.tracked_jobs import FOLLOWING, InvalidTransitionError, State, TrackedJob, TrackedJobs
from runner.matrix import Repeat

STATES = get_args(State)


def make_tracked(number: int = 1, state: State = "to-submit") -> TrackedJob:
    planned = PlannedCell(cell=make_cell(), repeats=3, timeout_seconds=600.0)
    key = JobKey(run_id="demo", cell_id=planned.cell.cell_id, number=number, retry_round=0)
    return TrackedJob(repeat=Repeat(planned=planned, number=number), key=key, state=state)


def test_every_state_leads_to_done_and_only_by_recording() -> None:
    ending: set[State] = {"done"}
    for _ in STATES:
        ending |= {state for state, following in FOLLOWING.items() if following & ending}
    assert ending == set(STATES)
    assert [state for state, following in FOLLOWING.items() if "done" in following] == ["recording"]


@pytest.mark.parametrize(("before", "after"), list(product(STATES, STATES)))
def test_a_job_moves_from_one_count_to_the_other_where_that_state_may_follow(before: State, after: State) -> None:
    moved, other = make_tracked(1, before), make_tracked(2)
    jobs = TrackedJobs([moved, other])

    with nullcontext() if after in FOLLOWING[before] else pytest.raises(InvalidTransitionError):
        jobs.move(moved, after)

    assert moved.state == (after if after in FOLLOWING[before] else before)
    assert [jobs.count(each) for each in STATES] == [
        sum(tracked.state == each for tracked in (moved, other)) for each in STATES
    ]
    assert jobs.list_unfinished() == [
        tracked for tracked in (moved, other) if tracked.state in ("submitting", "in-flight")
    ]
