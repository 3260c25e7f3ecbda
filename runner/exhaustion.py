"""Says what this machine gave no more of: memory, open files, threads. Neither the user nor the tool made a mistake."""

import errno
import os
import re
import resource
import sys
import threading
from pathlib import Path

from bench.file_limit import explain_file_limit

_BY_NUMBER = {
    errno.EMFILE: "this process may open no more files; raise the limit (`ulimit -n`)",
    errno.ENFILE: "this machine can open no more files; end what holds many of them",
    errno.ENOMEM: "no memory is left; free some, or raise the limit (`ulimit -v`, or the container's)",
    errno.EAGAIN: "no thread or process can be started; free memory, or raise the limit (`ulimit -u`, `ulimit -v`, or "
    "the container's)",
}
_FULL = "the disk {place}is full; free some space, or name another place"
_NO_TEMPORARY = "no usable temporary directory"
"""Of `tempfile`, where neither TMPDIR nor /tmp can be written; its number is that of a missing file."""
MIN_ADDRESS_BYTES = 768 * 2**20
"""The libraries for tables and statistics take 570 MB of addresses on two cores, more on many."""
LOW_NUM_PROCESSES = 1024
"""Of all processes and threads of a user (`ulimit -u`); where more are allowed, threads are not tried first."""
NO_DOCSTRINGS = 2
"""The level of `python -OO`, which drops docstrings."""
OWN_FILES = Path("/proc/self/fd")
NUM_THREADS = 8
"""Threads that a command may have beside those of OpenBLAS, which has one for each core."""
# What has no number: Python's threads and the linker's libraries. Rust's panics have the system's in their text.
_BY_TEXT = {
    "can't start new thread": errno.EAGAIN,
    "failed to map segment": errno.ENOMEM,
    "cannot allocate memory": errno.ENOMEM,
}
_RUST_NUMBER = re.compile(r"Os \{ code: (\d+)")


def explain_limits() -> str | None:
    """Return why no command can work within the limits of this process, or as Python was started; None where it can.

    OpenBLAS, which SciPy brings along, would meet them while it is loaded: it asks for memory without an end, which no
    signal but SIGKILL ends, and sends SIGINT to this process where a thread does not start. Libraries in Rust print a
    panic where they can open no file, in words that nobody outside can change.
    """
    explanations = (
        _explain_dropped_docstrings,
        _explain_missing_proc,
        explain_file_limit,
        _explain_address_limit,
        _explain_thread_limit,
    )
    return next(filter(None, (explain() for explain in explanations)), None)


def _explain_missing_proc() -> str | None:
    """Return a message if /proc is not mounted, which the lock of the machine and V8 need; None if it is mounted."""
    if sys.platform != "linux" or os.path.isdir(OWN_FILES):  # unlike Path.is_dir, it raises nothing
        return None
    return f"{OWN_FILES}: is not there; mount /proc (`mount -t proc proc /proc`), which shows what processes do"


def _explain_dropped_docstrings() -> str | None:
    """Return why Python's second level of optimisation cannot be: the library for charts is made of its docstrings."""
    if sys.flags.optimize < NO_DOCSTRINGS:
        return None
    return f"PYTHONOPTIMIZE: is {sys.flags.optimize}, at which libraries lack parts that are needed; give 1 or unset it"


def _explain_thread_limit() -> str | None:
    if not 0 <= resource.getrlimit(resource.RLIMIT_NPROC)[0] < LOW_NUM_PROCESSES:
        return None
    is_over, threads = threading.Event(), []
    try:
        for _ in range(len(os.sched_getaffinity(0)) + NUM_THREADS):
            threads.append(threading.Thread(target=is_over.wait, daemon=True))
            threads[-1].start()
    except RuntimeError:  # can't start new thread
        return _BY_NUMBER[errno.EAGAIN]
    finally:
        is_over.set()
    return None


def _explain_address_limit() -> str | None:
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY or limit >= MIN_ADDRESS_BYTES:
        return None
    have, need = limit // 2**20, MIN_ADDRESS_BYTES // 2**20
    return (
        f"this process may take {have} MiB of addresses, and needs {need} at the least; raise the limit (`ulimit -v`)"
    )


def explain_exhaustion(error: BaseException) -> str | None:
    """Say in words which resource ran out, and how to raise its limit; return None if the error has another cause."""
    if isinstance(error, MemoryError):
        return _BY_NUMBER[errno.ENOMEM]
    if isinstance(error, OSError):
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return _FULL.format(place="" if error.filename is None else f"of {str(error.filename)!r} ")
        if _NO_TEMPORARY in str(error).lower():
            return "no folder for temporary files can be written; make room in /tmp, or name one in TMPDIR"
        return _BY_NUMBER.get(error.errno or 0)
    text = str(error)
    if found := _RUST_NUMBER.search(text):
        return _BY_NUMBER.get(int(found[1]))
    return next((_BY_NUMBER[number] for words, number in _BY_TEXT.items() if words in text.lower()), None)
