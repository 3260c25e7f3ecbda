"""Objects in a directory: whole files or none, whoever is killed while writing."""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from secrets import randbits

from bench.redaction import hide_url_users
from bench.store.errors import StoreError, UnreadableObject, explain_os_error
from bench.store.keys import HOSTILE_PART
from bench.store.objects import StoredObject, keep_possible_time

PAGE_SIZE = 1000
"""Files that are looked at by one call of a thread."""
NO_FILE = "is a pipe, a socket or a device, not a file"
MAX_SHOWN = 200
"""Of a URL that is too long to be shown whole."""


def find_directory(url: str) -> Path:
    """Return the directory of a `file://` URL; raise StoreError where there can be none."""
    path = url.partition("://")[2]
    if not path:
        raise StoreError(f"store {url}: names no directory; for the current one write file://.")
    if "@" in path and hide_url_users(url) != url:
        raise StoreError("store: file:// takes the path of a directory, and no user or password")
    try:
        directory = Path(path).expanduser().absolute()
        str(directory).encode()
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):  # said where it is made or read
            os.stat(directory)
    except UnicodeEncodeError:
        raise StoreError(
            f"store {ascii(url)[1 : MAX_SHOWN + 1]}: the directory's name has bytes that are no UTF-8, and documents "
            "could not name it; give it another name"
        ) from None
    except FileNotFoundError:
        raise StoreError(f"store {url}: the current directory was deleted; change to another one") from None
    except RuntimeError:
        raise StoreError(f"store {url}: there is no such user; write the directory out") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise StoreError(f"store {url[:MAX_SHOWN]}: cannot be the name of a directory ({reason})") from None
    return directory


@dataclass(frozen=True)
class Directory:
    """The objects below a directory. Methods raise OSError, and UnreadableObject for one object."""

    root: Path
    absent: tuple[Path, ...] = ()
    """The directory and those above it that nobody asked to make: gone again once they are empty, innermost first."""

    @classmethod
    def open(cls, url: str, *, makes_directory: bool) -> "Directory":
        """Return the directory of a URL, made if absent and `makes_directory`; StoreError where it cannot be."""
        root = find_directory(url)
        directory = cls(root)
        try:
            if not makes_directory:
                return cls(root, tuple(folder for folder in (root, *root.parents) if not folder.exists()))
            directory.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"store {url}: {explain_os_error(error.errno, directory.place) or error}") from error
        return directory

    @property
    def place(self) -> str:
        return str(self.root)

    def write(self, key: str, data: bytes, *, is_patient: bool = True) -> None:
        """Write a file under another name, and rename it when it is whole."""
        staged = self._stage(key, data)
        try:
            os.replace(staged, self.root / key)
        finally:
            staged.unlink(missing_ok=True)

    def write_new(self, key: str, data: bytes) -> bool:
        """Write a file if there is none of its name; return False where there is."""
        staged = self._stage(key, data)
        try:
            os.link(staged, self.root / key)
        except FileExistsError:
            return False
        finally:
            staged.unlink(missing_ok=True)
        return True

    def _stage(self, key: str, data: bytes) -> Path:
        """Write a file whose name no listing shows, beside the place of its object."""
        staged = self.root / f"{key}#{randbits(48)}"
        for tries_left in (2, 1, 0):
            staged.parent.mkdir(parents=True, exist_ok=True)
            try:
                staged.write_bytes(data)
                return staged
            except FileNotFoundError:  # a cleaner removed the empty folder meanwhile
                if not tries_left:
                    raise
            except OSError:
                staged.unlink(missing_ok=True)
                raise
        raise AssertionError

    def read(self, key: str, max_bytes: int) -> bytes:
        try:
            with open(self.root / key, "rb", opener=_open_without_waiting) as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode):
                    raise UnreadableObject(f"'{key}' {NO_FILE}")
                if status.st_size > max_bytes:
                    raise UnreadableObject(f"'{key}' has {status.st_size:,} bytes, expected at most {max_bytes:,}")
                return file.read()
        except IsADirectoryError:  # a bucket has no object of a folder's name
            raise FileNotFoundError(key) from None
        except (FileNotFoundError, NotADirectoryError):
            raise
        except OSError as error:
            raise UnreadableObject(f"'{key}' cannot be read: {error.strerror}") from None

    def holds(self, key: str) -> bool:
        try:
            return not stat.S_ISDIR((self.root / key).stat().st_mode)
        except FileNotFoundError:
            return False

    def delete(self, keys: list[str]) -> None:
        """Delete files, those that are there, and the folders that are empty then."""
        for key in keys:
            path = self.root / key
            path.unlink(missing_ok=True)
            with suppress(OSError):  # one that is not empty, or is gone
                for folder in (*path.parents[: key.count("/")], *self.absent):
                    folder.rmdir()

    def read_clock(self, key: str) -> datetime:
        """Return when a file was written by the clock of the file system, and delete it again."""
        self.write(key, b" ")
        try:
            return datetime.fromtimestamp((self.root / key).stat().st_mtime, UTC)
        finally:
            self.delete([key])

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
        """Return the names of the folders directly in `folder`."""
        with suppress(FileNotFoundError):
            return [entry.name for entry in os.scandir(self.root / folder) if Path(entry).is_dir()]
        return []


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # a pipe that nobody writes to would keep its reader for ever


def _describe(key: str, entry: "os.DirEntry[str]") -> StoredObject:
    """Return a file as it is listed.

    Its version is the time of writing, in nanoseconds since 1970, the size, and the time of the last change of the
    inode. Copies keep the first two (`cp -p`, `rsync -a`, `tar`), so another file in an object's place may have those
    of the object that the data set read. Nobody sets the third. The number of the inode is not in it: where a bucket or
    another machine is mounted, a file has another one after each mount.
    """
    if not key.isprintable() and (shown := key.encode(errors="backslashreplace").decode()) != key:
        problem = "has bytes that are no UTF-8 in its name"
        return StoredObject(key=shown, num_bytes=0, version="", modified_at=None, problem=problem)
    try:
        status = entry.stat()
    except OSError as error:  # a link that leads nowhere, or a file that is gone by now
        problem = f"cannot be read ({error.strerror})"
        return StoredObject(key=key, num_bytes=0, version="", modified_at=None, problem=problem)
    return StoredObject(
        key=key,
        num_bytes=status.st_size,
        version=f"{status.st_mtime_ns}-{status.st_size}-{status.st_ctime_ns}",
        modified_at=keep_possible_time(datetime.fromtimestamp(status.st_mtime, UTC)),
        problem="" if stat.S_ISREG(status.st_mode) else NO_FILE,
    )
