"""One measurement at a time on this machine: a run id in, a lock held for as long as anything of that run lives.

Every measuring process inherits the lock. So a second runner is refused; and where a killed runner left a process
behind, that process is ended before the next one starts.
"""

import fcntl
import json
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from bench.errors import UserError

# How long a killed runner's last process may take to die before the machine counts as busy.
GRACE_SECONDS = 10.0
POLL_SECONDS = 0.1


class HostLock:
    """The lock, held. `fileno` is passed to every measuring process."""

    def __init__(self, file: IO[str], run_id: str) -> None:
        self._file = file
        self._run_id = run_id
        self.fileno = file.fileno()
        self.note_group(None)

    def note_group(self, process_group: int | None) -> None:
        """Write down who measures, for whoever finds the lock taken."""
        holder = {"runner_pid": os.getpid(), "run_id": self._run_id, "process_group": process_group}
        self._file.seek(0)
        self._file.truncate()
        self._file.write(json.dumps(holder))
        self._file.flush()


@contextmanager
def hold_host_lock(run_id: str) -> Iterator[HostLock]:
    """Hold this user's lock on the machine; UserError where another run measures here."""
    path = Path(tempfile.gettempdir()) / f"benchmatrix-{os.getuid()}.lock"
    with open(path, "a+", encoding="utf-8") as file:
        _acquire(file, path)
        yield HostLock(file, run_id)


def _acquire(file: IO[str], path: Path) -> None:
    deadline = time.monotonic() + GRACE_SECONDS
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _read_holder(path)
            runner_lives = holder is not None and Path(f"/proc/{holder['runner_pid']}").exists()
            if runner_lives or time.monotonic() > deadline:
                raise _explain_busy(holder, path) from None
            _end_orphans(holder)
            time.sleep(POLL_SECONDS)


def _read_holder(path: Path) -> dict[str, int | str | None] | None:
    try:
        holder: dict[str, int | str | None] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:  # read while the holder was writing
        return None
    return holder


def _end_orphans(holder: dict[str, int | str | None] | None) -> None:
    """End the process group of a runner that is dead. The lock is still taken, so the group is not another's."""
    group = holder["process_group"] if holder else None
    if isinstance(group, int):
        try:
            os.killpg(group, signal.SIGKILL)
        except ProcessLookupError:
            return


def _explain_busy(holder: dict[str, int | str | None] | None, path: Path) -> UserError:
    who = f"run {holder['run_id']}, process {holder['runner_pid']}" if holder else "another run"
    return UserError(
        f"{path}: {who} measures on this machine, and two at once would falsify both; wait for it or stop it"
    )
