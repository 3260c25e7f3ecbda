"""`python -m bench`: measures the cell that its environment variables order and delivers the Result.

The exit code (bench.exit_codes) says whether there is a record, and whether another try is worthwhile.
"""

import os
import sys
import time
import traceback

from bench.attempt import Attempt
from bench.delivery import Delivery
from bench.errors import UserError
from bench.exit_codes import EXIT_INTERNAL_ERROR, EXIT_TRY_AGAIN, EXIT_USER_ERROR
from bench.interruption import Interruption
from bench.order import Order
from bench.parent import die_with_parent
from bench.preflight import DeviceInUseError, check_place
from bench.schema import Result
from bench.store import Store, StoreUnreachable, interrupted_key

START_PATIENCE_SECONDS = 60.0
"""How long to wait for a store that cannot be reached, before anything is measured."""
DELIVERY_SECONDS = 120.0
"""How long to try to deliver the record where the order sets no time limit."""


def main() -> int:
    """Carry out the order and return the exit code."""
    start = time.monotonic()
    try:
        order = Order.from_variables(os.environ)
        store = Store.open(order.store_url)
        if order.parent_pid is not None:
            die_with_parent(order.parent_pid)
            store.check_writable()
        else:
            check_place(order)
            _await_store(store, start + START_PATIENCE_SECONDS)
    except (StoreUnreachable, DeviceInUseError) as error:
        return _report(error, EXIT_TRY_AGAIN)
    except UserError as error:
        return _report(error, EXIT_USER_ERROR)
    result, delivery = _measure(order, store)
    if result.error is not None:
        print(f"{result.status}: {result.error.message}", file=sys.stderr)
    deadline = None if order.timeout_seconds is None else start + order.timeout_seconds
    return delivery.deliver(result, deadline=max(deadline or 0.0, time.monotonic() + DELIVERY_SECONDS))


def _measure(order: Order, store: Store) -> tuple[Result, Delivery]:
    attempt, delivery = Attempt(order), Delivery(store=store)
    if order.parent_pid is None:  # in a container; elsewhere the parent handles the time limit and signals
        interrupted = Delivery(
            store=store,
            find_key=lambda result: interrupted_key(result.run_id, result.cell_id, result.repeat, result.attempt),
        )
        Interruption(
            attempt=attempt, terminal=delivery, interrupted=interrupted, timeout_seconds=order.timeout_seconds
        ).watch()
    return attempt.run(), delivery


def _await_store(store: Store, deadline: float) -> None:
    """Return when the store accepts an object; raise StoreUnreachable where it could not be reached by the deadline."""
    while True:  # each call retries for a while by itself
        try:
            return store.check_writable()
        except StoreUnreachable as error:
            if time.monotonic() > deadline:
                raise
            print(f"waiting for the store: {error}", file=sys.stderr, flush=True)


def _report(error: UserError, exit_code: int) -> int:
    print(f"error: {error}", file=sys.stderr)
    return exit_code


if __name__ == "__main__":
    try:
        exit_code = main()
    except BaseException:  # noqa: BLE001  (Python's own exit code would be 1, which says that there is a record)
        traceback.print_exc()
        exit_code = EXIT_INTERNAL_ERROR
    sys.stdout.flush()
    sys.stderr.flush()
    # Not sys.exit: the record is written, and a native thread that meets a dying interpreter would abort the process.
    os._exit(exit_code)
