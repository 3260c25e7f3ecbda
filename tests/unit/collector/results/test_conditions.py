"""The columns that say under which conditions a repeat was measured."""

from typing import Any

import pytest

from bench.schema import ForeignProcess
from collector.results.documents import describe_result
from factories import (
    make_cell,
    make_cpu_use,
    make_device_profile,
    make_gpu_activity,
    make_gpu_use,
    make_host_figures,
    make_result,
)

GPU_CELL = make_cell(device="gpu", num_gpus=2, batch_size=64)


def describe(**overrides: Any) -> dict[str, Any]:
    return describe_result(make_result(GPU_CELL, **overrides))


def test_power_and_energy_of_the_gpus_of_a_cell_are_summed() -> None:
    row = describe(gpu_use=(make_gpu_use(energy_joules=180.0), make_gpu_use(energy_joules=240.0)))
    assert row["gpu_idle_power_watts"] == 20.0
    assert row["gpu_mean_power_watts"] == pytest.approx(140.0)  # 180 / 3 s + 240 / 3 s
    assert row["gpu_energy_per_step_joules"] == pytest.approx(14.0)  # 420 J, 30 steps
    assert row["gpu_energy_per_sample_joules"] == pytest.approx(14 / 64)


def test_energy_is_not_known_where_one_of_the_gpus_does_not_report_it() -> None:
    row = describe(gpu_use=(make_gpu_use(), make_gpu_use(energy_joules=None, energy_source=None)))
    assert (row["gpu_mean_power_watts"], row["gpu_energy_per_sample_joules"]) == (None, None)


def test_the_slowest_clock_the_highest_temperature_and_the_fullest_memory_count() -> None:
    other = make_gpu_use(
        sm_clock_mhz=(700, 795, 1590),
        temperature_celsius=(70, 80, 75),
        memory_used_before_bytes=5,
        memory_used_peak_bytes=2**31,
        throttle_reasons={"power cap": 0.5, "idle": 0.0},
    )
    row = describe(gpu_use=(make_gpu_use(throttle_reasons={"power cap": 0.2, "heat": 0.6}), other))
    assert (
        row["gpu_sm_clock_mhz"],
        row["gpu_sm_clock_share"],
        row["gpu_max_temperature_celsius"],
    ) == (795, 0.5, 80)
    assert (row["gpu_memory_before_bytes"], row["gpu_memory_peak_bytes"]) == (2**20, 2**31)
    assert row["gpu_throttle_reasons"] == "heat 60 %, power cap 50 %"


def test_cpu_energy_is_per_sample_of_the_timed_window_and_throttling_a_share_of_periods() -> None:
    use = make_cpu_use(energy_joules=96.0, num_periods=40, num_throttled_periods=10)
    row = describe_result(make_result(make_cell(batch_size=8), cpu_use=use))
    assert row["cpu_energy_per_sample_joules"] == 96 / (3 * 8)
    assert row["cpu_throttled_share"] == 0.25


def test_kernels_and_copies_are_those_of_the_busiest_gpu_in_one_step() -> None:
    idle = make_gpu_activity(device_index=1, num_kernels=900, busy_seconds=0.05)
    row = describe(device_profile=make_device_profile(gpus=(make_gpu_activity(), idle)))
    assert (row["kernels_per_step"], row["copies_per_step"]) == (100.0, 2.0)
    assert (row["kernel_seconds_per_step"], row["kernel_busy_share"]) == (0.02, 0.2)
    assert (row["profiled_step_seconds"], row["profiled_busy_share"]) == (0.125, 0.16)  # the first step left out


@pytest.mark.parametrize(
    ("before", "after", "is_visible", "expected"),
    [
        ((), (), True, 0),
        ((7,), (), True, 1),
        ((7,), (7, 8), True, 2),  # one that stayed counts once
        ((), None, False, None),  # nobody was seen where nobody can be seen
        (None, None, None, None),
        ((7,), None, False, 1),
    ],
)
def test_foreign_processes_that_cannot_be_seen_are_not_none(
    before: tuple[int, ...] | None, after: tuple[int, ...] | None, is_visible: bool | None, expected: int | None
) -> None:
    def make_processes(pids: tuple[int, ...] | None) -> tuple[ForeignProcess, ...] | None:
        return None if pids is None else tuple(ForeignProcess(pid=pid, memory_bytes=None) for pid in pids)

    use = make_gpu_use(
        foreign_processes=make_processes(before),
        foreign_processes_after=make_processes(after),
        processes_visible=is_visible,
    )
    row = describe_result(make_result(make_cell(device="gpu"), gpu_use=(use,)))
    assert row["num_foreign_processes"] == expected


def test_the_matrix_product_of_a_cpu_cell_is_the_faster_of_its_two() -> None:
    assert describe(host_peak=make_host_figures(before=1e11, after=1.1e11))["cpu_product_flops_per_second"] == 1.1e11
    assert describe(host_peak=make_host_figures(before=None, after=None))["cpu_product_flops_per_second"] is None
    assert "cpu_product_flops_per_second" not in describe()
