"""runner.local.run: the values of --python, and the signals that interrupt a run."""

import os
import re
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

from bench.errors import UserError
from bench.schema import Framework
from fake_interpreters import make_interpreter
from runner.local.run import EndRequested, end_like_interrupt, parse_interpreters

FRAMEWORKS: tuple[Framework, ...] = ("pytorch", "tensorflow")


def test_interpreters_are_read_for_all_frameworks_or_for_one(tmp_path: Path) -> None:
    one, two = (make_interpreter(tmp_path / name, "") for name in ("one", "two"))

    assert dict.fromkeys(FRAMEWORKS, one) == parse_interpreters([str(one)], FRAMEWORKS)
    assert parse_interpreters([f"tensorflow={two}"], FRAMEWORKS) == {"tensorflow": two}
    assert parse_interpreters([str(one), f"tensorflow={two}"], FRAMEWORKS) == {"pytorch": one, "tensorflow": two}
    assert parse_interpreters([], FRAMEWORKS) == {}


def test_a_relative_interpreter_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_interpreter(tmp_path / "python", "")
    monkeypatch.chdir(tmp_path)

    assert parse_interpreters(["pytorch=./python"], FRAMEWORKS) == {"pytorch": tmp_path / "python"}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("/no/such/python", "--python /no/such/python: "),
        ("pytorch=/no/such/python", "--python pytorch=/no/such/python: "),
        ("torch=/bin/sh", "--python torch=/bin/sh: 'torch' is no framework; it takes PATH or pytorch=PATH or tensorf"),
        ("pytorch=", "--python pytorch=: "),
        ("", "--python : "),
        ("/etc/passwd", "--python /etc/passwd: "),  # no program
        ("/tmp", "--python /tmp: "),
    ],
)
def test_what_is_no_interpreter_is_refused(value: str, message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        parse_interpreters([value], FRAMEWORKS)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_request_to_end_is_an_interrupt_within_the_block_alone(number: int) -> None:
    previous = signal.signal(number, signal.SIG_DFL)  # under nohup, tests are started with SIGHUP ignored
    try:
        tidying_up = ExitStack()
        tidying_up.callback(os.kill, os.getpid(), signal.SIGTERM)  # does not end it
        with pytest.raises(EndRequested) as caught, end_like_interrupt(), tidying_up:
            os.kill(os.getpid(), number)

        assert caught.value.signal_number == number
        assert signal.getsignal(number) == signal.SIG_DFL
    finally:
        signal.signal(number, previous)


def test_a_run_under_nohup_outlives_its_terminal() -> None:
    previous = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with end_like_interrupt():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, previous)
