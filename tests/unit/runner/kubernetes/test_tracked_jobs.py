"""The states of a repeat and the transitions between them."""

from contextlib import nullcontext
from dataclasses import replace
from itertools import product
from typing import get_args

import pytest

from ongoing_runs import track
from runner.kubernetes.tracked_jobs import FOLLOWING, State, TrackedJobs

STATES = get_args(State)


def test_every_state_leads_to_done_and_only_by_recording() -> None:
    ending: set[State] = {"done"}
    for _ in STATES:
        ending |= {state for state, following in FOLLOWING.items() if following & ending}
    assert ending == set(STATES)
    assert [state for state, following in FOLLOWING.items() if "done" in following] == ["recording"]


@pytest.mark.parametrize(("before", "after"), list(product(STATES, STATES)))
def test_a_job_moves_from_one_count_to_the_other_where_that_state_may_follow(before: State, after: State) -> None:
    moved, other = replace(track("cpu", 1), state=before), track("cpu", 2)
    jobs = TrackedJobs([moved, other])

    with nullcontext() if after in FOLLOWING[before] else pytest.raises(AssertionError):
        jobs.move(moved, after)

    assert moved.state == (after if after in FOLLOWING[before] else before)
    assert [jobs.count(each) for each in STATES] == [
        sum(tracked.state == each for tracked in (moved, other)) for each in STATES
    ]
    assert jobs.list_unfinished() == [
        tracked for tracked in (moved, other) if tracked.state in ("submitting", "in-flight")
    ]
