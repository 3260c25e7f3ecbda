"""Measures the cell that the environment variables order and delivers the Result: what `python -m bench` does.

The exit code (bench.errors) says whether there is a record, and whether another try is worthwhile. On SIGTERM and
at the time limit, what was measured so far is delivered within the grace period.
"""

import os
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from bench.errors import (
    EXIT_INTERNAL_ERROR,
    EXIT_NODE_FAULT,
    EXIT_NOT_OK,
    EXIT_OK,
    EXIT_PREEMPTED,
    EXIT_TRY_AGAIN,
    EXIT_USER_ERROR,
    NodeFaultError,
    UserError,
)
from bench.schema import Failure, Result
from bench.store import Store, StoreUnreachable, result_key
from bench.tenants.meeting import GroupOverError
from bench.tenants.tenant import Tenant
from bench.worker.attempt import Alone, Attempt
from bench.worker.delivery import deliver, find_spare
from bench.worker.failures import name_node_fault
from bench.worker.preflight import DeviceInUseError
from bench.worker.request import Order
from bench.worker.shutdown import SigtermListener, die_with_parent

GRACE_SECONDS = 60.0
"""Time between SIGTERM and SIGKILL where the order does not say it: a profile's termination_grace_period_seconds."""
MARGIN_SECONDS = 5.0
"""The part of the grace period that is kept for the end of the process."""


@dataclass(frozen=True, kw_only=True)
class Interruption:
    """Watches for SIGTERM and the time limit, and ends the process with a record."""

    attempt: Attempt
    order: Order
    store: Store
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    """Held by the first that ends the process, and never released."""

    def watch(self, listener: SigtermListener) -> None:
        listener.on_sigterm = self._end_by_signal
        if self.order.timeout_seconds is not None:
            timer = threading.Timer(self.order.timeout_seconds, self._end_by_timeout)
            timer.daemon = True
            timer.start()

    def _end_by_timeout(self) -> None:
        if self.attempt.result is not None:  # its delivery has a deadline of its own
            return
        self._lock.acquire()
        message = f"still running after timeout_seconds = {self.order.timeout_seconds:g}"
        os._exit(self._deliver(self.attempt.cut_short("timeout", Failure(kind="timeout", message=message))))

    def _end_by_signal(self) -> None:
        self._lock.acquire()
        if self.attempt.result is not None:  # measured to the end, and on its way into the store
            os._exit(self._deliver(self.attempt.result))
        message = "ended by SIGTERM while it was measured: a drain, a preemption, or the pod was deleted"
        result = self.attempt.cut_short("preempted", Failure(kind="preempted", message=message, signal="SIGTERM"))
        self._deliver(result, is_interrupted=True)
        os._exit(EXIT_PREEMPTED)

    def _deliver(self, result: Result, *, is_interrupted: bool = False) -> int:
        _say(f"{result.status}: {result.error.message if result.error else ''}")
        seconds = (self.order.grace_seconds or GRACE_SECONDS) - MARGIN_SECONDS
        return _deliver(self.attempt.part, self.store, result, seconds, is_interrupted=is_interrupted)


START_PATIENCE_SECONDS = 60.0
"""How long to wait for a store that cannot be reached, before anything is measured."""
DELIVERY_SECONDS = 120.0
"""How long to try to deliver the record where the order sets no time limit."""
EXIT_CODES: Mapping[type[UserError], int] = {
    StoreUnreachable: EXIT_TRY_AGAIN,
    DeviceInUseError: EXIT_TRY_AGAIN,
    GroupOverError: EXIT_TRY_AGAIN,
    NodeFaultError: EXIT_NODE_FAULT,
}
"""How errors end the program that have a code of their own."""


def main(listener: SigtermListener | None) -> int:
    """Carry out the order and return the exit code. `listener`: hears SIGTERM; None outside a container."""
    start = time.monotonic()
    try:
        order = Order.from_variables(os.environ)
        store = Store.open(order.store_url, on_wait=lambda error: _say(f"waiting for the store: {error}"))
        if order.parent_pid is not None:
            die_with_parent(order.parent_pid)
        key = result_key(order.run_id, order.cell.cell_id, order.repeat, order.attempt)
        store.check_writable(key, retry_seconds=0.0 if listener is None else START_PATIENCE_SECONDS)
        part = Alone(order) if order.cell.tenants == 1 else Tenant(order, store)
        part.begin(is_container=listener is not None)
        attempt = Attempt(order, part)
        if listener is not None:  # in a container; elsewhere the parent handles the time limit and signals
            Interruption(attempt=attempt, order=order, store=store).watch(listener)
        result = attempt.run()
        if attempt.is_node_fault and listener is not None:  # elsewhere there is no other machine: it is the record
            assert result.error is not None
            _say(result.error.stderr_tail)
            if order.tenant > 0:
                _deliver(part, store, result, DELIVERY_SECONDS)
            raise name_node_fault(result.error.message)
    except UserError as error:
        _say(f"error: {error}")
        return next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), EXIT_USER_ERROR)
    if result.error is not None:
        _say(f"{result.status}: {result.error.message}")
    left = start + (order.timeout_seconds or 0.0) - time.monotonic()
    spare = None if order.parent_pid is None else find_spare(key)
    exit_code = _deliver(part, store, result, max(left, DELIVERY_SECONDS), spare=spare)
    if exit_code in (EXIT_OK, EXIT_NOT_OK):
        part.end()
    return exit_code


def _deliver(
    part: Alone, store: Store, result: Result, seconds: float, spare: Path | None = None, is_interrupted: bool = False
) -> int:
    """Try for so many seconds to store the record, or log it; return the exit code."""
    key, data = part.encode(result, is_interrupted=is_interrupted)
    return deliver(store, key, data, is_ok=result.status == "ok", deadline=time.monotonic() + seconds, spare=spare)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def run_program(listener: SigtermListener | None) -> NoReturn:
    """Carry out the order and end the process with its exit code; `listener` as of `main`."""
    try:
        exit_code = main(listener)
    except BaseException:  # noqa: BLE001  (Python's own exit code would be 1, which says that there is a record)
        traceback.print_exc()
        exit_code = EXIT_INTERNAL_ERROR
    sys.stdout.flush()
    sys.stderr.flush()
    # Not sys.exit: the record is written, and a native thread that meets a dying interpreter would abort the process.
    os._exit(exit_code)
