"""A machine that gives no more memory, files or threads is one message, and no traceback."""

import errno
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from runner import exhaustion
from runner.exhaustion import explain_exhaustion, explain_limits

RAISING = """
import runner.cli as c, runner.matrix.expansion as e

class PanicException(BaseException):
    pass

def fail(*_, **__):
    raise {error}

e.load_matrix = fail
c.main()
"""


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), "no memory is left"),
        (OSError(errno.EMFILE, "Too many open files"), "ulimit -n"),
        (OSError(errno.ENOSPC, "No space left on device", "/tmp/x"), "the disk of '/tmp/x' is full; free some space"),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), "the disk is full; free some space"),
        (FileNotFoundError(2, "No usable temporary directory found in ['/tmp']"), "name one in TMPDIR"),
        (OSError(errno.ENFILE, "Too many open files in system"), "this machine can open no more files"),
        (RuntimeError("can't start new thread"), "ulimit -u"),
        (ImportError("x.so: failed to map segment from shared object"), "no memory is left"),
        (RuntimeError('Err value: Os { code: 24, kind: Uncategorized, message: "Too many open files" }'), "ulimit -n"),
    ],
)
def test_what_is_used_up_is_named_with_what_to_do(error: Exception, words: str) -> None:
    assert words in (explain_exhaustion(error) or "")


@pytest.mark.parametrize("error", [RuntimeError("x"), OSError(errno.ENOENT, "x"), OSError("x"), KeyError("memory")])
def test_other_errors_are_none_of_the_machines(error: Exception) -> None:
    assert explain_exhaustion(error) is None


@pytest.mark.parametrize(
    ("error", "code", "beginning"),
    [
        ("MemoryError", 2, "error: no memory is left"),
        ("PanicException('Os { code: 24, x }')", 2, "error: this process may open no more files"),
        ("PanicException('index out of bounds')", 70, "Traceback"),
    ],
)
def test_a_command_ends_by_its_exit_codes(error: str, code: int, beginning: str) -> None:
    """A panic of a Rust library is no Exception: Python would end with 1, which says that a run has ended."""
    program = RAISING.format(error=error)
    done = subprocess.run(
        [sys.executable, "-c", program, "render", "smoke"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr[: len(beginning)]) == (code, beginning)
    assert code == 70 or "Traceback" not in done.stderr


def test_a_limit_of_addresses_in_which_a_library_would_never_be_loaded_is_named() -> None:
    """OpenBLAS asks for memory without an end, and keeps SIGTERM and Ctrl-C from being handled."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (400 * 2**20, 400 * 2**20))

    command = [sys.executable, "-m", "runner.cli", "version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=limit)
    assert done.returncode == 2
    assert done.stderr == (
        "error: this process may take 400 MiB of addresses, and needs 768 at the least; raise the limit (`ulimit -v`)\n"
    )


def test_a_limit_of_addresses_that_is_enough_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in (resource.RLIM_INFINITY, 768 * 2**20):
        monkeypatch.setattr(resource, "getrlimit", lambda _, limit=limit: (limit, limit))
        assert explain_limits() is None


def test_as_many_open_files_as_are_needed_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {resource.RLIMIT_NOFILE: 64}
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (limits.get(kind, resource.RLIM_INFINITY), -1))
    assert explain_limits() is None
    limits[resource.RLIMIT_NOFILE] = 63
    assert "63 files" in (explain_limits() or "")


def test_threads_that_cannot_be_started_are_named_before_a_library_meets_that(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[threading.Thread] = []

    def start(thread: threading.Thread) -> None:
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (3 if kind == resource.RLIMIT_NPROC else -1, -1))
    assert "no thread or process can be started" in (explain_limits() or "")


def test_a_limit_of_open_files_is_named_before_a_library_panics() -> None:
    """A library in Rust that can open no file prints where it is, by itself."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (12, 12))

    command = [sys.executable, "-m", "runner.cli", "render", "smoke"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=limit)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: this process may open 12 files, and needs 64 at the least; raise the limit (`ulimit -n`)\n"
    )


def test_python_without_docstrings_is_refused_before_anything_is_done() -> None:
    """The library for charts raises AttributeError then, at the end of a run."""
    command = [sys.executable, "-OO", "-m", "runner.cli", "render", "smoke"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: PYTHONOPTIMIZE: is 2, at which libraries lack parts that are needed; give 1 or unset it\n"
    )


def test_a_machine_without_proc_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """V8 panics without it, and the lock of the machine cannot be found."""
    monkeypatch.setattr(exhaustion, "OWN_FILES", tmp_path / "fd")
    assert (explain_limits() or "").endswith(
        "/fd: is not there; mount /proc (`mount -t proc proc /proc`), which shows what processes do"
    )
