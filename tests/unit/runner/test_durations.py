"""Lengths of time as users write them."""

import pytest

from bench.errors import UserError
from runner.durations import parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90.0),
        ("28800.0", 28_800.0),
        ("1e3", 1_000.0),
        ("90s", 90.0),
        ("1.5m", 90.0),
        ("8h", 28_800.0),
        ("2d", 172_800.0),
        ("12w", 7_257_600.0),
    ],
)
def test_a_length_of_time_is_a_number_with_a_unit(text: str, seconds: float) -> None:
    assert parse_duration("--deadline", text) == seconds


@pytest.mark.parametrize("text", ["", "0", "0h", "-1", "soon", "8 h", "8H", "h", "1h30m", "١h", "nan", "inf"])
def test_what_is_none_is_refused_with_the_option_and_what_it_takes(text: str) -> None:
    with pytest.raises(UserError) as error:
        parse_duration("--deadline", text)
    assert str(error.value) == (
        f"--deadline {text}: expected a time above 0, such as 90s, 45m, 8h, 2d or 12w (a bare number is seconds)"
    )


@pytest.mark.parametrize(("text", "is_taken"), [("86400", True), ("24h", True), ("23h", False), ("90", False)])
def test_an_option_may_ask_for_a_least_time(text: str, is_taken: bool) -> None:
    if is_taken:
        assert parse_duration("--raw-older-than", text, least="1d") == 86_400
        return
    with pytest.raises(UserError, match=r"expected a time of at least 1d, such as 2d or 12w \("):
        parse_duration("--raw-older-than", text, least="1d")


@pytest.mark.parametrize("text", ["1e99", "2000w"])
def test_a_time_that_is_too_long_is_not_told_to_be_above_nothing(text: str) -> None:
    with pytest.raises(UserError, match=f"--deadline {text}: expected a time of at most 31 years, such as 90s, "):
        parse_duration("--deadline", text, least="1s")
