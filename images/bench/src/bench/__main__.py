"""`python -m bench`: an Order in environment variables in, one Result in the store out.

Exit codes: 0 the record says ok, 1 the record says why not, 2 the order or the store is wrong and there is no record.
"""

import ctypes
import os
import signal
import sys

from bench.attempt import Attempt
from bench.errors import UserError
from bench.order import Order
from bench.store import Store, result_key

EXIT_OK = 0
EXIT_NOT_OK = 1
EXIT_USER_ERROR = 2

PR_SET_PDEATHSIG = 1  # linux/prctl.h


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


def die_with_parent(parent_pid: int) -> None:
    """Have the kernel kill this process when the runner dies, even by SIGKILL: no orphan may go on measuring."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # Dead before the call above. A parent that is another one alone says nothing: it can be a script given as --python.
    if os.getppid() != parent_pid and not os.path.exists(f"/proc/{parent_pid}"):
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    exit_code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Not sys.exit: the record is written, and a native thread that meets a dying interpreter would abort the process.
    os._exit(exit_code)
