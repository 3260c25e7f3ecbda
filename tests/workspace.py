"""A folder to work in, with a matrix of two cells and a quick interpreter, where the tool runs as a real process."""

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bench.schema import Result
from bench.store import Store, results_prefix
from fake_interpreters import make_measuring_interpreter
from runner import cli
from waiting import wait_for

HANG_GUARD_SECONDS = 300.0
"""After which a test gives up waiting for what takes moments; far more than a busy machine needs."""
CallMain = Callable[..., tuple[int, str, str]]
"""Calls the command line; returns its exit code, stdout and stderr."""
PROGRAM = (sys.executable, "-m", "runner.cli")
MATRIX = """
name: quick
axes:
  batch_size: [1, 2]
defaults: {model: conv6, framework: pytorch, device: cpu, phase: train, num_steps: 1, repeats: 2, timeout_seconds: 60}
"""


@dataclass(frozen=True)
class Workspace:
    """`folder` holds quick.yaml, the interpreter `python` and, after a run, the store `results`."""

    folder: Path
    command: tuple[str, ...] = (*PROGRAM, "run", "quick.yaml", "--python", "./python", "--no-report")

    @classmethod
    def set_up(cls, folder: Path) -> "Workspace":
        """Write the matrix and the interpreter."""
        (folder / "quick.yaml").write_text(MATRIX)
        workspace = cls(folder)
        workspace.make_python()
        return workspace

    @property
    def log(self) -> Path:
        """The file with a line for each measurement that began; see `fake_interpreters.read_log`."""
        return self.folder / "log"

    def make_python(self, *, before: str = "") -> None:
        """Make the interpreter run shell commands before it measures."""
        make_measuring_interpreter(self.folder / "python", log=self.log, before=before)

    def make_hanging_python(self) -> None:
        """Make second repeats hang, with a child, while there is no file `go`; the file `hanging` gets their pids."""
        self.make_python(
            before='if test "$BENCH_REPEAT" = 2 && ! test -e go; then sleep 1000 & echo $$ $! > hanging; wait; fi'
        )

    def start(self, *command: str) -> "subprocess.Popen[str]":
        """Start a command (default: the run) in a session of its own, as from a shell in another terminal."""
        return subprocess.Popen(
            command or self.command,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def call(self, *command: str) -> "subprocess.CompletedProcess[str]":
        """Run a command (default: the run) to its end."""
        return subprocess.run(
            command or self.command, cwd=self.folder, capture_output=True, text=True, timeout=HANG_GUARD_SECONDS
        )

    def read_results(self) -> list[Result]:
        """Return every record of every run in the store."""
        return read_results(Store.open(f"file://{self.folder}/results"))

    def list_run_ids(self) -> list[str]:
        return Store.open(f"file://{self.folder}/results").list_run_ids()

    def await_file(self, name: str) -> str:
        """Return the one line of a file in the folder as soon as it is there."""
        path = self.folder / name
        wait_for(lambda: path.exists() and path.read_text().endswith("\n"), name)
        return path.read_text()


def make_call_main(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> CallMain:
    """Return a function that calls the command line in this process."""

    def call(*words: object) -> tuple[int, str, str]:
        capfd.readouterr()
        monkeypatch.setattr(sys, "argv", ["benchmatrix", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert isinstance(end.value.code, int)
        return end.value.code, *capfd.readouterr()

    return call


def read_results(store: Store) -> list[Result]:
    """Return every record of every run in a store."""
    return [
        Result.model_validate_json(store.get(key))
        for run_id in store.list_run_ids()
        for key in store.list_keys(results_prefix(run_id))
    ]


def name_repeats(results: list[Result]) -> list[tuple[str, int]]:
    """Return cell_id and repeat of each, sorted."""
    return sorted((result.cell_id, result.repeat) for result in results)


@dataclass
class Terminal:
    """A process in a pseudo-terminal, and all that it has shown there."""

    process: "subprocess.Popen[bytes]"
    master: int
    text: str = field(default="")

    def read_until(self, pattern: str) -> str:
        """Return all that was shown as soon as `pattern` is in it."""
        deadline = time.monotonic() + HANG_GUARD_SECONDS
        while not re.search(pattern, self.text):
            assert time.monotonic() < deadline, self.text
            if select.select([self.master], [], [], 0.1)[0]:
                self.text += os.read(self.master, 65_536).decode(errors="replace")
        return self.text


@contextmanager
def open_terminal(workspace: Workspace, command: tuple[str, ...]) -> Iterator[Terminal]:
    """Start a command in a terminal of its own, as a window on the screen does; waits for its end at the end."""
    master, slave = pty.openpty()
    os.set_inheritable(slave, True)
    variables = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40"}
    variables.pop("CI", None)  # nothing is drawn again in its logs, whatever they look like
    process = subprocess.Popen(
        ["setsid", "--ctty", "--wait", *command],
        cwd=workspace.folder,
        env=variables,
        stdin=slave,
        stdout=slave,
        stderr=slave,
    )
    os.close(slave)
    try:
        yield Terminal(process, master)
        process.wait(HANG_GUARD_SECONDS)
    finally:
        process.kill()
        process.wait()
        os.close(master)
