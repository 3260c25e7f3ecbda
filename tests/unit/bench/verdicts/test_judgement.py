"""The verdict as a whole: valid without a reason, and what could not be checked."""

from pathlib import Path
from typing import get_args

import pytest

from bench.schema import GpuUse, Validity, Verdict
from bench.verdicts import judge_validity
from factories import make_cpu_use, make_gpu_use
from validity_inputs import list_verdicts, make_gpu_inputs, make_inputs


def test_a_healthy_measurement_is_valid() -> None:
    assert judge_validity(make_inputs()) == Validity(verdict="valid", reasons=())
    assert judge_validity(make_gpu_inputs()) == Validity(verdict="valid", reasons=())


def test_what_could_not_be_read_is_held_against_nobody() -> None:
    use = make_cpu_use(1.0, other_cores=None, num_periods=None, num_throttled_periods=None, throttled_seconds=None)
    blind = make_gpu_use(
        memory_used_before_bytes=None,
        max_sm_clock_mhz=None,
        sample_seconds=(),
        sm_clock_mhz=(),
        temperature_celsius=(),
        power_watts=(),
        throttle_reasons={},
    )
    assert list_verdicts(make_gpu_inputs(cpu_use=use, gpu_use=(blind,), roofline=None, device_kind=None)) == []


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [
        ((), ("other users of the GPU not looked for", "clocks of the GPU not observed")),  # NVML could not be asked
        (
            (make_gpu_use(sample_seconds=(), sm_clock_mhz=(), temperature_celsius=(), power_watts=()),),
            ("clocks of the GPU not observed",),  # no sampling pass
        ),
        ((make_gpu_use(), make_gpu_use(max_sm_clock_mhz=None)), ("clocks of the GPU not observed",)),  # one of two
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
