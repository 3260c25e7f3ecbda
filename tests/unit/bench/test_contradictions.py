"""Every check of `bench.contradictions` finds its contradiction, and no record that was published has one."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bench.contradictions import CHECKS, find_contradiction, read_consistent_result
from bench.probes.nvml import HARDWARE_POWER_BRAKE
from bench.schema import InvalidDocumentError, Result, Validity, read_result
from factories import START, make_cell, make_gpu_use, make_phases, make_result, make_validity
from tenancies import make_record, make_shared_result, make_tenancy

ROOT = Path(__file__).parents[3]
STEPS = tuple(0.1 + 0.0001 * number for number in range(30))
GPU = make_cell(device="gpu")


def change(result: Result, **changes: Any) -> Result:
    """Return the result with other fields, as whoever writes a document by hand can have them."""
    return Result.model_validate(result.model_dump() | changes)


def change_roofline(**changes: Any) -> Result:
    result = make_result(GPU, step_seconds=STEPS)
    assert result.roofline is not None
    return change(result, roofline=result.roofline.model_dump() | changes)


CASES: Mapping[str, Mapping[str, tuple[Callable[[], Result], str]]] = {
    "duration": {
        "a step of an hour in ten seconds": (
            lambda: make_result(
                step_seconds=STEPS, phases=make_phases(STEPS, (0.2, 0.1), first_step_seconds=3600.0),
                finished_at=START + timedelta(seconds=10),
            ),
            "its parts took 3605.8 s, from started_at to finished_at there are 10.0 s",
        ),
    },
    "window": {
        "steps ten times as fast as their window": (
            lambda: make_result(step_seconds=STEPS, phases=make_phases(STEPS, (0.2, 0.1), steady_seconds=30.0)),
            "30 steps of 3.043 s in sum are too short for their window of 30.000 s",
        ),
        "a window shorter than was asked for": (
            lambda: make_result(make_cell(min_seconds=5.0), step_seconds=STEPS),
            "its window of 3.043 s is shorter than the 5 s of the cell",
        ),
    },
    "parts-of-steps": {
        "a GPU slower than its steps": (
            lambda: make_result(GPU, step_seconds=STEPS, device_step_seconds=[2 * step for step in STEPS]),
            "device_step_seconds are 6.087 s in sum, in a window of 3.043 s",
        ),
    },
    "rates": {
        "a share of another step": (
            lambda: change_roofline(share_of_peak=0.9),
            "roofline.share_of_peak is 0.9, by a step of 0.10145 s it is 0.2",
        ),
        "a rate of another step": (
            lambda: change_roofline(achieved_flops_per_second=1e13),
            "roofline.achieved_flops_per_second is 1e+13, by a step of 0.10145 s it is 1.62e+12",
        ),
    },
    "peak": {
        "ten times the peak of a T4": (
            lambda: change_roofline(peak_flops_per_second=8.1e13),
            "roofline.peak_flops_per_second is 8.1e+13, that of its GPUs is 8.1e+12",
        ),
        "least work that is more than the work": (
            lambda: change_roofline(least_flops_per_step=10**12),
            "roofline.least_flops_per_step is 1e+12, more than its flops_per_step",
        ),
    },
    "tenants": {
        "tenant 0 with other steps than the result": (
            lambda: change(
                make_shared_result(), tenancy=make_tenancy(make_record(step_seconds=[0.05]), make_record(1))
            ),
            "the steps of tenant 0 are not those of the result",
        ),
        "steps for longer than the window": (
            lambda: make_shared_result(make_tenancy(make_record(), make_record(1, step_seconds=[0.2, 0.2]))),
            "the steps of tenant 1 took 0.400 s of 0.300 s",
        ),
        "two tenants with one's steps": (
            lambda: make_shared_result(
                make_tenancy(make_record(0, step_seconds=STEPS), make_record(1, step_seconds=STEPS), window_seconds=4.0)
            ),
            "tenants 0 and 1 have the same step times",
        ),
    },
    "verdict": {
        "valid steps of all lengths": (
            lambda: make_result(step_seconds=[0.1, 0.2, 0.4] * 10),
            "steps spread by 76% around their median of 0.2 s, and its verdict does not say noisy",
        ),
        "valid steps that take longer and longer": (
            lambda: make_result(step_seconds=[0.1 + 0.005 * number for number in range(30)]),
            "the last third of the window is +82% off the first, and its verdict does not say not-steady",
        ),
        "one step": (
            lambda: make_result(step_seconds=[0.1]),
            "1 steps in 0.1 s, and its verdict does not say too-short",
        ),
        "a brake in half of the samples": (
            lambda: make_result(
                GPU, step_seconds=STEPS, gpu_use=(make_gpu_use(throttle_reasons={HARDWARE_POWER_BRAKE: 0.5}),)
            ),
            "its GPU gave hardware power brake slowdown in 50% of the samples, and its verdict does not say throttled",
        ),
        "steps that no T4 can take": (
            lambda: make_result(GPU, step_seconds=[step / 1000 for step in STEPS] * 100),
            "times the device's peak, and its verdict does not say over-peak",
        ),
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "case"), [(name, case) for name, cases in CASES.items() for case in cases], ids=lambda value: value
)
def test_a_contradiction_is_named(name: str, case: str) -> None:
    make, expected = CASES[name][case]
    found = list(CHECKS[name](make()))
    assert any(expected in text for text in found), found
    assert find_contradiction(make()) is not None


def test_a_plain_result_has_none() -> None:
    assert find_contradiction(make_result(step_seconds=STEPS)) is None
    assert find_contradiction(make_result(GPU, step_seconds=STEPS)) is None


def test_a_fault_that_the_verdict_names_is_none() -> None:
    assert find_contradiction(make_result(step_seconds=[0.1, 0.2, 0.4] * 10, validity=make_validity("noisy"))) is None


def test_a_document_that_contradicts_itself_is_refused() -> None:
    result = make_result(step_seconds=[0.1, 0.2, 0.4] * 10)
    assert result.validity == Validity(verdict="valid", reasons=())
    with pytest.raises(InvalidDocumentError, match="^contradicts itself: steps spread by 76%"):
        read_consistent_result(result.to_json())


def test_no_published_result_has_one() -> None:
    paths = sorted((ROOT / "docs" / "results").glob("*/runs/*/results/*/*.json"))
    found = {path.name: text for path in paths if (text := find_contradiction(read_result(path.read_bytes())))}
    assert found == {}
    assert len(paths) > 400


def test_every_check_is_described_and_tried() -> None:
    page = (ROOT / "docs" / "contradictions.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| `")]
    assert [row.strip("`") for row in rows] == [*CHECKS]
    assert {*CASES} == {*CHECKS}
