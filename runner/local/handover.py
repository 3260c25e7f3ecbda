"""Where measuring processes leave their records while results are signed: a folder that only this user can read.

The key stays with the runner: frameworks and what they load never see it, and their environments need no library for
it. Whoever may write to the store cannot change a record before it is signed, nor what tenants tell each other.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from bench.store import Store
from runner.signing import is_signing


@contextmanager
def open_handover(store: Store) -> Iterator[Store]:
    """Yield where processes leave their records: a folder of its own if the store signs, else the store itself."""
    if not is_signing(store):
        yield store
        return
    with tempfile.TemporaryDirectory(prefix="benchmatrix-", ignore_cleanup_errors=True) as folder:
        yield Store.open(f"file://{folder}")
