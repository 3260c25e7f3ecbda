"""Objects in a directory: whole files or none, whoever is killed while writing."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from secrets import randbits
from typing import ClassVar

from bench.store.errors import CHECK_BYTES, StoreError, UnreadableObject
from bench.store.keys import HOSTILE_PART, StoredObject

PAGE_SIZE = 1000
"""Files that are looked at by one call of a thread."""


def find_directory(url: str) -> Path:
    """Return the directory of a `file://` URL; raise StoreError where there can be none."""
    path = url.partition("://")[2]
    if not path:
        raise StoreError(f"store {url}: names no directory; for the current one write file://.")
    try:
        directory = Path(path).expanduser().absolute()
        str(directory).encode()
    except UnicodeEncodeError:  # documents could not name it
        raise StoreError(f"store {ascii(url)}: the directory's name has bytes that are no UTF-8; rename it") from None
    except (OSError, RuntimeError) as error:  # the current directory was deleted, or there is no such user
        raise StoreError(f"store {url}: cannot be the name of a directory ({error})") from None
    return directory


@dataclass(frozen=True)
class Directory:
    """The objects below a directory, which the first of them makes. Methods raise OSError, and UnreadableObject."""

    root: Path
    errors: ClassVar = (OSError,)

    def check_process(self) -> None:
        """Do nothing: files are any process's."""

    @property
    def place(self) -> str:
        return str(self.root)

    def write(self, key: str, data: bytes) -> None:
        """Write a file under another name, and rename it when it is whole."""
        with self._stage(key, data) as staged:
            os.replace(staged, self.root / key)

    def write_new(self, key: str, data: bytes) -> bool:
        """Write a file if there is none of its name; return False where there is."""
        with self._stage(key, data) as staged:
            try:
                os.link(staged, self.root / key)
            except FileExistsError:
                return False
            except OSError:  # a file system without hard links, such as exFAT, SMB and most of FUSE
                try:
                    (self.root / key).open("xb").close()
                except FileExistsError:
                    return False
                os.replace(staged, self.root / key)
        return True

    def check(self, key: str) -> None:
        """Write a file that no listing shows where the object of this key would lie; delete it and its new folders."""
        try:
            with self._stage(key, bytes(CHECK_BYTES)):
                pass
        finally:
            self.delete([f"{key}#"])  # no file, but the empty folders around it

    @contextmanager
    def _stage(self, key: str, data: bytes) -> Iterator[Path]:
        """Write a file whose name no listing shows, beside the place of its object; at the end it is gone."""
        staged = self.root / f"{key}#{randbits(48)}"
        try:
            for tries_left in (2, 1, 0):
                try:
                    staged.parent.mkdir(parents=True, exist_ok=True)
                    staged.write_bytes(data)
                    break
                except FileNotFoundError:  # a cleaner removed the empty folder meanwhile
                    if not tries_left:
                        raise
            yield staged
        finally:
            staged.unlink(missing_ok=True)

    def read(self, key: str) -> bytes | None:
        """Return a file's bytes; None where there is none. A folder is none: a bucket has no object of its name."""
        path = self.root / key
        try:
            return path.read_bytes()
        except (FileNotFoundError, IsADirectoryError):
            return None
        except NotADirectoryError:
            raise
        except OSError as error:
            raise UnreadableObject(f"'{key}' cannot be read: {error.strerror}") from None

    def holds(self, key: str) -> bool:
        return (self.root / key).exists() and not (self.root / key).is_dir()

    def delete(self, keys: list[str]) -> None:
        """Delete files, those that are there, and the folders that are empty then."""
        for key in keys:
            path = self.root / key
            path.unlink(missing_ok=True)
            with suppress(OSError):  # one that is not empty, or is gone
                for folder in path.parents[: key.count("/")]:
                    folder.rmdir()

    def list_pages(self, folder: str) -> Iterator[list[StoredObject]]:
        """Yield the files below `folder`, the names of each folder sorted.

        Links to files are followed; links to directories are not, for they may lead back. What a killed writer left
        has no key.
        """
        files = self._list_files(folder)
        while page := list(islice(files, PAGE_SIZE)):
            yield page

    def _list_files(self, folder: str) -> Iterator[StoredObject]:
        try:
            entries = sorted(os.scandir(self.root / folder), key=lambda entry: entry.name)
        except FileNotFoundError:
            return
        for entry in entries:
            key = f"{folder}/{entry.name}" if folder else entry.name
            if HOSTILE_PART.fullmatch(entry.name):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from self._list_files(key)
            else:
                yield _describe(key, entry)

    def list_folders(self, folder: str) -> list[str]:
        with suppress(FileNotFoundError):
            return [entry.name for entry in os.scandir(self.root / folder) if entry.is_dir()]
        return []


def _describe(key: str, file: "os.DirEntry[str]") -> StoredObject:
    """Return a file as it is listed.

    Its version is the time of writing, in nanoseconds since 1970, the size, and the time of the last change of the
    inode. Copies keep the first two (`cp -p`, `rsync -a`, `tar`), so another file in an object's place may have those
    of the object that the data set read. Nobody sets the third. The number of the inode is not in it: where a bucket or
    another machine is mounted, a file has another one after each mount.
    """
    if not key.isprintable() and (shown := key.encode(errors="backslashreplace").decode()) != key:
        return StoredObject(key=shown, problem="has bytes that are no UTF-8 in its name")
    try:
        status = file.stat()
    except OSError as error:  # a link that leads nowhere, or a file that is gone by now
        return StoredObject(key=key, problem=f"cannot be read ({error.strerror})")
    return StoredObject(
        key=key,
        num_bytes=status.st_size,
        version=f"{status.st_mtime_ns}-{status.st_size}-{status.st_ctime_ns}",
        modified_at=datetime.fromtimestamp(status.st_mtime, UTC) if status.st_mtime > 0 else None,
        problem="" if stat.S_ISREG(status.st_mode) else "is no file",
    )
