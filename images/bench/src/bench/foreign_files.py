"""Reads files of the user: regular ones alone, as a pipe may never end, and no more of them than a limit."""

import os
import stat
from enum import StrEnum
from pathlib import Path


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
    """Return the content of a regular file, of at most `max_bytes`; raise ForeignFileError where there is none."""
    try:
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            raise ForeignFileError(FileProblem.DIRECTORY, "is a directory, not a file")
        if not stat.S_ISREG(status.st_mode):
            raise ForeignFileError(FileProblem.NOT_REGULAR, "is a pipe, a socket or a device, not a file")
        if status.st_size > max_bytes:
            raise ForeignFileError(FileProblem.TOO_LARGE, f"is larger than {max_bytes:,} bytes, the limit")
        return path.read_bytes()
    except FileNotFoundError:
        raise ForeignFileError(FileProblem.MISSING, "there is no such file") from None
    except ValueError:  # the name holds U+0000, or half a character
        raise ForeignFileError(FileProblem.MISSING, "cannot be the name of a file") from None
    except OSError as error:
        raise ForeignFileError(FileProblem.UNREADABLE, f"cannot be read: {error.strerror}", error.errno) from None
