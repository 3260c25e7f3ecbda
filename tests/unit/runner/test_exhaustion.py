"""A machine that gives no more memory, files or threads is one message, and no traceback."""

import errno
import subprocess
import sys

import pytest

from runner.exhaustion import explain_exhaustion

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
