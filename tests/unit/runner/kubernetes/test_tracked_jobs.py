"""The states of a repeat and the transitions between them."""

from itertools import product
from typing import get_args

import pytest

from bench.schema import PlannedCell
from factories import make_cell
from runner.kubernetes.names import JobKey
from runner.kubernetes.tracked_jobs import (
    TRANSITIONS,
    Event,
    InvalidTransitionError,
    State,
    TrackedJob,
    TrackedJobs,
)
from runner.matrix.plan import Repeat

STATES, EVENTS = get_args(State), get_args(Event)


def make_tracked(number: int = 1, state: State = "to-submit") -> TrackedJob:
    planned = PlannedCell(cell=make_cell(), repeats=3, timeout_seconds=600.0)
    key = JobKey(run_id="demo", cell_id=planned.cell.cell_id, number=number, retry_round=0)
    return TrackedJob(repeat=Repeat(planned=planned, number=number), key=key, state=state)


def test_every_state_leads_to_done() -> None:
    ending: set[State] = {"done"}
    for _ in STATES:
        ending |= {state for (state, _), following in TRANSITIONS.items() if following in ending}
    assert ending == set(STATES)


def test_only_recording_leads_to_done() -> None:
    assert {state for (state, _), following in TRANSITIONS.items() if following == "done"} == {"recording"}


@pytest.mark.parametrize(("state", "event"), sorted(set(product(STATES, EVENTS)) - set(TRANSITIONS)))
def test_any_other_event_is_refused_and_changes_nothing(state: State, event: Event) -> None:
    tracked = make_tracked(state=state)
    jobs = TrackedJobs([tracked])

    with pytest.raises(InvalidTransitionError):
        jobs.move(tracked, event)

    assert tracked.state == state
    assert jobs.count(state) == 1


@pytest.mark.parametrize(("state", "event"), sorted(TRANSITIONS))
def test_an_event_moves_a_job_from_one_count_to_the_other(state: State, event: Event) -> None:
    moved, other = make_tracked(1, state), make_tracked(2)
    jobs = TrackedJobs([moved, other])

    jobs.move(moved, event)

    assert moved.state == TRANSITIONS[state, event]
    assert [jobs.count(each) for each in STATES] == [
        sum(tracked.state == each for tracked in (moved, other)) for each in STATES
    ]
    assert jobs.list_unfinished() == [
        tracked for tracked in (moved, other) if tracked.state in ("submitting", "in-flight")
    ]


def test_a_job_that_is_tracked_already_is_not_added_again() -> None:
    first = make_tracked(state="in-flight")
    jobs = TrackedJobs([first])

    jobs.add([make_tracked(), make_tracked(2)])

    assert len(jobs) == 2
    assert jobs.find(first.name) is first
    assert jobs.count("in-flight", "to-submit") == 2
