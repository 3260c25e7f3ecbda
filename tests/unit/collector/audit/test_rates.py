"""What rate a time implies, and whether a device reaches it under any reading of the work."""

import pytest

from collector.audit.rates import Limit, Plausibility, Rate, Work, describe_rate, is_too_slow

T4 = Limit(device="Tesla T4", flops_per_second=8.1e12)


def make_rate(teraflops: float, *, seconds: float = 1.0, winograd_share: float = 1.0) -> Rate:
    work = Work(label="224 px", flops=teraflops * 1e12, winograd_share=winograd_share)
    return Rate(work=work, seconds=seconds, limit=T4)


@pytest.mark.parametrize(
    ("teraflops", "winograd_share", "plausibility", "algorithm"),
    [
        (8.1, 1.0, "possible", "direct convolutions"),
        (8.2, 1.0, "implausible", "F(2x2, 3x3)"),
        (8.2, 0.0, "impossible", None),  # no 3x3 convolution, nothing to save
        (18.2, 1.0, "implausible", "F(2x2, 3x3)"),  # 18.2 / 2.25 = 8.09
        (18.3, 1.0, "implausible", "F(4x4, 3x3)"),  # 8.13, and 4.6 with 4 times fewer
        (32.4, 1.0, "implausible", "F(4x4, 3x3)"),  # 32.4 / 4 = 8.1
        (32.5, 1.0, "impossible", None),
        (12.9, 0.5, "implausible", "F(4x4, 3x3)"),  # half of it a quarter: 12.9 x 0.625 = 8.06
        (13.0, 0.5, "impossible", None),  # 8.125
    ],
)
def test_impossible_is_what_no_algorithm_reaches(
    teraflops: float, winograd_share: float, plausibility: Plausibility, algorithm: str | None
) -> None:
    rate = make_rate(teraflops, winograd_share=winograd_share)
    assert (rate.plausibility, rate.algorithm) == (plausibility, algorithm)


def test_a_range_of_work_is_possible_by_its_fewest_and_a_baseline_by_its_most() -> None:
    work = Work(label="224 px", flops=1e9, most_flops=40e9)
    rate = Rate(work=work, seconds=5.0, limit=Limit(device="Xeon", flops_per_second=198.4e9, word="bound"))
    assert rate.plausibility == "possible"
    assert "0.200 to 8.00 GFLOP/s, 0.101 to 4.03 % of the 198 GFLOP/s bound of a Xeon" in describe_rate(rate)
    assert not is_too_slow(rate, 70e9)  # a tenth of 70 is 7
    assert is_too_slow(rate, 81e9)
