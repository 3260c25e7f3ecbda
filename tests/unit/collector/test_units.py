"""Numbers in the units that people read."""

import pytest

from collector.units import (
    GFLOPS,
    GIB,
    MIB,
    MILLISECOND,
    TFLOPS,
    THROUGHPUT,
    choose_memory_unit,
    choose_rate_unit,
    format_duration,
    format_interval,
    format_number,
    format_significant,
    join_some,
    list_some,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.8701, "0.870"),
        (0.0333, "0.0333"),
        (12.34, "12.3"),
        (99.96, "100"),
        (9.996, "10.0"),
        (636.4, "636"),
        (35123.42, "35,100"),
        (0.0, "0"),
        (9.994e14, "999,000,000,000,000"),
        (9.996e14, "1.00e+15"),
        (-1.7976931348623157e308, "-1.80e+308"),
        (1.234e-9, "0.00000000123"),
        (5e-324, "4.94e-324"),
        (float("inf"), "inf"),
    ],
)
def test_numbers_have_three_significant_digits(value: float, text: str) -> None:
    assert format_significant(value) == text


def test_seconds_are_shown_in_milliseconds_and_a_missing_number_is_a_dash() -> None:
    assert format_interval(0.636, 0.64, MILLISECOND) == "636 to 640"
    for value in (None, float("nan")):
        assert (format_number(value, MILLISECOND), format_interval(1.0, value, MILLISECOND)) == ("–", "–")


def test_a_column_has_the_unit_of_its_largest_value() -> None:
    largest = (842 * 2**20, 0.1 * 2**30, 100 * 2**20, 0)
    assert [choose_memory_unit([one, 5]) for one in largest] == [GIB, GIB, MIB, MIB]
    assert (choose_rate_unit([9e11, 1e9]), choose_rate_unit([1e9, 1e12])) == (GFLOPS, TFLOPS)


def test_durations_are_in_words() -> None:
    found = [format_duration(seconds) for seconds in (41.4, 59.6, 252, 7500)]
    assert found == ["41 s", "1 min 0 s", "4 min 12 s", "2 h 5 min"]


def test_samples_per_second_have_the_same_digits_everywhere() -> None:
    # One table had 2,624 of a cell and another 2,620.
    assert format_number(2624.4, THROUGHPUT) == "2,624"
    assert format_interval(2611.2, 2637.9, THROUGHPUT) == "2,611 to 2,638"
    assert format_number(0.0024, MILLISECOND) == "2.40"


@pytest.mark.parametrize(
    ("number", "joined", "listed"),
    [
        (0, "", []),
        (2, "0, 1", ["0", "1"]),
        (3, "0, 1 and 1 more", ["0", "1", "1 more"]),
        (1002, "0, 1 and 1,000 more", ["0", "1", "1,000 more"]),
    ],
)
def test_the_first_texts_stand_before_the_number_of_the_others(number: int, joined: str, listed: list[str]) -> None:
    texts = [str(one) for one in range(number)]
    assert (join_some(texts, 2), list_some(texts, 2)) == (joined, listed)
