"""A case: one foreign input, the command that reads it, and the file of the corpus that keeps it."""

import hashlib
import json
import os
import socket
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
SPARSE_BYTES = 3 * 2**30


class Special(StrEnum):
    """What can lie in a file's place and is no file with a content."""

    DIRECTORY = "directory"
    PIPE = "pipe"
    SOCKET = "socket"
    DANGLING_LINK = "dangling-link"
    LINK_LOOP = "link-loop"
    LINK_TO_ZEROS = "link-to-zeros"
    LINK_TO_MEMORY = "link-to-memory"
    HUGE = "huge"
    """A sparse file of SPARSE_BYTES."""


Content = bytes | Special


@dataclass(frozen=True)
class Case:
    """A foreign input of a target, and the use of it: `target` and `use` are names in `fuzz.targets`."""

    target: str
    use: str
    content: Content

    def describe(self) -> str:
        """Return a short name that is the same for the same case."""
        return f"{self.target}/{self.use}/{hashlib.sha256(_encode(self.content)).hexdigest()[:10]}"

    def save(self, folder: Path) -> Path:
        """Write the case as a file of a corpus, and return its path."""
        path = folder / self.describe()
        path = path.with_name(path.name + (".special" if isinstance(self.content, Special) else ".case"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_encode(self.content))
        return path


def _encode(content: Content) -> bytes:
    return content.value.encode() if isinstance(content, Special) else content


def load_case(path: Path) -> Case:
    """Return the case in a file `.../TARGET/USE/NAME`; `NAME.special` names something that is no file."""
    content = path.read_bytes()
    target, use = path.parts[-3:-1]
    return Case(target, use, Special(content.decode().strip()) if path.suffix == ".special" else content)


def list_corpus(folder: Path = CORPUS) -> list[Path]:
    """Return the files of a corpus, sorted."""
    return sorted(path for path in folder.glob("*/*/*") if path.is_file())


def put(content: Content, path: Path) -> None:
    """Put the content in a file's place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink() or path.exists():
        path.unlink()
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content == Special.DIRECTORY:
        path.mkdir()
    elif content == Special.PIPE:
        os.mkfifo(path)
    elif content == Special.SOCKET:
        _bind_socket(path)
    elif content == Special.HUGE:
        with path.open("wb") as file:
            file.truncate(SPARSE_BYTES)
    else:
        path.symlink_to(_LINKS.get(content, path))


_LINKS = {
    Special.DANGLING_LINK: "nowhere",
    Special.LINK_TO_ZEROS: "/dev/zero",
    Special.LINK_TO_MEMORY: "/proc/self/mem",
}


def _bind_socket(path: Path) -> None:
    folder = os.open(path.parent, os.O_PATH)
    try:  # the name of a socket has 107 bytes at most
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)


def read_words(content: bytes) -> list[str]:
    """Return the words of a command line that a case of the target `words` holds as a JSON list."""
    words: list[str] = json.loads(content)
    assert not any("\0" in word for word in words), "the system takes no U+0000 in a word"
    return words
