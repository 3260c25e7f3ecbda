"""Ctrl-C, SIGTERM and SIGHUP end the command line in order: 128 plus the signal's number, and without a traceback."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bench import __version__

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
