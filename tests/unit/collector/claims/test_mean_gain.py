"""The mean of gains and where it lies."""

from math import sqrt

import pytest

from collector.claims.mean_gain import Gain, compute_mean, describe_gain, judge_mean
from collector.claims.stated_times import compute_latency_gains
from collector.claims.study import load_study


def make_gain(value: float, half_width: float = 0.0) -> Gain:
    return Gain(name="conv6", value=value, low=value - half_width, high=value + half_width)


def test_the_studys_own_table_passes_the_rule_for_its_own_claim() -> None:
    gains = [make_gain(gain) for gain in compute_latency_gains(load_study()).values()]
    (claim,) = (claim for claim in load_study().claims if claim.id == "latency")
    assert claim.figure is not None
    assert [round(100 * gain.value, 1) for gain in gains] == [18.6, 6.4, 9.8, 6.1]
    assert judge_mean(claim.figure, gains) == "reproduced"


def test_half_widths_of_independent_gains_add_up_in_squares() -> None:
    mean = compute_mean([make_gain(0.1, 0.03), make_gain(0.2, 0.04)])
    assert mean.value == pytest.approx(0.15)
    assert mean.low == pytest.approx(0.15 - sqrt(0.03**2 + 0.04**2) / 2)
    assert mean.high == pytest.approx(0.175)


@pytest.mark.parametrize(
    ("value", "half_width", "verdict"),
    [
        (0.15, 0.04, "reproduced"),
        (0.15, 0.06, "not decided"),
        (0.21, 0.005, "not reproduced"),
        (0.21, 0.02, "not decided"),
        (-0.15, 0.01, "not reproduced"),
    ],
)
def test_the_means_interval_decides(value: float, half_width: float, verdict: str) -> None:
    assert judge_mean(0.15, [make_gain(value, half_width)]) == verdict


def test_a_loss_is_written_as_higher_latency() -> None:
    assert describe_gain(make_gain(0.186)) == "conv6 18.6 % lower"
    assert describe_gain(make_gain(-0.05, 0.01)) == "conv6 5.00 % higher (95 % interval 4.00 to 6.00)"
