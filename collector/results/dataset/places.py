"""Choose where parts are written: into the store, else into this user's cache folder, else nowhere.

Where signatures are checked neither is trusted, as others may have written there: all is read anew, into a folder that
is this process's alone.
"""

import functools
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pyarrow as pa

from bench.schema import hash_text
from bench.store import Store, StoreError
from collector.results.dataset.parts import PartContent, hold_part, write_part

_NOT_THERE_EITHER = "nor can they be written there: the next command reads the results anew"
_NO_HOME = (
    "the tables cannot be written there, and without a home folder (HOME) nowhere else: the next command reads the "
    "results anew"
)


class Places:
    """The stores that hold parts of one store's data set; those that could not be written are not tried again."""

    def __init__(self, store: Store) -> None:
        folder = _find_cache_folder(store)
        self.stores = [store]
        """Where parts are looked for."""
        self.notices: list[str] = []
        """What to tell the user, one line each."""
        self._writable: list[Callable[[], Store]] = [lambda: store]
        self._explanations = [_NOT_THERE_EITHER]
        if store.checks_signatures:
            self.stores, self._writable = [], [functools.cache(_open_private_folder)]
        elif folder is None:
            self._explanations = [_NO_HOME]
        else:
            self.stores += [Store.open(f"file://{folder}")] if os.path.isdir(folder) else []
            self._writable.append(lambda: Store.open(f"file://{folder}"))
            self._explanations.insert(0, f"the tables cannot be written there and are kept in {folder}")

    def write(
        self, table: str, run_id: str, tables: Mapping[str, pa.Table], replaces: Iterable[str] = ()
    ) -> PartContent:
        """Write a batch to the first place that takes it; one that no place takes is held in memory."""
        while self._writable:
            try:
                return write_part(self._writable[0](), table, run_id, tables, replaces)
            except StoreError as error:
                self._writable.pop(0)
                self.notices.append(f"{error}; {self._explanations.pop(0)}")
        return hold_part(table, run_id, tables)


def _open_private_folder() -> Store:
    """Return a store in a new folder, which is deleted when nothing refers to the store any more."""
    try:
        folder = tempfile.mkdtemp(prefix="benchmatrix-")
    except OSError as error:
        place = tempfile.tempdir or "any of the folders for temporary files (TMPDIR, /tmp)"
        raise StoreError(f"a folder for tables cannot be made in {place}: {error.strerror}") from None
    store = Store.open(f"file://{folder}")
    weakref.finalize(store, shutil.rmtree, folder, ignore_errors=True)
    return store


def _find_cache_folder(store: Store) -> Path | None:
    """Return where this user's tables of a store are; None without a HOME and for a user whom the system does not know.

    `~` would be a folder of that name then, in the current one.
    """
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    base = named if named.is_absolute() else Path(os.path.expanduser("~/.cache"))
    if not base.is_absolute():
        return None
    return base / "benchmatrix" / "tables" / hash_text(f"{store.backend.place} {store.url}")
