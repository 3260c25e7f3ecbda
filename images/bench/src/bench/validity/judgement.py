"""Judges whether a measurement is valid, by every check of this package."""

from typing import get_args

from bench.schema import Reason, Validity, Verdict
from bench.validity.clocks import check_clocks, list_unchecked_clocks, note_clocks
from bench.validity.inputs import ValidityInputs
from bench.validity.neighbours import check_cpu_neighbours, check_gpu_neighbours
from bench.validity.series import check_drift, check_length, check_spread
from bench.validity.throttling import check_quota
from bench.validity.work import check_device, check_roofline

GRAVITY: tuple[Verdict, ...] = get_args(Verdict)
CHECKS = (
    check_device,
    check_roofline,
    check_gpu_neighbours,
    check_cpu_neighbours,
    check_clocks,
    check_quota,
    check_length,
    check_drift,
    check_spread,
)
NOTES = (note_clocks,)
UNCHECKED = (list_unchecked_clocks,)


def judge_validity(inputs: ValidityInputs) -> Validity:
    """Return the verdict on a measurement: the gravest of all reasons that hold, `valid` without any."""
    found = [Reason(verdict=verdict, message=text) for check in CHECKS for verdict, text in check(inputs)]
    reasons = tuple(sorted(found, key=lambda reason: GRAVITY.index(reason.verdict)))
    verdict = reasons[0].verdict if reasons else "valid"
    return Validity(
        verdict=verdict,
        reasons=reasons,
        unchecked=tuple(text for list_texts in UNCHECKED for text in list_texts(inputs)),
        notes=tuple(text for list_texts in NOTES for text in list_texts(inputs)),
    )
