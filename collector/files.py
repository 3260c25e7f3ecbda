"""Replace files whole: a reader finds the old content or the new one, never a part of it."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from bench.errors import UserError


@contextmanager
def replace_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a binary file whose content replaces `path` when the block ends; make the folders of `path`.

    The content is written to a temporary file in the same folder and is on the disk before it takes the name `path`.
    If anything fails, the temporary file is removed and `path` stays as it was. Raises UserError, naming the file,
    where it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _explain(path.parent, error) from error
    try:
        target = Path(os.path.realpath(path))  # a link stays one
        if target.exists() and not target.is_file():  # /dev/stdout, a pipe: nothing that could be replaced
            with target.open("wb") as file:
                yield file
        else:
            with _replace_regular(target) as file:
                yield file
    except OSError as error:
        raise _explain(path, error) from error


def replace_text(path: Path, text: str) -> None:
    """Replace `path` by a file of `text` in UTF-8; see `replace_file`."""
    with replace_file(path) as file:
        file.write(text.encode())


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
    return UserError(
        f"{path}: cannot be written ({error.strerror or error}); what was there is as it was; free space or name "
        "another place"
    )
