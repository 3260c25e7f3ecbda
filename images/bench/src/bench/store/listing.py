"""What a listing says of each object; the listing of a directory, which may hold things that are no objects."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from bench.store.keys import HOSTILE_PART, find_key_problem

if TYPE_CHECKING:
    from obstore import ObjectMeta

MAX_OBJECT_BYTES = 2**63 - 1
"""What a row of the data set can say; no store takes an object of so many."""
EPOCH = datetime.fromtimestamp(0, UTC)
MAX_DEPTH = 20
"""Folders in folders that are looked into: the deepest key has 6 parts, a path may have two thousand."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredObject:
    """One entry of a listing."""

    key: str
    num_bytes: int
    version: str
    """Differs between two objects of one key: the server's ETag; in a directory `describe_version`."""
    modified_at: datetime | None
    """None where nothing, or nothing that can be true, is said of it."""
    problem: str = ""
    """Why it cannot be read, in words: of a directory's pipes and links that lead nowhere. Empty: it can be."""

    @classmethod
    def of_server(cls, meta: "ObjectMeta") -> "StoredObject":
        """Return an object as a server lists it."""
        modified_at = keep_possible_time(meta["last_modified"])
        is_possible = meta["size"] <= MAX_OBJECT_BYTES
        return cls(
            key=meta["path"],
            num_bytes=meta["size"] if is_possible else 0,
            version=meta["e_tag"] or make_version(modified_at, meta["size"]),
            modified_at=modified_at,
            problem=find_key_problem(meta["path"]) or ("" if is_possible else f"is listed with {meta['size']:,} bytes"),
        )


def keep_possible_time(time: datetime) -> datetime | None:
    """Return a time, None for one that stands for none: servers write 1970 or the year 1 where they know no time."""
    return time if time > EPOCH else None


def make_version(modified_at: datetime | None, size: int | None) -> str:
    """Return the version of an object that has no ETag."""
    return f"{'no time' if modified_at is None else modified_at.isoformat()}-{size}"


def list_directory(root: Path, folder: str) -> Iterator[StoredObject]:
    """Yield what lies below `folder` of the directory `root` ('': all of it), the names of each folder sorted.

    Links to files are followed; links to directories are not, for they may lead back. A directory whose name ends in
    .json stands in a document's place, and is yielded with its problem. What a killed writer left is not yielded.
    """
    place = root / folder
    try:
        entries = sorted(os.scandir(place), key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    except OSError as error:
        if place == root:
            raise
        yield _describe_problem(folder, place, f"cannot be opened ({error.strerror})")
        return
    if folder.count("/") >= MAX_DEPTH:
        yield _describe_problem(folder, place, "is nested too deep")
        return
    for entry in entries:
        key = f"{folder}/{entry.name}" if folder else entry.name
        if HOSTILE_PART.fullmatch(entry.name):
            continue
        if entry.is_dir(follow_symlinks=False):
            if entry.name.endswith(".json"):
                yield _describe_problem(key, entry, "is a directory, not a file")
            else:
                yield from list_directory(root, key)
        else:
            yield _describe_entry(key, entry)


def list_folders(place: Path) -> list[str]:
    """Return the names of the folders in a directory, whatever characters they have; none where it is not there."""
    try:
        return [entry.name for entry in os.scandir(place) if _is_folder(entry)]
    except FileNotFoundError:
        return []


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def _read_time(seconds: float) -> datetime | None:
    """Return the time of a file, which anybody can set; None where no calendar has it."""
    try:
        return keep_possible_time(datetime.fromtimestamp(seconds, UTC))
    except (OSError, OverflowError, ValueError):
        return None


def describe_version(status: os.stat_result) -> str:
    """Return the time of writing, in nanoseconds since 1970, the size, and the time of the last change of the inode.

    Copies keep the first two (`cp -p`, `rsync -a`, `tar`), so another file in an object's place may have those of the
    object that the data set read. Nobody sets the third. The number of the inode is not in it: where a bucket or
    another machine is mounted, a file has another one after each mount.
    """
    return f"{status.st_mtime_ns}-{status.st_size}-{status.st_ctime_ns}"


def _describe_entry(key: str, entry: "os.DirEntry[str]") -> StoredObject:
    try:
        status = entry.stat()
    except OSError as error:  # a link that leads nowhere or to itself, or a file that is gone by now
        return _describe_problem(key, entry, f"cannot be read ({error.strerror})")
    if not stat.S_ISREG(status.st_mode):
        kind = "a link to a directory" if stat.S_ISDIR(status.st_mode) else "a pipe, a socket or a device"
        return _describe_problem(key, entry, f"is {kind}, not a file")
    return StoredObject(
        key=key,
        num_bytes=status.st_size,
        version=describe_version(status),
        modified_at=_read_time(status.st_mtime),
    )


def _describe_problem(key: str, place: "os.PathLike[str]", problem: str) -> StoredObject:
    try:
        modified_at = _read_time(os.lstat(place).st_mtime)
    except OSError:  # it is gone by now
        modified_at = None
    return StoredObject(key=key, num_bytes=0, version="", modified_at=modified_at, problem=problem)
