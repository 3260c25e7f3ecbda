"""Starts the tool and the measuring process by forking a process that has imported them, so that their start is short.

A hundred starts then cost seconds of CPU instead of minutes, and a moment at random is one of the work, not of imports.
"""

import importlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

ROOT = Path(__file__).parents[1]
PATHS = (str(ROOT / "tests"), str(ROOT), str(ROOT / "images" / "bench" / "src"))
MODULES = (
    "bench.worker.main",
    "collector.export",
    "collector.facts",
    "collector.results.load",
    "fake_interpreters",
    "runner.cli",
    "runner.commands.report",
    "runner.commands.run",
    "runner.local.run",
    "runner.reporting",
    "runner.stored_runs",
    "stub_framework",
)
Program = Literal["benchmatrix", "bench"]
SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How a process ended; `exit_code` is -N for signal N."""

    exit_code: int
    output: str


@dataclass
class WarmProcesses:
    """Starts one process at a time; `stop` ends the process that they are forked from."""

    folder: Path
    """Gets the output of the process that runs."""
    _parent: "subprocess.Popen[str]" = field(init=False)

    def __post_init__(self) -> None:
        variables = os.environ | {"PYTHONPATH": os.pathsep.join(PATHS), "PYTHONUNBUFFERED": "1"}
        self._parent = subprocess.Popen(
            [sys.executable, __file__], env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def start(self, program: Program, words: Sequence[str], cwd: Path, variables: Mapping[str, str]) -> int:
        request = {"program": program, "words": words, "cwd": str(cwd), "variables": dict(variables)}
        assert self._parent.stdin is not None
        self._parent.stdin.write(json.dumps(request | {"output": str(self.folder / "output")}) + "\n")
        self._parent.stdin.flush()
        return self._read()

    def wait(self, seconds: float | None) -> Ending | None:
        """Return how the process ended; None where it has not within so many seconds."""
        assert self._parent.stdout is not None
        if not select.select([self._parent.stdout.fileno()], [], [], seconds)[0]:
            return None
        return Ending(exit_code=self._read(), output=(self.folder / "output").read_text(errors="replace"))

    def kill_after(self, pid: int, seconds: float) -> Ending:
        ending = self.wait(seconds)
        if ending is None:
            with suppress(ProcessLookupError):  # it has ended since, and its parent has waited for it
                os.kill(pid, signal.SIGKILL)
            ending = self.wait(None)
        assert ending is not None
        return ending

    def call(self, program: Program, words: Sequence[str], cwd: Path, variables: Mapping[str, str]) -> Ending:
        self.start(program, words, cwd, variables)
        ending = self.wait(None)
        assert ending is not None
        return ending

    def stop(self) -> None:
        self._parent.communicate("")

    def _read(self) -> int:
        """Return the number on the next line, and leave unread what follows: it may be how a quick process ended."""
        assert self._parent.stdout is not None
        line = b""
        while not line.endswith(b"\n"):
            byte = os.read(self._parent.stdout.fileno(), 1)
            assert byte, "the process that the others are forked from has ended"
            line += byte
        return int(line)


def serve() -> None:
    """Fork a process for each line of stdin; print its id, and how it ended."""
    for module in MODULES:
        importlib.import_module(module)
    for line in iter(sys.stdin.readline, ""):
        request = json.loads(line)
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # they are for the tool
        pid = os.fork()
        if pid == 0:
            become(request)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        os.write(1, f"{pid}\n".encode())
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.write(1, f"{status}\n".encode())


def become(request: Mapping[str, Any]) -> None:
    """Do what the request asks for and end this process."""
    os.setsid()
    output = os.open(request["output"], os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_APPEND)
    for descriptor, place in ((os.open(os.devnull, os.O_RDONLY), 0), (output, 1), (output, 2)):
        os.dup2(descriptor, place)
    os.closerange(3, 64)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["variables"])
    run: Callable[[], None] = {"benchmatrix": run_tool, "bench": run_bench}[request["program"]]
    sys.argv = ["benchmatrix", *request["words"]]
    code = 0
    try:
        run()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except KeyboardInterrupt:  # before the tool had begun
        code = 130
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def run_tool() -> None:
    """Run the command line, with the handlers of a process that was started for it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):  # nohup may have started the tests
        signal.signal(number, signal.SIG_DFL)
    main = importlib.import_module("runner.cli").main
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    main()


def run_bench() -> None:
    """Run the container's entry point, with a framework whose model does nothing."""
    from bench.worker import attempt
    from bench.worker.main import run_program
    from bench.worker.shutdown import SigtermListener
    from stub_framework import StubFramework

    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    vars(attempt)["load_framework"] = lambda cell, num_threads: StubFramework()
    listener = SigtermListener()
    listener.start()
    run_program(listener)


if __name__ == "__main__":
    serve()
