"""runner.terminal: which variables are removed, and where lines can be drawn again."""

import io

import pytest
from rich.console import Console

from runner.terminal import can_redraw, clean_variables


@pytest.mark.parametrize(
    ("value", "is_kept"),
    [
        ("80", True),
        ("1", True),
        ("10000", True),
        ("0", False),
        ("10001", False),
        ("²", False),
        ("", False),
        ("-5", False),
    ],
)
def test_only_whole_numbers_are_sizes(value: str, is_kept: bool) -> None:
    variables = {"COLUMNS": value, "TERMINAL_WIDTH": value, "NAME": value}

    clean_variables(variables)

    assert variables == ({"COLUMNS": value, "TERMINAL_WIDTH": value, "NAME": value} if is_kept else {"NAME": value})


class Tty(io.StringIO):
    """A file that says whether it is a terminal."""

    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


@pytest.mark.parametrize(
    ("is_terminal", "variables", "expected"),
    [
        (True, {"TERM": "xterm-256color"}, True),
        (True, {"TERM": "dumb"}, False),
        (True, {"TERM": "xterm", "CI": "true"}, False),
        (True, {"TERM": "xterm", "CI": "false"}, True),
        (False, {"TERM": "xterm"}, False),
        (False, {"TERM": "xterm", "FORCE_COLOR": "1"}, False),  # as in GitHub's logs
    ],
)
def test_lines_are_drawn_again_in_a_terminal_alone(
    is_terminal: bool, variables: dict[str, str], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CI", "FORCE_COLOR", "TTY_COMPATIBLE", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert can_redraw(Console(file=Tty(is_terminal))) is expected
