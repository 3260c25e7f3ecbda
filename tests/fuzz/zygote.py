"""Runs commands of the tool, each in a fork of this process, so that a case costs no start of Python.

Reads one JSON object a line from stdin (`Request`), and answers each with one line on stdout (`Ending`). The process
imports all that commands use and starts nothing: a fork has whatever a fresh start of the tool would have.
"""

import gc
import importlib
import json
import os
import pkgutil
import resource
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any, TypedDict

POLL_MILLISECONDS = 50
UNTOUCHED = ("picture", "paper_figures", "typeset", "report.html")
"""Modules that load V8, which starts threads: a fork would lack them."""


class Request(TypedDict):
    """One command to run: words after the program's name, further variables, and limits that end it."""

    words: list[str]
    variables: dict[str, str]
    folder: str
    stdout: str
    stderr: str
    cpu_seconds: int
    wall_seconds: float
    resident_bytes: int


class Ending(TypedDict):
    """How a command ended: its exit code, or the number of the signal; the limit that ended it; what it took."""

    code: int | None
    signal: int | None
    limit: str
    cpu_seconds: float
    peak_bytes: int


def serve() -> None:
    """Answer requests until stdin ends."""
    requests, answers = os.fdopen(os.dup(0), "r"), os.fdopen(os.dup(1), "w")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    _import_commands()
    gc.collect()
    gc.freeze()  # the collector of a fork would else write to, and so copy, every page of what was imported
    for line in requests:
        answers.write(json.dumps(_run(json.loads(line))) + "\n")
        answers.flush()


def _import_commands() -> None:
    import collector
    import runner
    from runner.commands.catalog import COMMANDS

    for package in (runner, collector):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if "__main__" not in module.name and not module.name.endswith(UNTOUCHED):
                importlib.import_module(module.name)
    assert all(entry.module in sys.modules for entry in COMMANDS)


def _run(request: Request) -> Ending:
    child = os.fork()
    if child == 0:
        _call_tool(request)
    limit = _await_end(child, request)
    _, status, usage = os.wait4(child, 0)
    signal_number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    if signal_number == signal.SIGXCPU:
        limit = limit or "cpu"
    return Ending(
        code=os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
        signal=signal_number,
        limit=limit,
        cpu_seconds=usage.ru_utime + usage.ru_stime,
        peak_bytes=usage.ru_maxrss * 1024,
    )


def _await_end(child: int, request: Request) -> str:
    """Wait for the end of a child, and end it at a limit, which is returned; empty where it ended by itself."""
    handle, begun = os.pidfd_open(child), time.monotonic()
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    try:
        while not poll.poll(POLL_MILLISECONDS):
            is_late = time.monotonic() - begun > request["wall_seconds"]
            if is_late or _read_resident_bytes(child) > request["resident_bytes"]:
                os.kill(child, signal.SIGKILL)
                poll.poll()
                return "time" if is_late else "memory"
    finally:
        os.close(handle)
    return ""


def _read_resident_bytes(process: int) -> int:
    try:
        pages = Path(f"/proc/{process}/statm").read_text().split()[1]
    except (OSError, IndexError):  # it has just ended
        return 0
    return int(pages) * resource.getpagesize()


def _call_tool(request: Request) -> None:
    """Be the tool; never returns."""
    code: Any = 0
    try:
        _become(request)
        from runner.cli import main

        main()
    except SystemExit as end:
        code = end.code
    except KeyboardInterrupt:
        code = 130
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 70
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            code = 120  # as Python's own end has it
    os._exit(code if isinstance(code, int) else 1 if code else 0)


def _become(request: Request) -> None:
    for number, path in ((1, request["stdout"]), (2, request["stderr"])):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    os.chdir(request["folder"])
    os.environ.update(request["variables"])
    sys.argv = ["benchmatrix", *request["words"]]
    resource.setrlimit(resource.RLIMIT_CPU, (request["cpu_seconds"], request["cpu_seconds"] + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    serve()
