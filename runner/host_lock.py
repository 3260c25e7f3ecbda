"""One measurement at a time on this machine: a run id in, a lock held for as long as anything of that run lives.

Every process that a run starts inherits the lock. So a second runner is refused; and where a killed runner left a
process behind, that process is ended before the next one starts.
"""

import fcntl
import os
import re
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bench.errors import UserError

# How long a killed runner's last process may take to die before the machine counts as busy.
GRACE_SECONDS = 10.0
POLL_SECONDS = 0.1
MAX_NOTE_BYTES = 200


@dataclass(frozen=True, kw_only=True)
class Holders:
    """Who has the lock, as the kernel tells: `owner` took it and may be dead, `alive` hold it now."""

    owner: int | None
    alive: frozenset[int]


@contextmanager
def hold_host_lock(run_id: str) -> Iterator[int]:
    """Hold this user's lock on the machine; UserError where another run measures here.

    Yields the file descriptor that every process started meanwhile is to inherit.
    """
    path = Path(tempfile.gettempdir()) / f"benchmatrix-{os.getuid()}.lock"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise UserError(f"{path}: this cannot be used as a lock ({error.strerror}); remove it") from error
    try:
        _acquire(descriptor, path)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, run_id.encode(), 0)
        yield descriptor
    finally:
        os.close(descriptor)


def find_holders(descriptor: int) -> Holders:
    """Return who holds a lock on the file that `descriptor` is open on."""
    file = os.readlink(f"/proc/self/fd/{descriptor}")
    owners = {pid: owner for pid, number in _list_open_files() if (owner := _read_owner(pid, number, file)) is not None}
    return Holders(owner=next(iter(owners.values()), None), alive=frozenset(owners))


def _list_open_files() -> Iterator[tuple[int, str]]:
    """Yield process and descriptor of every open file of this user's processes."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):  # it has ended meanwhile, or is another user's
            yield from ((int(pid), number) for number in os.listdir(f"/proc/{pid}/fd"))


def _read_owner(pid: int, number: str, file: str) -> int | None:
    """Return who took the lock that a process holds with this descriptor; None where that is no lock on `file`."""
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
            _end_orphans(holders)
            time.sleep(POLL_SECONDS)


def _end_orphans(holders: Holders) -> None:
    """End what a dead runner left: the groups of those that inherited the lock from it."""
    for pid in holders.alive:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(os.getpgid(pid), signal.SIGKILL)


def _explain_busy(descriptor: int, path: Path, holders: Holders) -> UserError:
    run_id = os.pread(descriptor, MAX_NOTE_BYTES, 0).decode(errors="replace")
    processes = ", ".join(str(pid) for pid in sorted(holders.alive)) or "unknown"
    return UserError(
        f"{path}: run {run_id} measures on this machine (processes: {processes}), and two at once would falsify both; "
        "wait for it or stop it"
    )
