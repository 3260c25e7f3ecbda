"""Show the progress of installations: one live line in a terminal, a line every 15 seconds in a pipe."""

import re
import threading
import time
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from runner.local.virtual_environments import INSTALLED, WAITING
from runner.terminal import can_redraw

SIGN_SECONDS = 15.0
"""How long a log stays silent at the most: pip says nothing for minutes while it loads or unpacks 3 GB."""
KEPT = (" to download", "new environment", WAITING, INSTALLED)
"""Lines with one of these stay on the screen."""
DOWNLOAD = re.compile(r"(?:Downloading|Using cached) (?P<file>\S+) \((?P<size>[\d.]+) (?P<unit>bytes|kB|MB|GB)\)")
UNITS = {"bytes": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9}


class PipOutput:
    """What pip has done by the lines that it printed. It says of a package when it begins, not when it is done."""

    def __init__(self) -> None:
        self._num_packages = 0
        self._num_bytes = 0.0
        self._now = ""
        self._now_bytes = 0.0

    def read(self, line: str) -> None:
        """Read one line."""
        loaded = DOWNLOAD.search(line)
        if loaded and not loaded["file"].endswith(".metadata"):
            self._begin(f"{_shorten(loaded['file'])} ({loaded['size']} {loaded['unit']})")
            self._now_bytes = float(loaded["size"]) * UNITS[loaded["unit"]]
        elif line.startswith("Processing "):
            self._begin(_shorten(line.partition(" (from ")[0].rpartition("/")[2]))
        elif line.startswith("Installing collected packages"):
            self._begin("")

    def describe(self) -> str:
        """Return what is going on; empty before the first package."""
        done = f"{self._num_packages} package{'' if self._num_packages == 1 else 's'}"
        amount = f" ({self._num_bytes / 1e9:.1f} GB)" if self._num_bytes >= 5e7 else ""
        if self._now:
            return f"loading {self._now}, after {done}{amount}"
        return f"unpacking {done}{amount}" if self._num_packages else ""

    def _begin(self, name: str) -> None:
        self._num_packages += bool(self._now)
        self._num_bytes += self._now_bytes
        self._now, self._now_bytes = name, 0.0


class InstallProgress(AbstractContextManager["InstallProgress"]):
    """Shows how far installations are, one after the other, and for how long each of them has lasted.

    A thread prints the lines of a pipe, since pip can be silent for minutes; a terminal draws its line by itself.
    """

    def __init__(self, console: Console, sign_seconds: float = SIGN_SECONDS) -> None:
        self._console = console
        self._sign_seconds = sign_seconds
        self._name = ""
        self._line = ""
        self._pip = PipOutput()
        self._began = time.monotonic()
        self._spinner = Spinner("dots")
        self._is_over = threading.Event()
        self._ticker: threading.Thread | None = None
        self._live: Live | None = None
        if can_redraw(console):
            self._live = Live(get_renderable=self._render, console=console, transient=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        if self._live:
            self._live.stop()
        if self._ticker:
            self._ticker.join()

    def report(self, line: str) -> None:
        """Take one line of an installation, `NAME: TEXT`; one that says how much or how long stays on the screen."""
        name, _, text = line.partition(": ")
        if name != self._name:
            self._name, self._pip, self._began = name, PipOutput(), time.monotonic()
        self._line = text
        self._pip.read(text)
        if any(word in text for word in KEPT):
            self._print(line)
        if self._live:
            self._live.start()
            self._live.refresh()
        elif self._ticker is None:
            self._ticker = threading.Thread(target=self._give_signs, daemon=True)
            self._ticker.start()

    def _give_signs(self) -> None:
        while not self._is_over.wait(self._sign_seconds):
            self._print(self._describe())

    def _describe(self) -> str:
        """Return `pytorch-cpu: loading torch-2.14.1 (888 MB), after 12 packages (0.4 GB), 80 s`."""
        now = self._pip.describe() or (WAITING if self._line == WAITING else "preparing")
        return f"{self._name}: {now}, {time.monotonic() - self._began:.0f} s"

    def _print(self, line: str) -> None:
        prefix = "" if INSTALLED in line else "installing "
        self._console.print(f"{prefix}{line}", highlight=False, markup=False, soft_wrap=True)

    def _render(self) -> Spinner:
        line = f"installing {self._describe()}: {self._line}"
        self._spinner.update(text=Text(line[: self._console.width - 4]))
        return self._spinner


def _shorten(file: str) -> str:
    """Return `torch-2.14.1` of the name of a wheel; that of any other file as it is."""
    return "-".join(file.split("-")[:2]) if file.endswith(".whl") else file
