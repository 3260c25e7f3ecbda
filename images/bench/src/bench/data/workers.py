"""Ends the worker processes of a pipeline with the measuring process."""

import os
import threading
import time
from multiprocessing import parent_process
from multiprocessing.connection import wait

# For a worker that is not between two samples but waits for room in its queue, or decodes one large image.
GRACE_SECONDS = 1.0

_parent_has_ended = threading.Event()


def end_with_parent(*_: int) -> None:
    """End this worker when its parent ends, however that ends; called in the worker, with its number.

    PyTorch's own workers notice it up to 5 s later, Grain's never: they would take CPU time from the next repeat.
    """
    threading.Thread(target=_wait_for_parent, name="end-with-parent", daemon=True).start()


def leave_if_orphaned() -> None:
    """End this worker if its parent has ended; called before each sample.

    Here and not at any moment: a worker that ends while it makes a block of shared memory, before the block is
    registered for removal, leaves it behind for good.
    """
    if _parent_has_ended.is_set():
        os._exit(1)


def _wait_for_parent() -> None:
    parent = parent_process()
    assert parent is not None
    wait([parent.sentinel])
    _parent_has_ended.set()
    time.sleep(GRACE_SECONDS)
    os._exit(1)
