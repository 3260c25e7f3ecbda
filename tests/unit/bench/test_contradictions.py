"""Every check of `bench.contradictions` finds its contradiction, and no record that was published has one."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bench.contradictions import CHECKS, find_contradiction, read_consistent_result
from bench.probes.nvml import HARDWARE_POWER_BRAKE
from bench.schema import ForeignProcess, InvalidDocumentError, Result, Validity, read_result
from device_contradiction_cases import DEVICE_CASES, GPU, Cases, change
from factories import (
    START,
    make_cell,
    make_cpu_use,
    make_environment,
    make_gpu,
    make_gpu_use,
    make_phases,
    make_result,
    make_validity,
)
from host_figures import make_host_figures
from tenant_contradiction_cases import TENANT_CASES, TENANT_VERDICT_CASES

ROOT = Path(__file__).parents[3]
STEPS = tuple(0.1 + 0.0001 * number for number in range(30))
FOREIGN = (ForeignProcess(pid=7, memory_bytes=None),)
NO_PEAK = dict.fromkeys(("peak_flops_per_second", "share_of_peak", "min_step_seconds", "bound", "share_of_roofline"))


def change_roofline(steps: Sequence[float] = STEPS, **changes: Any) -> Result:
    result = make_result(GPU, step_seconds=steps)
    assert result.roofline is not None
    return change(result, roofline=result.roofline.model_dump() | changes)


CASES: Mapping[str, Cases] = {
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
            "roofline.share_of_peak is 0.9, by a step of 0.10145 s it is 0.0716",
        ),
        "a rate of another step": (
            lambda: change_roofline(achieved_flops_per_second=1e13),
            "roofline.achieved_flops_per_second is 1e+13, by a step of 0.10145 s it is 5.80225e+11",
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
        "work that is not that of the cell": (
            lambda: change_roofline(flops_per_step=1),
            "roofline.flops_per_step is 1, a step of its cell takes 5.886e+10",
        ),
        "fewest operations that are nearly none": (
            lambda: change_roofline(least_flops_per_step=1),
            "roofline.least_flops_per_step is 1, a step of its cell takes",
        ),
        "bytes that are not those of the cell": (
            lambda: change_roofline(min_bytes_per_step=1),
            "roofline.min_bytes_per_step is 1, a step of its cell takes",
        ),
        "the peak of sixty-four GPUs that the environment lists": (
            lambda: change(
                change_roofline(peak_flops_per_second=64 * 8.1e12),
                environment=make_environment(gpus=(make_gpu(),) * 64),
            ),
            "roofline.peak_flops_per_second is 5.184e+14, that of its GPUs is 8.1e+12",
        ),
    },
    **DEVICE_CASES,
    "tenants": TENANT_CASES,
    "verdict": {
        **TENANT_VERDICT_CASES,
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
            "hardware power brake slowdown in 50% of samples, more than 5%, and its verdict does not say throttled",
        ),
        "steps that no T4 can take": (
            lambda: make_result(GPU, step_seconds=[step / 1000 for step in STEPS] * 100),
            "times the device's peak, and its verdict does not say over-peak",
        ),
        "the same without a roofline": (
            lambda: change(make_result(GPU, step_seconds=[step / 1000 for step in STEPS] * 100), roofline=None),
            "times the device's peak, and its verdict does not say over-peak",
        ),
        "the same without a peak": (
            lambda: change_roofline([step / 1000 for step in STEPS] * 100, **NO_PEAK),
            "times the device's peak, and its verdict does not say over-peak",
        ),
        "steps that no CPU of its own figures can take, with a higher peak": (
            lambda: change(
                make_result(step_seconds=[step / 1000 for step in STEPS] * 100), host_peak=make_host_figures()
            ),
            "times the device's peak, and its verdict does not say over-peak",
        ),
        "an unknown peak that was checked": (
            lambda: change(make_result(step_seconds=STEPS), roofline=None),
            "the peak of its device is not known, and what it calls unchecked does not say so",
        ),
        "a GPU that nobody looked at": (
            lambda: change(make_result(GPU), gpu_use=()),
            "nobody looked at its GPU, and it calls nothing unchecked",
        ),
        "cores that nobody looked at": (
            lambda: change(make_result(), cpu_use=None),
            "nobody looked at its cores, and it calls nothing unchecked",
        ),
        "memory of others before the start": (
            lambda: make_result(GPU, gpu_use=(make_gpu_use(memory_used_before_bytes=2**33),)),
            "in use by others before the start, more than 100, and its verdict does not say contaminated",
        ),
        "processes of others after the window": (
            lambda: make_result(GPU, gpu_use=(make_gpu_use(foreign_processes_after=FOREIGN),)),
            "was computing for others after the window (process 7), and its verdict does not say contaminated",
        ),
        "cores that others kept busy": (
            lambda: make_result(cpu_use=make_cpu_use(other_cores=2.0, affinity_other_cores=2.0)),
            "the cell's 2 threads were short of 2.0 cores, more than 10% of 2, and its verdict does not say contam",
        ),
        "a quota that was used up": (
            lambda: make_result(cpu_use=make_cpu_use(throttled_seconds=0.3)),
            "the CPU quota stopped the threads for 50% of their time, more than 5%",
        ),
        "a power limit that somebody lowered": (
            lambda: make_result(GPU, gpu_use=(make_gpu_use(power_limit_watts=60.0),)),
            "its power limit is 60 W, lowered from the default of 70 W, and its verdict does not say throttled",
        ),
        "a warm-up that was cut": (
            lambda: make_result(reached_steady=False),
            "its warm-up ended before the series was steady, and its verdict does not say not-steady",
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
