"""Ends the measuring process when the runner that started it dies, so that no orphan goes on measuring."""

import ctypes
import os
import signal

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def die_with_parent(parent_pid: int) -> None:
    """Ask the kernel to kill this process when the process `parent_pid` dies, even by SIGKILL."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # The runner died before the call above. Another parent alone proves nothing: it can be a script given as --python.
    if os.getppid() != parent_pid and not os.path.exists(f"/proc/{parent_pid}"):
        os.kill(os.getpid(), signal.SIGKILL)
