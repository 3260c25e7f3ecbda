"""Judges whether a measurement is valid, by every check of this package."""

from typing import get_args

from bench.schema import Reason, Validity, Verdict
from bench.validity.clocks import check_clocks, list_unchecked_clocks, note_clocks
from bench.validity.input_pipeline import check_input
from bench.validity.inputs import ValidityInputs
from bench.validity.neighbours import check_cpu_neighbours, check_gpu_neighbours, list_unchecked_neighbours
from bench.validity.series import check_drift, check_length, check_spread, note_levels
from bench.validity.throttling import check_quota
from bench.validity.work import check_device, check_roofline, list_unchecked_work, note_host_drift

GRAVITY: tuple[Verdict, ...] = get_args(Verdict)
CHECKS = (
    check_device,
    check_roofline,
    check_gpu_neighbours,
    check_cpu_neighbours,
    check_clocks,
    check_quota,
    check_input,
    check_length,
    check_drift,
    check_spread,
)


UNCHECKED = (list_unchecked_work, list_unchecked_neighbours, list_unchecked_clocks)
"""What each kind of check could not check."""
NOTES = (note_host_drift, note_clocks, note_levels)
"""What a reader should know that counts for nothing in the verdict."""


def judge_validity(inputs: ValidityInputs) -> Validity:
    """Return the verdict on a measurement: the gravest of all reasons that hold, `valid` without any."""
    found = [Reason(verdict=verdict, message=text) for check in CHECKS for verdict, text in check(inputs)]
    reasons = tuple(sorted(found, key=lambda reason: GRAVITY.index(reason.verdict)))
    return Validity(
        verdict=reasons[0].verdict if reasons else "valid",
        reasons=reasons,
        unchecked=tuple(text for list_unchecked in UNCHECKED for text in list_unchecked(inputs)),
        notes=tuple(text for note in NOTES for text in note(inputs)),
    )
