"""Judges whether a measurement is valid, by every check of this package."""

from collections.abc import Iterator
from typing import get_args

from bench.schema import Reason, Validity, Verdict
from bench.validity.input_pipeline import check_input
from bench.validity.inputs import ValidityInputs
from bench.validity.neighbours import check_cpu_neighbours, check_gpu_neighbours
from bench.validity.series import check_drift, check_length, check_spread, note_levels
from bench.validity.throttling import check_clocks, check_quota
from bench.validity.work import check_device, check_roofline

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


def judge_validity(inputs: ValidityInputs) -> Validity:
    """Return the verdict on a measurement: the gravest of all reasons that hold, `valid` without any."""
    found = [Reason(verdict=verdict, message=text) for check in CHECKS for verdict, text in check(inputs)]
    reasons = tuple(sorted(found, key=lambda reason: GRAVITY.index(reason.verdict)))
    verdict = reasons[0].verdict if reasons else "valid"
    return Validity(
        verdict=verdict, reasons=reasons, unchecked=tuple(_list_unchecked(inputs)), notes=tuple(note_levels(inputs))
    )


def _list_unchecked(inputs: ValidityInputs) -> Iterator[str]:
    gpus = inputs.gpu_use
    if inputs.cell.device == "gpu" and not (gpus and all(gpu.sm_clock_mhz and gpu.max_sm_clock_mhz for gpu in gpus)):
        yield "clocks of the GPU not observed"
