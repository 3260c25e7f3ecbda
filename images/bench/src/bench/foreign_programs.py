"""Runs programs of others, such as git and docker, which may never end or print without end: both have limits."""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bench.signal_handlers import delay_interrupts

CHUNK_BYTES = 64 * 2**10
TAIL_BYTES = 64 * 2**10
"""Of stderr, which is kept for messages."""
POLL_SECONDS = 0.05


@dataclass(frozen=True, kw_only=True)
class FinishedProgram:
    """How a program ended, what it printed to stdout, and the end of what it printed to stderr."""

    returncode: int
    printed: str
    errors: str


class ProgramLimitError(Exception):
    """A program was ended beyond a limit; the message is the reason in words, to stand behind the program's name."""


class ProgramTooSlowError(ProgramLimitError):
    """A program took longer than it may."""


def run_program(
    command: Sequence[str], *, limit_seconds: float, max_bytes: int, folder: Path | None = None
) -> FinishedProgram:
    """Run a program to its end, without a stdin; OSError where it cannot be started, ProgramLimitError.

    `max_bytes`: of stdout. Beyond a limit, and at Ctrl-C, it is killed with all that it started.
    """
    process = None
    try:
        with delay_interrupts():  # within Popen, Ctrl-C would lose a program that has begun
            process = _start(command, folder)
        printed, errors = _read_outputs(process, time.monotonic() + limit_seconds, max_bytes)
    except TimeoutError:
        raise ProgramTooSlowError(f"has not ended after {limit_seconds:g} s") from None
    finally:
        if process is not None:
            _end_group(process)
    return FinishedProgram(
        returncode=process.returncode,
        printed=printed.decode(errors="replace"),
        errors=errors.decode(errors="replace"),
    )


def _start(command: Sequence[str], folder: Path | None) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def _read_outputs(process: "subprocess.Popen[bytes]", deadline: float, max_bytes: int) -> tuple[bytearray, bytearray]:
    """Return what the program prints until it ends, whoever keeps its pipes open then; TimeoutError at the deadline."""
    printed, errors = bytearray(), bytearray()
    with selectors.DefaultSelector() as selector:
        for stream, kept in ((process.stdout, printed), (process.stderr, errors)):
            assert stream is not None
            selector.register(stream, selectors.EVENT_READ, kept)
        while True:
            has_ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
            ready = selector.select(0 if has_ended else POLL_SECONDS) if selector.get_map() else []
            for key, _ in ready:
                chunk = os.read(key.fd, CHUNK_BYTES)
                key.data.extend(chunk)
                if not chunk:
                    selector.unregister(key.fileobj)
            if len(printed) > max_bytes:
                raise ProgramLimitError(f"printed more than {max_bytes:,} bytes")
            del errors[:-TAIL_BYTES]
            if has_ended and not ready:
                return printed, errors
            if time.monotonic() > deadline:
                raise TimeoutError
            if not selector.get_map():
                time.sleep(POLL_SECONDS)


def _end_group(process: "subprocess.Popen[bytes]") -> None:
    """Kill what is left of the program's group, and wait for the program itself."""
    with process, suppress(ProcessLookupError):  # nobody has waited for it, so its number cannot be another's
        os.killpg(process.pid, signal.SIGKILL)
