"""Ends a measurement on SIGTERM or at its time limit, and delivers what was measured so far within the grace period."""

import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from bench.exit_codes import EXIT_PREEMPTED
from bench.schema import Failure, Result
from bench.worker.attempt import Attempt
from bench.worker.delivery import Delivery
from bench.worker.sigterm import SigtermListener

GRACE_SECONDS = 60.0
"""Time between SIGTERM and SIGKILL where the order does not say it: a profile's termination_grace_period_seconds."""
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
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    """Held by the first that ends the process, and never released."""

    def watch(self, listener: SigtermListener) -> None:
        """End the process on SIGTERM, which `listener` listens for, and at the time limit."""
        listener.on_sigterm = self._end_by_signal
        if self.timeout_seconds is not None:
            timer = threading.Timer(self.timeout_seconds, self._end_by_timeout)
            timer.daemon = True
            timer.start()

    def _end_by_timeout(self) -> None:
        if self.attempt.result is not None:  # its delivery has a deadline of its own
            return
        self._lock.acquire()
        message = f"still running after timeout_seconds = {self.timeout_seconds:g}"
        result = self.attempt.cut_short("timeout", Failure(kind="timeout", message=message))
        self.end(self._deliver(self.terminal, result))

    def _end_by_signal(self) -> None:
        self._lock.acquire()
        if self.attempt.result is not None:  # measured to the end, and on its way into the store
            self.end(self._deliver(self.terminal, self.attempt.result))
        message = "ended by SIGTERM while it was measured: a drain, a preemption, or the pod was deleted"
        result = self.attempt.cut_short("preempted", Failure(kind="preempted", message=message, signal="SIGTERM"))
        self._deliver(self.interrupted, result)
        self.end(EXIT_PREEMPTED)

    def _deliver(self, delivery: Delivery, result: Result) -> int:
        print(f"{result.status}: {result.error.message if result.error else ''}", file=sys.stderr, flush=True)
        return delivery.deliver(result, deadline=time.monotonic() + self.grace_seconds - MARGIN_SECONDS)
