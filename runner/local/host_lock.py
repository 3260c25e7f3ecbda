"""Allow one measurement at a time on this machine, with a lock that is held as long as any process of a run lives.

Every process that a run starts inherits the lock and a mark in its environment. So a second runner is refused, whoever
started it; and what a killed runner left behind (a process that loads data, a daemon of NVIDIA's MPS, which closes the
lock that it was given) is killed before the next run starts.
"""

import fcntl
import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.errors import UserError
from runner.local.process import kill_marked

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
NO_RUN = "-"
"""Stands in the lock instead of a run's id when the run has ended."""


@contextmanager
def hold_host_lock(run_id: str) -> Iterator[int]:
    """Hold the lock of this machine; raise UserError if another run measures here.

    Yields the file descriptor that every process started meanwhile has to inherit; the mark is in the environment.
    """
    path = find_lock_path()
    descriptor = _open_lock(path)
    before, mark = os.environ.get(MARK), f"{os.getpid()}:{_read_start(os.getpid())}"
    try:
        _acquire(descriptor, path)
        _write_note(descriptor, run_id, mark)
        os.environ[MARK] = mark
        try:
            yield descriptor
        finally:
            _write_note(descriptor, NO_RUN, mark)
            os.environ.pop(MARK, None)
            os.environ |= {} if before is None else {MARK: before}
    finally:
        os.close(descriptor)


def find_measured_run() -> str | None:
    """Return the id of the run that measures on this machine now; None where none does.

    The lock is looked at and not asked for: a runner that starts meanwhile would be refused.
    """
    with suppress(OSError, UserError):
        run_id, mark = _parse_note(find_lock_path().read_bytes())
        return run_id if _is_runner_alive(run_id, mark) else None
    return None


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
        with suppress(OSError):
            status = folder.lstat()  # every user can write to it, and none can remove another's files
            is_for_all = stat.S_ISDIR(status.st_mode) and status.st_mode & 0o1777 == 0o1777
            if is_for_all and not os.statvfs(folder).f_flag & os.ST_RDONLY:
                return folder / LOCK_NAME
    names = ", ".join(map(str, folders))
    raise UserError(f"none of {names} is a folder that every user can write to; name one in {LOCK_DIR} for the lock")


def _open_lock(path: Path) -> int:
    """Open the lock file, created if absent; raise UserError if it is anything else, such as a link."""
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        # Without O_CREAT first: the kernel refuses that for another user's file (fs.protected_regular).
        with suppress(FileNotFoundError):
            return os.open(path, flags)
        descriptor = os.open(path, flags | os.O_CREAT, 0o600)
        with suppress(PermissionError):  # another user's runner has made it meanwhile
            os.fchmod(descriptor, 0o666)  # for every user, whatever the umask
        return descriptor
    except OSError as error:
        hint = f"remove it, or name another folder in {LOCK_DIR}"
        raise UserError(f"{path}: this cannot be used as a lock ({error.strerror}); {hint}") from error


def _acquire(descriptor: int, path: Path) -> None:
    """Take the lock, and kill what the run that had it before left."""
    deadline = time.monotonic() + GRACE_SECONDS
    while True:
        run_id, mark = _parse_note(os.pread(descriptor, 200, 0))
        is_measured = _is_runner_alive(run_id, mark)
        if mark and not is_measured:
            kill_marked(f"{MARK}={mark}")
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if is_measured:
                raise UserError(
                    f"{path}: run {run_id} measures on this machine (process {mark.partition(':')[0]}), and two at "
                    "once would falsify both; wait for it or stop it"
                ) from None
            if time.monotonic() > deadline:
                # Another user's or another container's, or of a script that waits for a quiet machine.
                last = "" if run_id == NO_RUN else f", last taken by run {run_id}"
                raise UserError(f"{path}: another process holds this lock{last}; wait for it or stop it") from None
            time.sleep(POLL_SECONDS)


def _write_note(descriptor: int, run_id: str, mark: str) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{run_id} {mark}".encode(), 0)


def _parse_note(note: bytes) -> tuple[str, str]:
    """Return the run that the lock was last taken for, NO_RUN once it has ended, and its runner's mark."""
    run_id, _, mark = note.decode(errors="replace").partition(" ")
    return run_id or NO_RUN, mark


def _read_start(pid: int) -> str | None:
    """Return when a process started, in clock ticks after boot; None if it does not exist or is a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def _is_runner_alive(run_id: str, mark: str) -> bool:
    pid, _, start = mark.partition(":")
    return run_id != NO_RUN and pid.isdecimal() and _read_start(int(pid)) == start
