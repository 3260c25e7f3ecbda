"""Run NVIDIA's Multi-Process Service for the tenants of one repeat: a daemon of its own, ended after it.

What is used of it is documented in https://docs.nvidia.com/deploy/mps/ (read 2026-11-22): `nvidia-cuda-mps-control -d`
starts the control daemon, which starts a server for its first client; clients find it by CUDA_MPS_PIPE_DIRECTORY; it
leaves its process id in the file nvidia-cuda-mps-control.pid there; the command `quit` on its standard input ends both.
No root is needed where daemon and clients are one user's.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from runner.exhaustion import explain_exhaustion
from runner.local.process import ProcessNotStarted

PROGRAM = "nvidia-cuda-mps-control"
START_SECONDS = 30.0
"""For the daemon to say that it listens, and to end when it is told to."""
POLL_SECONDS = 0.05


def explain_missing_mps() -> str | None:
    """Return why MPS cannot be started on this machine; None where its program is there."""
    if shutil.which(PROGRAM) is None:
        return f"sharing 'mps' needs NVIDIA's {PROGRAM}, which is not on the PATH; it comes with the driver"
    return None


@contextmanager
def run_mps(device: str | None, *, keep_open: Sequence[int] = ()) -> Iterator[dict[str, str]]:
    """Run an MPS daemon of its own for the GPU with the UUID `device`; yield the variables of its clients.

    None: for all GPUs. The daemon inherits the descriptors `keep_open` and this process's environment. Raise
    ProcessNotStarted where it does not start.
    """
    # Below /tmp whatever TMPDIR says: the path of a socket has 107 characters at the most (unix(7)).
    folder = Path(tempfile.mkdtemp(prefix="benchmatrix-mps-", dir="/tmp"))
    client = {"CUDA_MPS_PIPE_DIRECTORY": str(folder), "CUDA_MPS_LOG_DIRECTORY": str(folder)}
    # By UUID: the server renumbers the GPUs that it is shown, so that an index would mean another one to its clients.
    shown = {} if device is None else {"CUDA_VISIBLE_DEVICES": device}
    variables = {**os.environ, **client, **shown}
    try:
        _start(variables, folder, keep_open)
        yield client
    finally:
        _end(variables, folder)
        shutil.rmtree(folder, ignore_errors=True)


def _start(variables: dict[str, str], folder: Path, keep_open: Sequence[int]) -> None:
    output = folder / "output"
    with output.open("wb") as file:  # a pipe would stay open as long as the daemon
        try:
            code = subprocess.run(
                [PROGRAM, "-d"],
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                timeout=START_SECONDS,
                start_new_session=True,
                pass_fds=keep_open,
                check=False,
            ).returncode
        except (OSError, subprocess.TimeoutExpired) as error:
            if explain_exhaustion(error):  # as in runner.local.process
                raise
            raise ProcessNotStarted(f"{PROGRAM} -d: {error}") from error
    if code:
        raise ProcessNotStarted(f"{PROGRAM} -d ended with exit code {code}: {_read_last_line(folder, output)}")


def _end(variables: dict[str, str], folder: Path) -> None:
    """End the daemon with its servers; kill them where they do not end."""
    pids = _list_daemons(folder)
    with suppress(OSError, subprocess.SubprocessError):
        subprocess.run(
            [PROGRAM],
            env=variables,
            input=b"quit\n",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=START_SECONDS,
            check=False,
        )
    deadline = time.monotonic() + START_SECONDS
    while any(_is_daemon(pid, folder) for pid in pids) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    for pid in pids:
        _kill_daemon(pid, folder)


def _list_daemons(folder: Path) -> list[int]:
    """Return the processes of MPS that were started with this folder: the control daemon and its servers."""
    return [int(entry) for entry in os.listdir("/proc") if entry.isdecimal() and _is_daemon(int(entry), folder)]


def _is_daemon(pid: int, folder: Path) -> bool:
    try:
        name = Path(f"/proc/{pid}/comm").read_text(errors="replace")
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:  # it has ended, or is another user's
        return False
    return name.startswith("nvidia-cuda-mps") and f"CUDA_MPS_PIPE_DIRECTORY={folder}".encode() in variables


def _kill_daemon(pid: int, folder: Path) -> None:
    with suppress(OSError):  # it has ended
        process = os.pidfd_open(pid)
        try:
            if _is_daemon(pid, folder):
                signal.pidfd_send_signal(process, signal.SIGKILL)
        finally:
            os.close(process)


def _read_last_line(folder: Path, output: Path) -> str:
    """Return the last line that the daemon wrote, to its output or to its log."""
    for file in (output, folder / "control.log"):
        with suppress(OSError):
            lines = file.read_text(errors="replace").strip().splitlines()
            if lines:
                return lines[-1]
    return "it gives no reason"
