"""`python -m bench`: an Order in environment variables in, one Result in the store out; see bench.exit_codes."""

import os
import sys

from bench.attempt import Attempt
from bench.errors import UserError
from bench.exit_codes import EXIT_NOT_OK, EXIT_OK, EXIT_USER_ERROR
from bench.order import Order
from bench.parent import die_with_parent
from bench.store import Store, result_key


def main() -> int:
    """Carry out the order and return the exit code."""
    try:
        order = Order.from_variables(os.environ)
        if order.parent_pid is not None:
            die_with_parent(order.parent_pid)
        store = Store.open(order.store_url)
        store.check_writable()  # before the work: a measurement that cannot be kept is not worth its minutes
        result = Attempt(order).run()
        store.put(result_key(order.run_id, result.cell_id, order.repeat, order.attempt), result.to_json())
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_USER_ERROR
    if result.error is not None:
        print(f"{result.status}: {result.error.message}", file=sys.stderr)
        return EXIT_NOT_OK
    return EXIT_OK


if __name__ == "__main__":
    exit_code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Not sys.exit: the record is written, and a native thread that meets a dying interpreter would abort the process.
    os._exit(exit_code)
