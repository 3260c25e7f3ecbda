"""Ends the process: on SIGTERM and Ctrl-C, which it hears from the first moment on, or with the runner that started it.

Imports the standard library alone, to be quick. A thread of its own does this: the main thread may be deep in an
import, a kernel or a compilation when the signal comes. The signal reaches the thread through a pipe that the
interpreter's handler, in C, writes to at once (signal.set_wakeup_fd).
"""

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from signal import SIG_BLOCK, SIG_UNBLOCK

from bench.errors import EXIT_PREEMPTED, EXIT_SIGINT


def end_unmeasured() -> None:
    """End the process: there is nothing to deliver yet, and the cell is measured again in another container."""
    print("preempted: ended by SIGTERM before anything was measured", file=sys.stderr, flush=True)
    os._exit(EXIT_PREEMPTED)


def end_interrupted() -> None:
    """End the process on Ctrl-C, as `docker run -it` passes it on: whoever waits there wants no record and no trace."""
    print("interrupted: ended by Ctrl-C (SIGINT); nothing is recorded", file=sys.stderr, flush=True)
    os._exit(EXIT_SIGINT)


class SigtermListener:
    """Calls `on_sigterm`, which can be replaced at any time, in a thread at SIGTERM. Ctrl-C ends the process."""

    def __init__(self, on_sigterm: Callable[[], None] = end_unmeasured) -> None:
        self.on_sigterm = on_sigterm

    def start(self) -> None:
        """Start to listen. Call it in the main thread, where Python sets handlers, and once in a process."""
        readable, writable = os.pipe()
        os.set_blocking(writable, False)
        signal.signal(signal.SIGTERM, _leave_to_the_thread)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _leave_to_the_thread)
        signal.set_wakeup_fd(writable)
        # SIGTERM ends a data loader's processes as usual, also one that arrives while they are being forked.
        block, unblock = (partial(signal.pthread_sigmask, how, {signal.SIGTERM}) for how in (SIG_BLOCK, SIG_UNBLOCK))
        os.register_at_fork(before=block, after_in_parent=unblock, after_in_child=_restore_sigterm)
        threading.Thread(target=self._listen, args=(readable,), name="sigterm", daemon=True).start()

    def _listen(self, readable: int) -> None:
        while True:
            numbers = os.read(readable, 1024)
            if signal.SIGINT in numbers:
                end_interrupted()
            if signal.SIGTERM in numbers:
                self.on_sigterm()


def _leave_to_the_thread(number: int, frame: object) -> None:
    """Do nothing in the main thread: the signal's number is in the pipe already."""


def _restore_sigterm() -> None:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is _leave_to_the_thread:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(SIG_UNBLOCK, {signal.SIGTERM})


PR_SET_PDEATHSIG = 1  # linux/prctl.h


def die_with_parent(parent_pid: int) -> None:
    """Ask the kernel to kill this process when the process `parent_pid` dies, even by SIGKILL."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # The runner died before the call above. Another parent alone proves nothing: it can be a script given as --python.
    if os.getppid() != parent_pid and not os.path.exists(f"/proc/{parent_pid}"):
        os.kill(os.getpid(), signal.SIGKILL)
