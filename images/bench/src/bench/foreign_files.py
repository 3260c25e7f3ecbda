"""Opens and names files that anybody may have put in their place: regular ones alone, no more of them than a limit."""

import errno
import os
import stat
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

_read: set[int] = set()
"""The files that were read, 70 bytes each."""


class FileProblem(StrEnum):
    """What is wrong with a file that was to be read."""

    MISSING = "missing"
    DIRECTORY = "directory"
    NOT_REGULAR = "not-regular"
    TOO_LARGE = "too-large"
    UNREADABLE = "unreadable"


class ForeignFileError(Exception):
    """A file cannot be read. The message is the reason in words, to stand behind the file's name and a colon."""

    def __init__(self, problem: FileProblem, reason: str, number: int | None = None) -> None:
        super().__init__(reason)
        self.problem = problem
        self.number = number
        """The system's number of the error, where it gave one."""


def read_foreign_file(path: Path, *, max_bytes: int) -> bytes:
    """Return the content of a regular file, of at most `max_bytes`; raise ForeignFileError where that cannot be done.

    Links are followed. Pipes, sockets and devices are refused before anything is read: a pipe that nobody writes to
    would never end, and a device such as /dev/zero neither.
    """
    try:
        # O_NONBLOCK: to open a pipe would wait for its writer. It means nothing for a regular file.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (OSError, ValueError) as error:
        raise _explain(error) from None
    try:
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            _check_kind(status, max_bytes)
            content = _read_all(file, status.st_size, max_bytes)
            _read.add(_identify(status))
    except OSError as error:
        raise _explain(error) from None
    if len(content) > max_bytes:  # it grew, or is one of /proc's, which have no size
        raise _too_large(max_bytes)
    return content


def show_bytes(name: str) -> str:
    """Return a name of a file as a terminal, JSON and CSV can hold it: `\\udcff` for each byte that is no UTF-8.

    A name can be any bytes; Python holds those that are no text as half a character each.
    """
    return name.encode(errors="backslashreplace").decode()


def was_read(path: Path) -> bool:
    """Return whether this process has read the regular file that `path` leads to, and nobody changed it since."""
    try:
        return _identify(os.stat(path)) in _read
    except (OSError, ValueError):
        return False


def _identify(status: os.stat_result) -> int:
    """Return a number for a file in its present state: the time of its last change, as numbers of files are reused."""
    return hash((status.st_dev, status.st_ino, status.st_ctime_ns))


def _read_all(file: BinaryIO, num_bytes: int, max_bytes: int) -> bytes:
    """Return what a file holds, up to one byte more than the limit: Python takes the memory asked for beforehand."""
    content = file.read(num_bytes + 1)
    return content if len(content) <= num_bytes else content + file.read(max_bytes + 1 - len(content))


def _check_kind(status: os.stat_result, max_bytes: int) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise ForeignFileError(FileProblem.DIRECTORY, "is a directory, not a file")
    if not stat.S_ISREG(status.st_mode):
        raise _not_regular()
    if status.st_size > max_bytes:
        raise _too_large(max_bytes)


def _explain(error: OSError | ValueError) -> ForeignFileError:
    if isinstance(error, ValueError):  # of os.open: the name holds U+0000, or half a character
        return ForeignFileError(FileProblem.MISSING, "cannot be the name of a file")
    if isinstance(error, FileNotFoundError):
        return ForeignFileError(FileProblem.MISSING, "there is no such file")
    if isinstance(error, IsADirectoryError):
        return ForeignFileError(FileProblem.DIRECTORY, "is a directory, not a file")
    if error.errno in (errno.ENXIO, errno.ENODEV):  # sockets, and devices without a driver
        return _not_regular()
    return ForeignFileError(FileProblem.UNREADABLE, f"cannot be read: {error.strerror}", error.errno)


def _not_regular() -> ForeignFileError:
    return ForeignFileError(FileProblem.NOT_REGULAR, "is a pipe, a socket or a device, not a file")


def _too_large(max_bytes: int) -> ForeignFileError:
    return ForeignFileError(FileProblem.TOO_LARGE, f"is larger than {max_bytes:,} bytes, the limit")
