"""Foreign texts on their way to a terminal, messages without secrets, and where lines can be drawn again."""

import io

import pytest
from rich.console import Console
from rich.table import Table

from runner.terminal import can_redraw, format_message, make_console, replace_unprintable

FOREIGN = "a\x1b[31m\u202eb\x9b2Jc\x07"


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


def test_a_console_prints_foreign_texts_without_what_steers_a_terminal() -> None:
    file = io.StringIO()
    table = Table(FOREIGN)
    table.add_row(FOREIGN)

    make_console(file).print(FOREIGN, soft_wrap=True)
    make_console(file).print(table)

    printed = file.getvalue()
    assert printed.splitlines()[0] == "a [31m b 2Jc"  # rich leaves out the bell
    assert [letter for letter in printed if not letter.isprintable() and letter != "\n"] == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"{FOREIGN}\nerror: forged", f"{replace_unprintable(FOREIGN)}\n  error: forged"),
        ("has no run 's3://AKIA:se/cr@et@bucket/p'", "has no run 's3://...@bucket/p'"),
        ("https://token@host/x and s3://a:b@c", "https://...@host/x and s3://...@c"),
        ("image 's3://bucket/x?token=secret#y': unknown", "image 's3://bucket/x?...': unknown"),
        ("https://host:443/a see github.com/a/b@main", "https://host:443/a see github.com/a/b@main"),
        ("file:/user:se/cret@host/x: there is no such file", "file:/...@host/x: there is no such file"),
    ],
)
def test_a_message_is_printable_and_shows_no_user_and_no_password_of_a_url(text: str, shown: str) -> None:
    assert format_message(text) == shown
