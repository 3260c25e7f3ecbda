"""Allow one measurement at a time on this machine, with a lock that is held as long as any process of a run lives.

Every process that a run starts inherits the lock and a mark in its environment. So a second runner is refused, whoever
started it; and if a killed runner left processes behind, those with its mark are killed before the next run starts.
"""

import fcntl
import os
import re
import signal
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bench.errors import UserError

LOCK_DIR = "BENCHMATRIX_LOCK_DIR"
"""Environment variable: the folder of the lock, if none of FOLDERS is usable. All runners must have the same."""
FOLDERS = (Path("/run/lock"), Path("/dev/shm"), Path("/tmp"))
"""The lock is in the first that every user can write to: the same for all users, whatever TMPDIR says."""
LOCK_NAME = "benchmatrix.lock"
MARK = "BENCHMATRIX_RUNNER"
"""Environment variable of the processes of a runner: its `PID:START`, the start in clock ticks after boot."""
# How long a killed runner's last process may take to die before the machine counts as busy.
GRACE_SECONDS = 10.0
POLL_SECONDS = 0.1
MAX_NOTE_BYTES = 200


@dataclass(frozen=True, kw_only=True)
class Holders:
    """The processes that have the lock, as the kernel shows: `owner` took it and may be dead, `alive` hold it now."""

    owner: int | None
    alive: frozenset[int]


@contextmanager
def hold_host_lock(run_id: str) -> Iterator[int]:
    """Hold the lock of this machine; raise UserError if another run measures here.

    Yields the file descriptor that every process started meanwhile has to inherit; the mark is in the environment.
    """
    path = find_lock_path()
    descriptor = _open_lock(path)
    before = os.environ.get(MARK)
    try:
        _acquire(descriptor, path)
        _kill_left_daemons()
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, run_id.encode(), 0)
        os.environ[MARK] = _make_mark()
        yield descriptor
    finally:
        os.environ.pop(MARK, None)
        if before is not None:
            os.environ[MARK] = before
        os.close(descriptor)


def find_measured_run() -> str | None:
    """Return the id of the run that measures on this machine now; None where none does, or another user's may.

    The lock is looked at and not asked for: a runner that starts meanwhile would be refused.
    """
    try:
        descriptor = os.open(find_lock_path(), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, UserError):
        return None
    try:
        return _read_note(descriptor) if find_holders(descriptor).alive else None
    finally:
        os.close(descriptor)


def find_lock_path(folders: Sequence[Path] = FOLDERS) -> Path:
    """Return the path of this machine's lock; raise UserError if no folder is usable."""
    named = os.environ.get(LOCK_DIR)
    if named:
        if not os.path.isdir(named):
            raise UserError(
                f"{LOCK_DIR}={named}: there is no such folder; name one that every runner here can write to"
            )
        return Path(named) / LOCK_NAME
    for folder in folders:
        if _is_for_all(folder):
            return folder / LOCK_NAME
    names = ", ".join(map(str, folders))
    raise UserError(f"none of {names} is a folder that every user can write to; name one in {LOCK_DIR} for the lock")


def find_holders(descriptor: int) -> Holders:
    """Return who holds a lock on the file that `descriptor` is open on."""
    file = os.readlink(f"/proc/self/fd/{descriptor}")
    owners = {pid: owner for pid, number in _list_open_files() if (owner := _read_owner(pid, number, file)) is not None}
    return Holders(owner=next(iter(owners.values()), None), alive=frozenset(owners))


def _is_for_all(folder: Path) -> bool:
    """Return whether every user can write to the folder and none can remove another's files."""
    try:
        status = folder.lstat()
        is_read_only = os.statvfs(folder).f_flag & os.ST_RDONLY
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_mode & 0o1777 == 0o1777 and not is_read_only


def _open_lock(path: Path) -> int:
    """Open the lock file, created if absent; raise UserError if it is anything else, such as a link."""
    try:
        descriptor = _open_or_make(path)
    except OSError as error:
        hint = f"remove it, or name another folder in {LOCK_DIR}"
        raise UserError(f"{path}: this cannot be used as a lock ({error.strerror}); {hint}") from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
        os.close(descriptor)
        raise UserError(f"{path}: this cannot be used as a lock (it is no file, or has a second name); remove it")
    return descriptor


def _open_or_make(path: Path) -> int:
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    for _ in range(3):  # another runner may make it, or root remove it, meanwhile
        # Without O_CREAT first: the kernel refuses that for another user's file (fs.protected_regular).
        with suppress(FileNotFoundError):
            return os.open(path, flags)
        with suppress(FileExistsError):
            descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600)
            os.fchmod(descriptor, 0o666)  # for every user, whatever the umask
            return descriptor
    return os.open(path, flags)


def _list_open_files() -> Iterator[tuple[int, str]]:
    """Yield process and descriptor of every open file of the processes that this user may inspect."""
    for pid in _list_processes():
        with suppress(OSError):  # it has ended meanwhile, or is another user's
            yield from ((pid, number) for number in os.listdir(f"/proc/{pid}/fd"))


def _list_processes() -> Iterator[int]:
    return map(int, filter(str.isdigit, os.listdir("/proc")))


def _read_owner(pid: int, number: str, file: str) -> int | None:
    """Return the process that took the lock behind this descriptor; None if that is no lock on `file`."""
    with suppress(OSError):  # closed meanwhile
        if os.readlink(f"/proc/{pid}/fd/{number}") == file:
            info = Path(f"/proc/{pid}/fdinfo/{number}").read_text()
            lock = re.search(r"^lock:.* FLOCK .* WRITE (-?\d+) ", info, re.MULTILINE)
            return int(lock[1]) if lock else None
    return None


def _acquire(descriptor: int, path: Path) -> None:
    deadline = time.monotonic() + GRACE_SECONDS
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holders = find_holders(descriptor)
            if holders.owner in holders.alive or time.monotonic() > deadline:
                raise _explain_busy(descriptor, path, holders) from None
            _kill_orphans(holders)
            time.sleep(POLL_SECONDS)


# Marks


def _make_mark() -> str:
    return f"{os.getpid()}:{_read_start(os.getpid())}"


def _read_start(pid: int) -> str | None:
    """Return when a process started, in clock ticks after boot; None if it does not exist or is a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def _read_mark(pid: int) -> str | None:
    """Return the mark that a process was started with; None if it has none or may not be inspected."""
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    prefix = f"{MARK}=".encode()
    return next(
        (word.removeprefix(prefix).decode(errors="replace") for word in variables if word.startswith(prefix)), None
    )


def _kill_orphans(holders: Holders) -> None:
    """Kill what a dead runner left: every process with its mark, if one of them holds the lock.

    A process without a mark, or with that of a living runner, is left alone, whatever it holds.
    """
    dead = {mark for mark in map(_read_mark, holders.alive) if mark is not None and not _is_runner_alive(mark)}
    for pid in _list_processes() if dead else ():
        if pid != os.getpid():
            _kill_marked(pid, dead)


def _kill_left_daemons() -> None:
    """Kill the daemons of NVIDIA's MPS that a dead runner started: they may have closed the lock that it gave them."""
    for pid in _list_processes():
        with suppress(OSError):  # it has ended
            if Path(f"/proc/{pid}/comm").read_text(errors="replace").startswith("nvidia-cuda-mps"):
                mark = _read_mark(pid)
                if mark is not None and not _is_runner_alive(mark):
                    _kill_marked(pid, {mark})


def _is_runner_alive(mark: str) -> bool:
    pid, _, start = mark.partition(":")
    return not re.fullmatch("[0-9]{1,10}", pid) or _read_start(int(pid)) == start


def _kill_marked(pid: int, marks: set[str]) -> None:
    """Kill the process if it has one of the marks; never another process that got its number meanwhile."""
    with suppress(OSError):  # it has ended, or is another user's
        process = os.pidfd_open(pid)
        try:
            if _read_mark(pid) in marks:
                signal.pidfd_send_signal(process, signal.SIGKILL)
        finally:
            os.close(process)


def _explain_busy(descriptor: int, path: Path, holders: Holders) -> UserError:
    run_id = _read_note(descriptor)
    processes = ", ".join(str(pid) for pid in sorted(holders.alive)) or "unknown, perhaps another user's"
    return UserError(
        f"{path}: run {run_id} measures on this machine (processes: {processes}), and two at once would falsify both; "
        "wait for it or stop it"
    )


def _read_note(descriptor: int) -> str:
    """Return what the holder of the lock wrote into it: the id of its run."""
    return os.pread(descriptor, MAX_NOTE_BYTES, 0).decode(errors="replace")
