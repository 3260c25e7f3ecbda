"""The states of a repeat while its run measures it, and the one table of the transitions between them.

docs/kubernetes.md shows the same tables under "States of a repeat"; a test compares them.
"""

from collections.abc import Mapping
from typing import Literal

State = Literal["to-submit", "submitting", "in-flight", "recording", "done"]
Event = Literal[
    "request-sent",
    "created",
    "refused-by-quota",
    "job-seen",
    "job-finished",
    "job-missing",
    "given-up",
    "withdrawn",
    "retried",
    "requeued",
    "recorded",
]

STATES: Mapping[State, str] = {
    "to-submit": "its Job is to be created",
    "submitting": "the request that creates its Job is under way",
    "in-flight": "its Job exists and has not finished",
    "recording": "its Job has finished, is missing, was given up or withdrawn; its record is being found or written",
    "done": "its terminal record is in the store",
}
EVENTS: Mapping[Event, str] = {
    "request-sent": "its pool, `--max-in-flight` and the budget leave room, so the request is sent",
    "created": "the API server has created the Job, or had it already",
    "refused-by-quota": "a ResourceQuota leaves no room for the Job",
    "job-seen": "the informer reports the Job, which has not finished",
    "job-finished": "the informer reports the Job, which has finished",
    "job-missing": "the Job was deleted, or the informer has not reported it a minute after its creation",
    "given-up": "its pod cannot start or is kept from ending, or its nodes took it down too often; the Job is deleted",
    "withdrawn": "no node took its pod for long, and the run has a deadline until which to wait, or its node cannot "
    "start the pod; the Job is deleted",
    "retried": "the missing Job has left no record, so another one is created",
    "requeued": "its Job only waited for a node, and is deleted; another one is created after a pause",
    "recorded": "the store has the record of the repeat",
}
TRANSITIONS: Mapping[tuple[State, Event], State] = {
    ("to-submit", "request-sent"): "submitting",
    ("to-submit", "job-seen"): "in-flight",
    ("to-submit", "job-finished"): "recording",
    ("to-submit", "given-up"): "recording",
    ("submitting", "created"): "in-flight",
    ("submitting", "refused-by-quota"): "to-submit",
    ("submitting", "job-seen"): "in-flight",
    ("submitting", "job-finished"): "recording",
    ("in-flight", "job-seen"): "in-flight",
    ("in-flight", "job-finished"): "recording",
    ("in-flight", "job-missing"): "recording",
    ("in-flight", "given-up"): "recording",
    ("in-flight", "withdrawn"): "recording",
    ("recording", "job-seen"): "in-flight",
    ("recording", "job-finished"): "recording",
    ("recording", "retried"): "to-submit",
    ("recording", "requeued"): "to-submit",
    ("recording", "recorded"): "done",
}
"""The state that an event leads to. Every other pair of state and event is a mistake in this program."""


class InvalidTransitionError(RuntimeError):
    """An event was applied to a repeat whose state does not allow it."""


def find_next_state(state: State, event: Event) -> State:
    """Return the state that `event` leads to from `state`; raise InvalidTransitionError if there is none."""
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise InvalidTransitionError(f"{event} in state {state}") from None


def format_tables() -> str:
    """Return the states and the transitions as the two Markdown tables of docs/kubernetes.md."""
    states = [f"| `{state}` | {meaning} |" for state, meaning in STATES.items()]
    transitions = [
        f"| `{state}` | `{event}`: {EVENTS[event]} | `{following}` |"
        for (state, event), following in TRANSITIONS.items()
    ]
    head, line = "| state | event | next state |", "|---|---|---|"
    return "\n".join(["| state | meaning |", "|---|---|", *states, "", head, line, *transitions])
