"""Strategies that change a valid result in one place so that it contradicts itself, and stays valid by its schema."""

import copy
from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st

from fuzz.mutations import dump_json

Change = Callable[[dict[str, Any]], None]


def _scale(part: str, name: str, factor: float) -> Change:
    def change(result: dict[str, Any]) -> None:
        result[part][name] *= factor

    return change


def _scale_steps(factor: float) -> Change:
    def change(result: dict[str, Any]) -> None:
        result["samples"]["step_seconds"] = [factor * step for step in result["samples"]["step_seconds"]]

    return change


def _spread_steps(result: dict[str, Any]) -> None:
    """Make the steps of a valid window as different as those of no valid one."""
    steps = [0.05 * number for number in (1, 2, 4) * 10]
    result["samples"] |= {"step_seconds": steps, "device_step_seconds": None, "data_wait_seconds": None}
    result["phases"]["steady_seconds"] = sum(steps)
    result["roofline"] = result["pipelined"] = result["sustained"] = None
    result["validity"] = {"verdict": "valid", "reasons": [], "unchecked": [], "notes": []}
    result["finished_at"] = "2026-03-02T12:00:00Z"


def _end_at_start(result: dict[str, Any]) -> None:
    result["finished_at"] = result["started_at"]


CHANGES: Mapping[str, Change] = {
    "share": _scale("roofline", "share_of_peak", 3.0),
    "rate": _scale("roofline", "achieved_flops_per_second", 0.5),
    "faster steps": _scale_steps(1e-4),
    "longer window": _scale("phases", "steady_seconds", 100.0),
    "longer first step": _scale("phases", "first_step_seconds", 1e4),
    "end at the start": _end_at_start,
    "spread steps": _spread_steps,
}


def contradict(result: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a changed copy of a result, as JSON has it."""
    tree = copy.deepcopy(dict(result))
    CHANGES[name](tree)
    return tree


def draw_contradictions(result: Mapping[str, Any]) -> st.SearchStrategy[bytes]:
    """Draw the result with one of CHANGES."""
    return st.sampled_from(list(CHANGES)).map(lambda name: dump_json(contradict(result, name)))
