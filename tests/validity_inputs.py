"""Make measurements for the verdict, with nothing to be said against them but what a test names."""

from typing import Any

from bench.schema import Samples, Verdict
from bench.verdicts import ValidityInputs, judge_validity
from factories import make_cell, make_cpu_use, make_gpu_use, make_phases, make_roofline

STEPS = (0.1,) * 10


def make_inputs(
    step_seconds: tuple[float, ...] = STEPS, *, reached_steady: bool = True, **fields: Any
) -> ValidityInputs:
    """Return a measurement in a window of 1 s on two cores with nothing to be said against it."""
    samples = Samples(warmup_step_seconds=(0.1,), step_seconds=step_seconds, reached_steady=reached_steady)
    given: dict[str, Any] = {
        "cell": make_cell(),
        "phases": make_phases(step_seconds, (0.1,)),
        "samples": samples,
        "device_kind": "cpu",
        "num_threads": 2,
        "cpu_use": make_cpu_use(window_seconds=1.0),
        "gpu_use": (),
        "roofline": make_roofline(),
    }
    return ValidityInputs(**(given | fields))


def make_gpu_inputs(cell: dict[str, Any] | None = None, **fields: Any) -> ValidityInputs:
    """Return the same on a T4 whose clock nothing held down."""
    gpu_cell = make_cell(device="gpu", **(cell or {}))
    given: dict[str, Any] = {
        "cell": gpu_cell,
        "device_kind": "gpu",
        "gpu_use": (make_gpu_use(sample_reasons=((),) * 3),),
    }
    return make_inputs(**(given | fields))


def list_verdicts(inputs: ValidityInputs) -> list[Verdict]:
    return [reason.verdict for reason in judge_validity(inputs).reasons]
