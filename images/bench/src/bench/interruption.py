"""Ends a measurement on SIGTERM or at its time limit, and delivers what was measured so far within the grace period.

A thread of its own does this: the main thread may be deep in a kernel or a compilation when the signal comes. The
signal reaches the thread through a pipe that the interpreter's handler, in C, writes to at once (signal.set_wakeup_fd).
"""

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from bench.attempt import Attempt
from bench.delivery import Delivery
from bench.exit_codes import EXIT_PREEMPTED
from bench.schema import Failure, Result

GRACE_SECONDS = 60.0
"""Time between SIGTERM and SIGKILL: the default of terminationGracePeriodSeconds in a profile."""
MARGIN_SECONDS = 5.0
"""The part of the grace period that is kept for the end of the process."""


@dataclass(frozen=True, kw_only=True)
class Interruption:
    """Watches for SIGTERM and the time limit, and ends the process with a record."""

    attempt: Attempt
    terminal: Delivery
    """Delivers a record that ends the repeat: a complete one, or that of a timeout."""
    interrupted: Delivery
    """Delivers a partial record beside the results: the repeat is measured again."""
    timeout_seconds: float | None
    grace_seconds: float = GRACE_SECONDS
    end: Callable[[int], None] = os._exit

    def watch(self) -> None:
        """Start to watch for SIGTERM and the time limit. Call it in the main thread, where Python sets handlers."""
        readable, writable = os.pipe()
        os.set_blocking(writable, False)
        signal.signal(signal.SIGTERM, lambda number, frame: None)
        signal.set_wakeup_fd(writable)
        # SIGTERM ends a data loader's processes as usual, also one that arrives while they are being forked.
        os.register_at_fork(before=_block_sigterm, after_in_parent=_unblock_sigterm, after_in_child=_restore_sigterm)
        threading.Thread(target=self._wait, args=(readable,), name="interruption", daemon=True).start()

    def _wait(self, readable: int) -> None:
        until = None if self.timeout_seconds is None else time.monotonic() + self.timeout_seconds
        while True:
            seconds = None if until is None else max(0.0, until - time.monotonic())
            ready, _, _ = select.select([readable], [], [], seconds)
            if not ready and self.attempt.result is not None:  # its delivery has a deadline of its own
                until = None
            elif not ready:
                self._end_by_timeout()
            elif signal.SIGTERM in os.read(readable, 1024):
                self._end_by_signal()

    def _end_by_timeout(self) -> None:
        message = f"still running after timeout_seconds = {self.timeout_seconds:g}"
        result = self.attempt.cut_short("timeout", Failure(kind="timeout", message=message))
        self.end(self._deliver(self.terminal, result))

    def _end_by_signal(self) -> None:
        if self.attempt.result is not None:  # measured to the end, and on its way into the store
            self.end(self._deliver(self.terminal, self.attempt.result))
        message = "ended by SIGTERM while it was measured: a drain, a preemption, or the pod was deleted"
        result = self.attempt.cut_short("preempted", Failure(kind="preempted", message=message, signal="SIGTERM"))
        self._deliver(self.interrupted, result)
        self.end(EXIT_PREEMPTED)

    def _deliver(self, delivery: Delivery, result: Result) -> int:
        print(f"{result.status}: {result.error.message if result.error else ''}", file=sys.stderr, flush=True)
        return delivery.deliver(result, deadline=time.monotonic() + self.grace_seconds - MARGIN_SECONDS)


def _restore_sigterm() -> None:
    """Restore SIGTERM's default action in a forked child."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _unblock_sigterm()


def _block_sigterm() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def _unblock_sigterm() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
