"""Provide a folder that only this user can read, where records lie until this process has signed them.

The key stays with the runner: frameworks and what they load never see it, and their environments need no library for
it. Whoever may write to the store cannot change a record before it is signed, nor what tenants tell each other.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from bench.store import Store
from runner.signing import is_signing


@contextmanager
def open_handover(store: Store) -> Iterator[Store | None]:
    """Yield the folder where processes leave their records if the store signs; None: they write into the store."""
    if not is_signing(store):
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="benchmatrix-", ignore_cleanup_errors=True) as folder:
        yield Store.open(f"file://{folder}")
