"""runner.commands.durations: which texts are times, and which are not."""

import pytest

from bench.errors import UserError
from runner.commands.durations import make_duration_parser, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("1.5", 1.5), ("90s", 90), ("15m", 900), ("8h", 28_800), ("2d", 172_800), ("1w", 604_800)],
)
def test_a_number_with_or_without_a_unit_is_a_time(text: str, seconds: float) -> None:
    assert seconds == parse_duration("--deadline", text)


@pytest.mark.parametrize("text", ["0", "-1", "soon", "2 h", "1e3", "٣h", "", "h", "99999999999"])
def test_anything_else_is_an_error_that_names_the_option(text: str) -> None:
    with pytest.raises(UserError, match=r"^--prepull .*: expected a time above 0, such as 90m, 8h or 2d"):
        make_duration_parser("--prepull")(text)


def test_a_default_is_seconds_already() -> None:
    assert make_duration_parser("--deadline")(1800.0) == 1800.0
