"""Lengths of time as users write them."""

import pytest

from bench.errors import UserError
from runner.commands.options import parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90.0),
        ("28800.0", 28_800.0),
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
        f"--deadline {text}: expected a time above 0, at most 31 years, such as 90s, 45m, 8h, 2d or 12w (a bare number "
        "is seconds)"
    )
