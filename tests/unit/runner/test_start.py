"""Ctrl-C, SIGTERM and SIGHUP end the command line in order: 128 plus the signal's number, and without a traceback."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench import __version__
from fake_interpreters import is_running
from kubeconfigs import write_kubeconfig
from local_processes import await_death
from workspace import HANG_GUARD_SECONDS

INTERRUPTED = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
from runner.start import main
sys.argv = ["benchmatrix", "schema"]
main()
"""
CLOSED = """
import atexit, os, sys

def write():
    descriptor = os.open({result!r}, os.O_WRONLY | os.O_CREAT)
    os.write(descriptor, str(descriptor).encode())

atexit.register(write)
from runner.start import main
sys.argv = ["benchmatrix", "version"]
main()
"""
SIGNALLED = """
import os, signal, sys

def send(descriptor):
    for number in {numbers!r}:
        os.kill(os.getpid(), number)

for number in (signal.SIGTERM, signal.SIGHUP):  # nohup may have started the tests
    signal.signal(number, signal.SIG_DFL)
os.fsync = send
from runner.start import main
sys.argv = ["benchmatrix", "audit", "nvidia-t4-resnet50", "--output", {output!r}]
main()
"""


@pytest.mark.parametrize("module", ["runner.cli", "typer", "runner.command_loading", "runner.commands.schema"])
def test_an_interrupt_while_modules_are_imported_is_no_traceback(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED.format(module=module)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 130
    assert "Traceback" not in done.stderr


def test_an_interrupt_while_python_ends_is_no_traceback() -> None:
    program = (
        "import atexit, os, signal, sys; atexit.register(os.kill, os.getpid(), signal.SIGINT); "
        "from runner.start import main; sys.argv = ['benchmatrix', 'version']; main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "")


def test_closed_descriptors_do_not_become_those_of_a_result(tmp_path: Path) -> None:
    """Libraries that are not Python's write their messages to 2, whatever file that is."""
    program = CLOSED.format(result=str(tmp_path / "result"))
    subprocess.run(["sh", "-c", 'exec "$0" -c "$1" <&- >&- 2>&-', sys.executable, program], check=False)
    assert int((tmp_path / "result").read_text()) > 2


def run_with(redirection: str, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run a command as users start it, with a shell's redirection such as `>&-`."""
    command = f'exec "$0" -m benchmatrix "$@" {redirection}'
    return subprocess.run(["sh", "-c", command, sys.executable, *words], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("words", [("version",), ("render", "smoke"), ("--help",)])
def test_a_result_for_a_closed_stdout_is_an_error(words: tuple[str, ...]) -> None:
    done = run_with(">&-", *words)
    message = "error: stdout cannot be written: Bad file descriptor; give another place for it\n"
    assert (done.returncode, done.stderr) == (2, message)


def test_nobody_can_be_asked_on_a_closed_stdin() -> None:
    """As of cron and some supervisors: `clean --delete` ended with a traceback where it looked for a terminal."""
    program = (
        "import sys; from runner.start import _fill_descriptors as fill; fill(); print(sys.stdin.isatty(), end='')"
    )
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" -c "$1; print(sys.stdin.read())" <&-', sys.executable, program],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "False\n", "")


def test_messages_for_a_closed_stderr_are_dropped() -> None:
    done = run_with("2>&-", "render", "nope.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    done = run_with("<&- 2>&-", "version")
    assert (done.returncode, done.stdout) == (0, f"{__version__}\n")


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("SIGTERM", ["SIGTERM"]),
        ("SIGHUP", ["SIGHUP", "SIGHUP"]),  # the shell and the kernel, where a terminal is closed
        ("SIGTERM", ["SIGTERM", "SIGHUP"]),  # systemd, where a user logs out
    ],
)
def test_a_signal_that_ends_a_command_leaves_no_file_half_written(
    name: str, numbers: list[str], tmp_path: Path
) -> None:
    output = tmp_path / "audit.md"
    output.write_text("before")
    program = SIGNALLED.format(numbers=[int(signal.Signals[one]) for one in numbers], output=str(output))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (128 + signal.Signals[name], "")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("audit.md", "before")]


HANGING = """
import os, signal, sys
from runner.start import main

for number in (signal.SIGTERM, signal.SIGHUP):  # nohup may have started the tests
    signal.signal(number, signal.SIG_DFL)
sys.argv = ["benchmatrix", *{words}]
main()
"""
DROPPED = """
import os, signal, sys, time
from runner.start import main
import runner.cli

class Sends:
    def __del__(self):
        os.kill(os.getpid(), {number})
        time.sleep(0)  # the exception is raised here, and dropped

def work():
    Sends()
    time.sleep(1000)

for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)
runner.cli.main = work
main()
"""


def read_pids(path: Path) -> list[int]:
    """Return the processes that a script names in a file, as soon as it is there."""
    deadline = time.monotonic() + HANG_GUARD_SECONDS
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} was not written"
        time.sleep(0.01)
    return [int(word) for word in path.read_text().split()]


def make_docker(folder: Path, script: str) -> dict[str, str]:
    """Make a program `docker` of a shell script; return the environment in which that is found, also for a login."""
    program = folder / "docker"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    write_kubeconfig(folder / "kubeconfig", context="lab", plugin=program)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "KUBECONFIG": str(folder / "kubeconfig")}


@pytest.mark.parametrize("words", ["images sbom pytorch", "cancel mine --on lab"])
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_program_that_a_command_waits_for_ends_with_it(name: str, words: str, tmp_path: Path) -> None:
    script = f"trap '' TERM\nsleep 1000 &\necho $$ $! > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/pids; wait"
    variables = make_docker(tmp_path, script)
    command = [sys.executable, "-c", HANGING.format(words=words.split())]
    with subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        pids = read_pids(tmp_path / "pids")
        process.send_signal(signal.Signals[name])
        _, errors = process.communicate()
    assert (process.returncode, b"Traceback" in errors) == (128 + signal.Signals[name], False)
    await_death(pids)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_that_comes_where_python_drops_exceptions_ends_the_command(name: str) -> None:
    number = signal.Signals[name]
    program = DROPPED.format(number=int(number))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stderr) == (128 + number, "")


def test_programs_of_the_shell_that_became_the_command_go_on(tmp_path: Path) -> None:
    script = 'sleep 1000 > /dev/null 2>&1 & echo $!; exec "$0" -m benchmatrix version'
    done = subprocess.run(["sh", "-c", script, sys.executable], capture_output=True, text=True, check=False)
    pid, version = done.stdout.split()
    assert (done.returncode, version) == (0, __version__)
    assert is_running(int(pid))
    os.kill(int(pid), signal.SIGKILL)


FAILING = """
import os, signal, sys
from runner.start import main
import runner.cli

def fail():
    try:
        os.kill(os.getpid(), {number})
    except BaseException as error:
        raise ImportError("initialization failed") from error

for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)
runner.cli.make_command = lambda: lambda words: fail()
main()
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGHUP"])
def test_an_import_that_fails_since_it_was_interrupted_is_no_fault(name: str) -> None:
    """As pybind11 has it, with which parts of SciPy are made."""
    number = signal.Signals[name]
    program = FAILING.format(number=int(number))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (128 + number, "")
