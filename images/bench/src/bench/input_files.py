"""Reads files that the user names, and remembers them: no output replaces them (`collector.files`)."""

import os
from pathlib import Path

_inputs: set[tuple[int, int, int]] = set()


def read_input(path: Path) -> bytes:
    """Return what a user's file holds; raise OSError."""
    with path.open("rb") as file:
        _inputs.add(_identify(os.fstat(file.fileno())))
        return file.read()


def explain_unread(error: OSError) -> str:
    """Return why a user's file cannot be read, to stand behind its name and a colon."""
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, IsADirectoryError):
        return "is a directory, not a file"
    return f"cannot be read: {error.strerror}"


def was_read(path: Path) -> bool:
    """Return whether this process has read the file that `path` leads to, and nobody changed it since."""
    try:
        return _identify(path.stat()) in _inputs
    except OSError:
        return False


def _identify(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_dev, status.st_ino, status.st_ctime_ns
