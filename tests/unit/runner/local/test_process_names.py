"""runner.local.process_names: what is shown of the command line of somebody else's process."""

import os
from pathlib import Path

import pytest

from runner.local.process_names import MAX_CHARACTERS, describe_command, read_command, read_user


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (("/usr/bin/python3", "/home/ada/train.py", "--token", "s3cret"), "python3 train.py"),
        (("python3", "-m", "http.server", "8000"), "python3 -m http.server"),
        (("python3", "-c", "password = 's3cret'"), "python3"),
        (("mysql", "-p", "s3cret"), "mysql"),
        (("mysql", "-ps3cret"), "mysql"),
        (("curl", "https://ada:s3cret@example.org/?key=s3cret"), "curl https://(hidden)"),
        (("env", "TOKEN=s3cret", "work"), "env TOKEN=(hidden)"),
        (("kworker\x1b[31m",), "kworker"),
        (("",), "name"),
        ((), "name"),
    ],
)
def test_the_program_and_what_it_runs_are_shown_and_no_option(arguments: tuple[str, ...], shown: str) -> None:
    assert describe_command(arguments, "name").startswith(shown)
    assert "s3cret" not in describe_command(arguments, "name")
    assert "\x1b" not in describe_command(arguments, "name")


def test_a_long_name_is_cut() -> None:
    assert len(describe_command(("a" * 500, "b"), "name")) <= MAX_CHARACTERS + len("...")


def test_what_the_kernel_shows_of_a_process_is_read() -> None:
    assert read_command(Path("/proc"), os.getpid())[0]
    assert read_user(Path("/proc"), os.getpid())


def test_a_process_that_ended_has_no_command_and_no_user(tmp_path: Path) -> None:
    assert read_command(tmp_path, 7) == ()
    assert read_user(tmp_path, 7) is None
