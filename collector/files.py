"""Reads files that the user names, and replaces others whole, without what steers their reader's terminal or browser.

A reader finds the old content or the new one, never a part of it. ESC moves a terminal's cursor and U+202E shows what
follows backwards, so that a file says something else to its reader than to a program. Neither has a place in a text of
ours: what a result holds is in its JSON, with escapes.
"""

import csv
import errno
import io
import os
import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from bench.errors import UserError

URL_BEGINNING = re.compile("(?:file|s3|gs|az|https?):")
"""The first part of what was a URL before it was taken for a path."""
STDOUT = (Path("-"), Path("/dev/stdout"))


@contextmanager
def replace_file(path: Path, *, may_be_read: bool = False) -> Iterator[BinaryIO]:
    """Yield a binary file whose content replaces `path` when the block ends; make the folders of `path`.

    The content is written to a temporary file in the same folder and is on the disk before it takes the name `path`.
    If anything fails, the temporary file is removed and `path` stays as it was. `-` is stdout; what is no regular file,
    as /dev/null, is written to. Raises UserError, naming the file, where it cannot be written, and where this process
    has read it, unless it `may_be_read`: a table or a plan that a command is given would be lost.
    """
    if path in STDOUT:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if path.parts[:1] and URL_BEGINNING.fullmatch(path.parts[0]):  # not shown: it may hold a password
        raise UserError("output: takes the path of a file or a folder on this machine, and no URL")
    if not may_be_read and os.path.realpath(path) in _inputs:
        raise UserError(f"{path}: is what this command reads; name another file for its output")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _explain(path.parent, error) from error
    try:
        target = Path(os.path.realpath(path))  # a link stays one
        is_other = target.exists() and not target.is_file()
        with target.open("wb") if is_other else _replace_regular(target) as file:
            yield file
    except OSError as error:
        raise _explain(path, error) from error


def check_folder(path: Path) -> None:
    """Raise UserError where a file stands in the place of a folder of `path`: before the work that is to be written."""
    for folder in Path(os.path.abspath(path)).parents:
        if os.path.isdir(folder):
            return
        if os.path.lexists(folder):
            raise _explain(path.parent, NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)))


def replace_text(path: Path, text: str, *, may_be_read: bool = False) -> None:
    """Replace `path` by a file of `text` in UTF-8, less what steers its reader's terminal; see `replace_file`."""
    with replace_file(path, may_be_read=may_be_read) as file:
        file.write(replace_steering(text).encode())


@contextmanager
def _replace_regular(target: Path) -> Iterator[BinaryIO]:
    temporary = target.parent / f".benchmatrix-{secrets.token_hex(8)}.tmp"
    try:
        with temporary.open("xb") as file:
            if target.exists():
                os.fchmod(file.fileno(), target.stat().st_mode & 0o7777)
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)  # after the replacement there is none


def _explain(path: Path, error: OSError) -> UserError:
    reason = error.strerror or str(error)
    return UserError(
        f"{path}: cannot be written ({reason}); what was there is as it was; free space or name another place"
    )


REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# The controls of ASCII and Latin-1 but tab and line feed; the marks that change the direction of a text
# (https://www.unicode.org/reports/tr9/, "Directional Formatting Characters"); half characters, which UTF-8 has none of.
STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def replace_steering(text: str) -> str:
    """Return a text, of any number of lines, with U+FFFD in the place of each character that steers."""
    return STEERING.sub(REPLACEMENT, text)


def escape_markdown(text: str) -> str:
    """Return one line of `text` in which nothing is read as markup, nor steers a terminal."""
    escaped = "".join(f"\\{character}" if character in "\\`*_[]<>|#" else character for character in text)
    return replace_steering(" ".join(escaped.split()))


_inputs: set[str] = set()


def read_input(path: Path) -> bytes:
    """Return what a user's file holds; raise OSError."""
    _inputs.add(os.path.realpath(path))
    return path.read_bytes()


def read_csv(path: Path) -> list[tuple[int, list[str]]]:
    """Return the lines of a user's table that are not empty, the columns first: the number of each, and its texts.

    Every line has as many texts as there are columns. Raise UserError, with file and line, where that is not so.
    """
    try:
        text = read_input(path).decode("utf-8-sig")
    except OSError as error:
        raise UserError(f"{path}: {explain_unread(error)}; give the path of a CSV file") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: is not a CSV file in UTF-8 ({error}); save the table as one") from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        lines = [(reader.line_num, [cell.strip() for cell in cells]) for cells in reader]
    except csv.Error as error:
        message = f"is not a CSV file ({error}); quote a text that holds commas or quotes"
        raise UserError(f"{path}:{reader.line_num}: {message}") from None
    lines = [(line, cells) for line, cells in lines if any(cells)]
    if len(lines) < 2:
        raise UserError(f"{path}:1: the table has no rows; give a first line with the columns, and one for each row")
    columns = lines[0][1]
    if len(columns) == 1 and (found := [mark for mark in (";", "\t", "|") if mark in columns[0]]):
        raise UserError(f"{path}:1: columns are separated by {found[0]!r}; expected commas: save it with them")
    if repeated := [name for name in columns if columns.count(name) > 1]:
        raise UserError(f"{path}:1: has several columns {repeated[0]!r}; rename or remove all but one")
    for line, cells in lines:
        if len(cells) != len(columns):
            count = f"found {len(cells)} cells, expected {len(columns)}, as many as the first line"
            raise UserError(f"{path}:{line}: {count}; quote a text that holds commas")
    return lines


def explain_unread(error: OSError) -> str:
    """Return why a user's file cannot be read, to stand behind its name and a colon."""
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, IsADirectoryError):
        return "is a directory, not a file"
    return f"cannot be read: {error.strerror}"
