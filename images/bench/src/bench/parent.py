"""The life of a measuring process is bound to its parent's: the parent's pid in, death together out."""

import ctypes
import os
import signal

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def die_with_parent(parent_pid: int) -> None:
    """Have the kernel kill this process when the runner dies, even by SIGKILL: no orphan may go on measuring."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # Dead before the call above. A parent that is another one alone says nothing: it can be a script given as --python.
    if os.getppid() != parent_pid and not os.path.exists(f"/proc/{parent_pid}"):
        os.kill(os.getpid(), signal.SIGKILL)
