"""The verdict as a whole: of one process, and of several tenants."""

from pathlib import Path
from typing import get_args

import pytest

from bench.schema import GpuUse, Reason, Validity, Verdict
from bench.verdicts import judge_tenant, judge_tenants, judge_validity
from factories import make_cell, make_cpu_use, make_gpu_use
from validity_inputs import make_gpu_inputs, make_inputs


def test_a_healthy_measurement_is_valid() -> None:
    assert judge_validity(make_inputs()) == Validity(verdict="valid", reasons=())
    assert judge_validity(make_gpu_inputs()) == Validity(verdict="valid", reasons=())


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [
        ((), ("other users of the GPU not looked for", "clocks of the GPU not observed")),  # NVML could not be asked
        (
            (make_gpu_use(sample_seconds=(), sm_clock_mhz=(), temperature_celsius=(), power_watts=()),),
            ("clocks of the GPU not observed",),  # no sampling pass
        ),
    ],
)
def test_a_valid_measurement_says_what_nobody_saw(gpus: tuple[GpuUse, ...], expected: tuple[str, ...]) -> None:
    validity = Validity(verdict="valid", reasons=(), unchecked=expected)
    assert judge_validity(make_gpu_inputs(gpu_use=gpus)) == validity


def test_the_page_for_sceptics_has_a_row_for_each_verdict_in_the_order_of_gravity_and_fits_a_screen() -> None:
    lines = (Path(__file__).parents[4] / "docs" / "verdicts.md").read_text().splitlines()
    rows = [line.split("`")[1] for line in lines if line.startswith("| `")]
    assert rows == ["valid", *(verdict for verdict in get_args(Verdict) if verdict != "valid")]
    assert len(lines) <= 50


NOISY = Reason(verdict="noisy", message="the rate over the window has a standard error of 7%, more than 5%")


def test_cores_that_other_tenants_kept_busy_are_no_strangers() -> None:
    # Two threads on two cores, of which this tenant got one and the others 0.95.
    inputs = make_inputs(
        cpu_use=make_cpu_use(window_seconds=1.0, own_cores=1.0, other_cores=0.95, affinity_other_cores=0.95)
    )
    assert judge_validity(inputs).verdict == "contaminated"
    assert judge_tenants(inputs, {}, tenant_cores=0.95).verdict == "valid"
    verdict = judge_tenants(inputs, {}, tenant_cores=0.5)
    assert verdict.verdict == "contaminated"
    assert "others kept 0.4 of 2 cores busy" in verdict.reasons[0].message  # 0.95 less 0.5


def test_each_tenants_reasons_are_told_with_its_number() -> None:
    verdict = judge_tenants(make_inputs(), {0: (), 3: (NOISY,)}, tenant_cores=0.0)
    assert verdict.verdict == "noisy"
    assert [reason.message for reason in verdict.reasons] == [f"tenant 3: {NOISY.message}"]


def test_a_stranger_on_the_gpu_is_told_of_once() -> None:
    gpu = make_gpu_use(foreign_memory_after_bytes=2**30)
    inputs = make_gpu_inputs(gpu_use=(gpu,))
    assert judge_tenant(inputs).verdict == "valid"  # a tenant alone cannot tell who the others are
    assert judge_tenants(inputs, {}, tenant_cores=0.0).verdict == "contaminated"


def test_turns_of_time_slicing_are_no_noise_in_a_tenants_steps() -> None:
    steps = (0.1, 0.3) * 45
    inputs = make_inputs(steps, cell=make_cell())
    assert judge_validity(inputs).verdict == "noisy"
    assert judge_tenant(inputs).verdict == "valid"


def test_memory_before_the_start_may_be_that_of_the_server_of_mps() -> None:
    gpu = make_gpu_use(memory_used_before_bytes=2**30)
    assert judge_validity(make_gpu_inputs(gpu_use=(gpu,))).verdict == "contaminated"
    verdict = judge_validity(make_gpu_inputs(gpu_use=(gpu,), is_under_mps=True))
    assert verdict.verdict == "valid"
    assert f"whose memory was in use on {gpu.uuid} before the start: MPS's server has some" in verdict.unchecked
