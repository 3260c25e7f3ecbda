"""Texts of other programs, of any length: what hides credentials in them takes no more than some seconds."""

import resource
import subprocess
import sys

import pytest

CHARACTERS = 500_000
"""What tries each place of such a word to its end takes more than ten minutes of a processor."""
CPU_SECONDS = 60
PARTS = (
    "x",
    "a:",
    ":/",
    "://",
    ":///",
    "://a:",
    "://a@",
    "://x?",
    "?",
    "@",
    "@sha1:",
    "KEY",
    "API_KEY",
    "API_KEY=",
    "TOKEN",
    "_FILE",
    "sig=",
    "bearer ",
    "-----BEGIN ",
    "-----BEGIN PRIVATE KEY-----",
)
"""What the patterns begin with, and what they may go on with."""
PROGRAM = """
import sys
from bench.known_secrets import hide_printed_secrets, hide_secrets, is_secret_variable
from runner.terminal_text import format_message, hide_credentials

number, *parts = sys.argv[1:]
for part in parts:
    text = part * (int(number) // len(part))
    for hide in (hide_printed_secrets, hide_secrets, format_message, hide_credentials):
        hide(text), hide(f"s3://a:{text}"), hide(f"{text}@b")
    is_secret_variable(text, text)
"""


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))


@pytest.mark.parametrize("part", PARTS)
def test_a_word_of_half_a_megabyte_takes_no_more_than_some_seconds_of_a_processor(part: str) -> None:
    command = [sys.executable, "-c", PROGRAM, str(CHARACTERS), part]
    done = subprocess.run(command, preexec_fn=_limit, capture_output=True, text=True)  # noqa: PLW1509
    assert done.returncode == 0, f"{part}: {done.returncode} {done.stderr[-300:]}"
