"""The terminal that the tests of this folder print to."""

import os
import pty
import select
from collections.abc import Callable, Iterator

import pytest
from rich.console import Console

from workspace import HANG_GUARD_SECONDS

MARK = "\x00"
"""Shows nothing on a terminal, and is never written by the code under test."""


@pytest.fixture
def terminal() -> Iterator[tuple[Console, Callable[[], str]]]:
    """A console in a real pseudo-terminal, and what can be read at its other end so far."""
    master, slave = pty.openpty()

    def read() -> str:
        """Read what was written before: up to a mark behind it, as the kernel hands output on in its own time."""
        file.write(MARK)
        file.flush()
        text = b""
        while not text.endswith(MARK.encode()):
            assert select.select([master], [], [], HANG_GUARD_SECONDS)[0], text
            text += os.read(master, 2**20)
        return text.decode().removesuffix(MARK)

    with os.fdopen(slave, "w", encoding="utf-8") as file:
        yield (
            Console(file=file, width=100, markup=False, _environ={"TERM": "xterm-256color"}),
            read,
        )
    os.close(master)
