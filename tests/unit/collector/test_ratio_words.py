"""Ratios in words: by themselves, and as one of a table."""

import pytest

from collector.ratio_words import (
    count_differences,
    describe_longer,
    format_percent,
    format_ratio,
    format_ratios,
    take_joint_intervals,
)
from collector.results.frames import make_frame
from collector.statistics import Estimate


@pytest.mark.parametrize(("center", "words"), [(1.12, "12.0 % longer"), (3.0, "3.00 times as long")])
def test_from_twice_the_time_on_multiples_are_named(center: float, words: str) -> None:
    assert describe_longer(Estimate(center=center, log_standard_error=None, degrees_of_freedom=None)) == words


def test_a_ratio_that_was_not_tested_keeps_its_own_interval() -> None:
    columns = dict.fromkeys(("ratio_low", "ratio_high", "joint_low", "joint_high"), "float64")
    rows = [dict(zip(columns, ends, strict=True)) for ends in ((1.1, 1.3, 1.0, 1.4), (0.8, 0.9, None, None))]
    taken = take_joint_intervals(make_frame(rows, columns))
    assert taken["ratio_low"].tolist() == [1.0, 0.8]
    assert taken["ratio_high"].tolist() == [1.4, 0.9]


@pytest.mark.parametrize(
    ("verdicts", "sentence"),
    [
        ([], ""),
        ([(None, "one repeat")], ""),
        ([(0.5, "undecided")], "1 ratio was tested: no difference shown."),
        (
            [(0.001, "slower"), (0.04, "undecided"), (0.9, "undecided")],
            "3 ratios were tested together, 1 of them differs.",
        ),
    ],
)
def test_the_number_of_comparisons_is_said_in_words(verdicts: list[tuple[float | None, str]], sentence: str) -> None:
    columns = {"p_value": "float64", "decision": "str"}
    rows = [dict(zip(columns, verdict, strict=True)) for verdict in verdicts]
    assert count_differences(make_frame(rows, columns)) == sentence


def test_the_ends_of_an_interval_of_ratios_never_read_as_1() -> None:
    ends = [(0.842, 1.21), (1.0003, 1.0168), (1.94, 2.07), (0.04, 25.0)]
    assert [format_ratios(*one) for one in ends] == [
        "0.842 to 1.210",
        "1.0003 to 1.017",  # with three digits 1.000 to 1.017, which reads as if 1 were in it
        "1.94 to 2.07",
        "0.0400 to 25.0",
    ]


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
