"""The start of the command line, its examples, and how faults and signals end it; a process where its end is tested."""

import inspect
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench import __version__
from kubeconfigs import EXEC, write_kubeconfig
from local_processes import await_death
from runner.cli import make_command
from runner.sources import ROOT
from waiting import wait_for

# Each takes a tenth of a second or more.
LEFT_TO_WORK = {
    *("altair", "bench.schema", "bench.store", "boto3", "collector", "jsonschema", "kubernetes", "kubernetes_validate"),
    *("numpy", "obstore", "pandas", "pyarrow", "runner.reporting", "scipy", "statsmodels", "vl_convert", "yaml"),
}
PROGRAM = [sys.executable, "-m", "runner.cli"]


def list_commands() -> Iterator[tuple[str, Any]]:
    for name, command in make_command().commands.items():
        below = getattr(command, "commands", None)
        yield from ((f"{name} {sub}", found) for sub, found in below.items()) if below else [(name, command)]


COMMANDS = dict(list_commands())


@pytest.mark.parametrize(
    ("words", "variables", "expected"),
    [
        ([], {}, "Find the largest batch"),
        (["--version"], {}, __version__),
        (["run", "--help"], {}, "benchmatrix run smoke --dry-run\n"),
        ([], {"COMP_WORDS": "benchmatrix ren", "COMP_CWORD": "1"}, "render\n"),
        ([], {"COMP_WORDS": "benchmatrix run --max-c", "COMP_CWORD": "2"}, "--max-cost\n"),
    ],
)
def test_help_version_and_completion_load_nothing_that_does_work(
    words: list[str], variables: dict[str, str], expected: str
) -> None:
    """In a process of its own, for what it has imported."""
    program = (
        "import sys, atexit; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); import runner.cli as c; "
        f"sys.argv = ['benchmatrix', *{words!r}]; c.main()"
    )
    completed = {"_BENCHMATRIX_COMPLETE": "complete_bash"} if variables else {}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, **completed, **variables}
    )
    assert done.returncode == 0, done.stderr
    assert expected in "\n".join(line.rstrip() for line in done.stdout.splitlines()) + "\n"
    assert sorted(LEFT_TO_WORK & set(done.stderr.split())) == []


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_what_it_does_and_has_examples_that_exist(name: str) -> None:
    assert inspect.cleandoc(COMMANDS[name].help).split("\n\n")[0].endswith((".", "?"))
    examples = [line for line in COMMANDS[name].epilog.splitlines() if line.startswith("benchmatrix ")]
    assert examples
    for example in examples:
        words = shlex.split(example.removeprefix(f"benchmatrix {name}"))
        COMMANDS[name].make_context(name, words)


@pytest.mark.parametrize("words", [["--help"], ["render", "smoke"]])
def test_a_pipe_that_nobody_reads_ends_without_a_message_and_a_full_disk_is_one(words: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as pipe, open("/dev/full", "w") as full:
        ends = [
            subprocess.run([*PROGRAM, *words], stdout=place, stderr=subprocess.PIPE, text=True, check=False, cwd=ROOT)
            for place in (pipe, full)
        ]
    assert (ends[0].returncode in (1, 2), ends[0].stderr) == (True, "")
    expected = "error: the disk is full; free some space, or name another place\n"
    assert (ends[1].returncode, ends[1].stderr) == (2, expected)


@pytest.mark.parametrize(
    ("error", "code", "beginning"),
    [
        ("OSError(24, 'x')", 2, "error: this process may open no more files"),
        ("OSError(28, 'x', 'y')", 2, "error: the disk of 'y' is full"),
        ("OSError(11, 'x')", 2, "error: no thread or process can be started"),
        ("MemoryError()", 2, "error: no memory is left"),
        ("RuntimeError('can\\'t start new thread')", 2, "error: no thread or process can be started"),
        ("KeyboardInterrupt()", 130, ""),
        ("ImportError('initialization failed') from KeyboardInterrupt()", 130, ""),
        ("ValueError('x')", 70, "Traceback"),
    ],
)
def test_a_fault_ends_the_command_by_its_exit_code(error: str, code: int, beginning: str) -> None:
    program = (
        f"import runner.cli as c, runner.matrix as e\ndef fail(*_, **__): raise {error}\ne.load_matrix = fail; c.main()"
    )
    done = subprocess.run([sys.executable, "-c", program, "render", "smoke"], capture_output=True, text=True)
    assert done.returncode == code
    assert done.stderr.startswith(beginning)
    assert len(done.stderr.splitlines()) == 1 or code != 2


@pytest.mark.parametrize("words", ["images build pytorch", "doctor --on lab --profile kind"])
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_program_that_a_command_waits_for_ends_with_it(name: str, words: str, tmp_path: Path) -> None:
    program = tmp_path / "docker"
    program.write_text(
        f"#!/bin/sh\ntrap '' TERM\nsleep 1000 &\necho $$ $! > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/pids; wait\n"
    )
    program.chmod(0o755)
    call = {"apiVersion": EXEC, "command": str(program), "interactiveMode": "Never"}
    write_kubeconfig(tmp_path / "kubeconfig", context="lab", user={"exec": call})
    variables = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "KUBECONFIG": str(tmp_path / "kubeconfig")}
    start = (
        "import signal; [signal.signal(one, signal.SIG_DFL) for one in (15, 1)]; "  # nohup may have started the tests
        "import runner.cli as c; c.main()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", start, *words.split()],
        env={**os.environ, **variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        wait_for((tmp_path / "pids").exists, "its start")
        process.send_signal(signal.Signals[name])
        _, errors = process.communicate()
    assert (process.returncode, b"Traceback" in errors) == (128 + signal.Signals[name], False)
    await_death([int(word) for word in (tmp_path / "pids").read_text().split()])


@pytest.mark.parametrize("numbers", [["SIGTERM"], ["SIGHUP", "SIGHUP"], ["SIGTERM", "SIGHUP"]])
def test_a_signal_that_ends_a_command_leaves_no_file_half_written(numbers: list[str], tmp_path: Path) -> None:
    output = tmp_path / "audit.md"
    output.write_text("before")
    program = (
        "import os, signal\n"
        "def send(descriptor):\n"
        f"    for number in {[int(signal.Signals[one]) for one in numbers]}: os.kill(os.getpid(), number)\n"
        "for number in (15, 1): signal.signal(number, signal.SIG_DFL)\n"
        "os.fsync = send\n"
        "import runner.cli as c; c.main()"
    )
    words = [sys.executable, "-c", program, "audit", "nvidia-t4-resnet50", "--output", str(output)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (128 + signal.Signals[numbers[0]], "")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("audit.md", "before")]
