"""The roofline against numbers by hand."""

import pytest

from bench.measure.roofline import Peaks, find_bound, make_roofline
from factories import make_cell

# The roofline


def make_peaks(flops: float | None = 1e12, bandwidth: float | None = 1e11, cache_bytes: int = 0) -> Peaks:
    return Peaks(flops_per_second=flops, bytes_per_second=bandwidth, cache_bytes=cache_bytes, source="by hand")


@pytest.mark.parametrize(
    ("peaks", "expected"),
    [
        (make_peaks(), (0.02, "memory")),  # 2e9 bytes at 1e11
        (make_peaks(flops=1e11), (0.1, "arithmetic")),  # 1e10 operations at 1e11
        # Of 2e9 bytes a cache of 4e8 keeps 4e8 from being read and 4e8 from being written.
        (make_peaks(cache_bytes=400_000_000), (pytest.approx(0.012), "memory")),
        (make_peaks(cache_bytes=1_000_000_000), (0.01, "arithmetic")),
        (make_peaks(bandwidth=None), (0.01, "arithmetic")),
        (make_peaks(flops=None), (None, None)),
    ],
)
def test_the_bound_is_the_longer_of_the_two_times(peaks: Peaks, expected: tuple[float | None, str | None]) -> None:
    bound = find_bound(10**10, 2 * 10**9, peaks)
    assert (bound.min_step_seconds, bound.name) == expected


def test_the_time_for_the_bytes_is_known_whatever_bounds_the_step() -> None:
    found = [find_bound(10**10, 2 * 10**9, make_peaks(flops=flops)) for flops in (1e12, 1e11, None)]
    assert [bound.memory_seconds for bound in found] == [0.02, 0.02, 0.02]
    assert find_bound(10**10, 2 * 10**9, make_peaks(bandwidth=None)).memory_seconds is None


def test_the_share_of_the_peak_is_achieved_over_possible() -> None:
    cell = make_cell(model="matmul", phase="infer", input_size=1000, num_classes=None, batch_size=1)
    roofline = make_roofline(cell, 0.01, make_peaks(flops=1e12))
    assert (roofline.flops_per_step, roofline.min_bytes_per_step) == (2 * 10**9, 12 * 10**6)
    assert (
        roofline.achieved_flops_per_second,
        roofline.share_of_peak,
        roofline.min_step_seconds,
        roofline.bound,
        roofline.share_of_roofline,
    ) == (2e11, 0.2, 0.002, "arithmetic", 0.2)


def test_the_work_of_several_gpus_is_that_of_all() -> None:
    cell = make_cell(device="gpu", batch_size=64, num_gpus=4)
    single = make_roofline(cell.model_copy(update={"num_gpus": 1}), 0.1, make_peaks())
    several = make_roofline(cell, 0.1, make_peaks())
    assert single.flops_per_step == several.flops_per_step
    assert single.least_flops_per_step == several.least_flops_per_step == 2 * 2 * 64 * 58_740_480
    # Three more copies of the weights and of Adam's moments.
    assert several.min_bytes_per_step - single.min_bytes_per_step == 3 * 24 * 2_262_602
