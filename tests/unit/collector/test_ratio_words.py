"""How much longer one side takes, in words, with the digits that its interval has to say."""

import pytest

from collector.ratio_words import (
    format_percent,
    format_ratio,
    format_ratios,
)
from collector.statistics import Estimate

# Student's t at 4 degrees of freedom: 2.776445 at 97.5 %, 4.851194 at 1 - 0.05 / 12 (six intervals together).


def make_ratio(center: float, error: float | None) -> Estimate:
    """Return a ratio of times with this standard error of its log, from two sides of three repeats."""
    return Estimate(center=center, log_standard_error=error, degrees_of_freedom=None if error is None else 4)


@pytest.mark.parametrize(
    ("interval", "texts"),
    [
        ((0.842, 1.21), ("0.842", "1.210")),
        ((1.1754, 1.1826), ("1.175", "1.183")),
        ((1.0003, 1.0168), ("1.0003", "1.0168")),  # with three digits 1.000 to 1.017, which reads as if 1 were in it
        ((1.94, 2.07), ("1.94", "2.07")),
        ((0.04, 25.0), ("0.0400", "25.0")),
        ((39.9998, 40.0002), ("39.9998", "40.0002")),
        ((1.5, 1.5), ("1.500", "1.500")),
        ((0.0, float("inf")), ("0.000", "inf")),
    ],
)
def test_the_ends_of_an_interval_of_ratios_read_neither_alike_nor_as_1(
    interval: tuple[float, float], texts: tuple[str, str]
) -> None:
    assert format_ratios(*interval) == texts


@pytest.mark.parametrize(
    ("ratio", "text", "percent"),
    [
        (1.0092, "1.009", "0.9"),
        (1.179, "1.179", "17.9"),
        (0.5001, "0.500", "−50.0"),
        (1.9996, "2.000", "100.0"),
        (2.06, "2.06", "106"),
        (22.75, "22.8", "2,175"),
        (1.00004, "1.00004", "0.004"),  # never as if there were no difference
        (1.0, "1.000", "0.0"),
    ],
)
def test_a_ratio_and_its_percentage_have_the_digits_of_their_size(ratio: float, text: str, percent: str) -> None:
    assert (format_ratio(ratio), format_percent(ratio - 1)) == (text, percent)
