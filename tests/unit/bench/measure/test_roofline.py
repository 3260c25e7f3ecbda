"""The table of GPUs' peaks, and the roofline of a step."""

import pytest

from bench.measure.roofline import Peaks, find_bound, find_gpu_peaks, make_roofline, read_gpu_table
from bench.schema import Precision
from bench.verdicts.checks import MAX_SHARE_OF_TENSOR_PEAK
from factories import make_cell


@pytest.mark.parametrize(
    ("names", "precision", "tflops", "source"),
    [
        (["Tesla T4"], "fp32", 8.1, ""),
        (["NVIDIA H100 80GB HBM3"], "tf32", 494.7, ""),
        (["NVIDIA H200"] * 4, "bf16", 4 * 989.4, ""),
        (["Tesla T4"], "bf16", None, "; no bf16 units"),
        (["Tesla P4"], "fp16", None, "; no fp16 units"),
        (["NVIDIA GeForce RTX 2060"], "fp32", None, "NVIDIA GeForce RTX 2060 not in the table of peaks"),
        (["Tesla T4", "NVIDIA L4"], "fp32", None, "NVIDIA L4 and Tesla T4 not in the table of peaks"),
        ([], "fp32", None, "no GPU not in the table of peaks"),
        (
            ["NVIDIA A100-SXM4-40GB MIG 1g.5gb"],
            "fp32",
            None,
            "a slice of NVIDIA A100-SXM4-40GB (1g.5gb): the peaks of slices are not known",
        ),
    ],
)
def test_the_peak_is_the_sum_of_those_of_the_precision_or_said_not_to_be_known(
    names: list[str], precision: Precision, tflops: float | None, source: str
) -> None:
    peaks = find_gpu_peaks(names, precision)
    assert peaks.flops_per_second == (None if tflops is None else tflops * 1e12)
    assert peaks.source.endswith(source)
    has_row = tflops is not None or "units" in source
    assert (peaks.bytes_per_second is not None, peaks.cache_bytes > 0) == (has_row, has_row)


def test_memory_and_cache_are_those_of_all_gpus_at_the_clock_of_each() -> None:
    peaks = find_gpu_peaks(["NVIDIA H200"] * 4, "bf16")
    assert peaks.bytes_per_second == 4 * 4.8e12
    assert peaks.cache_bytes == 4 * 60 * 2**20  # what the device reports, not the whole chip's
    assert peaks.clock_mhz == pytest.approx(1980, rel=2e-3)  # the highest clock, as NVML reports it


def test_no_name_is_in_two_rows_and_every_row_names_its_source() -> None:
    names = [name for row in read_gpu_table() for name in row.names]
    assert sorted(names) == sorted(set(names))
    assert all("datasheet" in row.source or "whitepaper" in row.source for row in read_gpu_table())


def test_every_figure_follows_from_cores_and_a_clock_that_such_a_chip_can_have() -> None:
    for row in read_gpu_table():
        assert 800 < row.clock_mhz < 2600, row
        # A tensor core does 2 (A10G, L40, GeForce), 4, 8 or 16 times the operations of float32 in fp16, tf32 a half,
        # at clocks that differ by a seventh at most.
        assert {"fp16", "bf16"} & set(row.tflops) or row.names[0].startswith(("Tesla K", "Tesla P")), row
        for precision, ratios in (("fp16", (2, 4, 8, 16, 32)), ("tf32", (1, 2, 4, 8, 16))):
            if precision in row.tflops:
                ratio = row.tflops[precision] / row.tflops["fp32"]
                assert any(0.86 * whole <= ratio <= 1.07 * whole for whole in ratios), (row, ratio)
        if "bf16" in row.tflops:
            assert row.tflops["bf16"] == row.tflops["fp16"], row


def test_no_tensor_core_of_hopper_can_pass_its_figure_by_more_than_the_verdict_allows() -> None:
    # A tensor core does 16 operations in fp16 for each in float32, whose figure is that of the highest clock.
    hopper = [row.tflops for row in read_gpu_table() if "H100" in row.source]
    assert len(hopper) == 7
    assert all(1.05 < 16 * tflops["fp32"] / tflops["fp16"] < MAX_SHARE_OF_TENSOR_PEAK for tflops in hopper)


def make_peaks(flops: float | None = 1e12, bandwidth: float | None = 1e11, cache_bytes: int = 0) -> Peaks:
    return Peaks(flops_per_second=flops, bytes_per_second=bandwidth, cache_bytes=cache_bytes, source="by hand")


@pytest.mark.parametrize(
    ("peaks", "expected"),
    [
        (make_peaks(), (0.02, 0.02, "memory")),  # 2e9 bytes at 1e11
        (make_peaks(flops=1e11), (0.02, 0.1, "arithmetic")),  # 1e10 operations at 1e11
        # Of 2e9 bytes a cache of 4e8 keeps 4e8 from being read and 4e8 from being written.
        (make_peaks(cache_bytes=400_000_000), (pytest.approx(0.012), pytest.approx(0.012), "memory")),
        (make_peaks(cache_bytes=1_000_000_000), (0.0, 0.01, "arithmetic")),
        (make_peaks(bandwidth=None), (None, 0.01, "arithmetic")),
        (make_peaks(flops=None), (0.02, None, None)),
    ],
)
def test_the_bound_is_the_longer_of_the_two_times(
    peaks: Peaks, expected: tuple[float | None, float | None, str | None]
) -> None:
    assert find_bound(10**10, 2 * 10**9, peaks) == expected


def test_the_share_of_the_peak_is_achieved_over_possible() -> None:
    cell = make_cell(model="matmul", phase="infer", input_size=1000, num_classes=None, batch_size=1)
    roofline = make_roofline(cell, 0.01, make_peaks(flops=1e12))
    assert (roofline.flops_per_step, roofline.min_bytes_per_step) == (2 * 10**9, 12 * 10**6)
    assert (roofline.achieved_flops_per_second, roofline.share_of_peak) == (2e11, 0.2)
    assert (roofline.min_step_seconds, roofline.bound, roofline.share_of_roofline) == (0.002, "arithmetic", 0.2)


def test_the_work_of_several_gpus_is_that_of_all() -> None:
    cell = make_cell(device="gpu", batch_size=64, num_gpus=4)
    single = make_roofline(cell.model_copy(update={"num_gpus": 1}), 0.1, make_peaks())
    several = make_roofline(cell, 0.1, make_peaks())
    assert single.flops_per_step == several.flops_per_step
    assert single.least_flops_per_step == several.least_flops_per_step == 2 * 2 * 64 * 58_740_480
    # Three more copies of the weights and of Adam's moments.
    assert several.min_bytes_per_step - single.min_bytes_per_step == 3 * 24 * 2_262_602
