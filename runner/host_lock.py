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
    owner, alive = None, set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):  # it has ended meanwhile, or is another user's
            for number in os.listdir(f"/proc/{pid}/fd"):
                if _is_link_to(f"/proc/{pid}/fd/{number}", file):
                    info = Path(f"/proc/{pid}/fdinfo/{number}").read_text()
                    lock = re.search(r"^lock:.* FLOCK .* WRITE (-?\d+) ", info, re.MULTILINE)
                    if lock:
                        owner = int(lock[1])
                        alive.add(int(pid))
    return Holders(owner=owner, alive=frozenset(alive))


def _is_link_to(link: str, file: str) -> bool:
    try:
        return os.readlink(link) == file
    except FileNotFoundError:  # closed meanwhile
        return False


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
