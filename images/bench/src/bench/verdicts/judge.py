"""Judges whether a measurement is valid, by every check of this package."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import get_args

from bench.schema import Reason, Validity, Verdict
from bench.verdicts import checks
from bench.verdicts.checks import ValidityInputs

GRAVITY: tuple[Verdict, ...] = get_args(Verdict)
EACH, SHARED, ALONE, TENANT = "each process", "the machine, once", "a process that is alone", "each of several tenants"
RULES: tuple[tuple[Verdict, Callable[[ValidityInputs], Iterator[str]], str], ...] = (
    ("wrong-device", checks.check_device, EACH),
    ("not-as-asked", checks.check_mode, EACH),
    ("not-as-asked", checks.check_threads, SHARED),
    ("over-peak", checks.check_roofline, EACH),
    ("contaminated", checks.check_gpu_neighbours, SHARED),
    ("contaminated", checks.check_cpu_neighbours, SHARED),
    ("throttled", checks.check_clocks, SHARED),
    ("throttled", checks.check_quota, EACH),
    ("input-bound", checks.check_input, EACH),
    ("too-short", checks.check_length, EACH),
    ("not-steady", checks.check_drift, ALONE),
    ("noisy", checks.check_spread, ALONE),
    # A turn of time-slicing is no noise, so the rate takes the place of the steps.
    ("not-steady", checks.check_rate_drift, TENANT),
    ("noisy", checks.check_rate, TENANT),
)
"""Each verdict with the check that yields the reasons for it, one line each, and what that judges."""
UNCHECKED = (
    *(checks.list_unchecked_work, checks.list_unchecked_neighbours),
    *(checks.list_unchecked_clocks, checks.list_unchecked_input),
)
"""What each kind of check could not check."""
NOTES = (checks.note_host_drift, checks.note_clocks, checks.note_levels)
"""What a reader should know that counts for nothing in the verdict."""


def judge_validity(inputs: ValidityInputs) -> Validity:
    """Return the verdict on a measurement: the gravest of all reasons that hold, `valid` without any."""
    return _make_validity(
        _find_reasons(inputs, EACH, SHARED, ALONE),
        unchecked=[text for list_unchecked in UNCHECKED for text in list_unchecked(inputs)],
        notes=[text for note in NOTES for text in note(inputs)],
    )


def judge_tenant(inputs: ValidityInputs) -> Validity:
    return _make_validity(_find_reasons(inputs, EACH, TENANT), unchecked=checks.list_unchecked_work(inputs))


def judge_tenants(inputs: ValidityInputs, reasons: Mapping[int, Sequence[Reason]], *, tenant_cores: float) -> Validity:
    """Return the verdict on a repeat with several tenants: on the device that they share, and on each of them.

    `inputs`: of tenant 0. `reasons`: of each tenant, by its number. `tenant_cores`: cores that the other tenants kept
    busy, who are no foreign neighbours.
    """
    if inputs.cpu_use is not None:  # less what the tenants kept busy, at least 0: the two are timed apart
        others = {name: getattr(inputs.cpu_use, name) for name in ("other_cores", "affinity_other_cores")}
        left = {name: max(0.0, value - tenant_cores) for name, value in others.items() if value is not None}
        inputs = replace(inputs, cpu_use=inputs.cpu_use.model_copy(update=left))
    of_tenants = [
        reason.model_copy(update={"message": f"tenant {tenant}: {reason.message}"})
        for tenant, found in reasons.items()
        for reason in found
    ]
    return _make_validity(
        [*_find_reasons(inputs, SHARED), *of_tenants],
        unchecked=[text for list_unchecked in UNCHECKED for text in list_unchecked(inputs)],
        notes=checks.note_clocks(inputs),
    )


def _find_reasons(inputs: ValidityInputs, *judged: str) -> list[Reason]:
    rules = [(verdict, check) for verdict, check, kind in RULES if kind in judged]
    return [Reason(verdict=verdict, message=text) for verdict, check in rules for text in check(inputs)]


def _make_validity(found: Sequence[Reason], unchecked: Iterable[str] = (), notes: Iterable[str] = ()) -> Validity:
    reasons = tuple(sorted(found, key=lambda reason: GRAVITY.index(reason.verdict)))
    return Validity(
        verdict=reasons[0].verdict if reasons else "valid",
        reasons=reasons,
        unchecked=tuple(unchecked),
        notes=tuple(notes),
    )
