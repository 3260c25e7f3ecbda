"""Read the documents of a run that stand beside its results, each of them about one attempt."""

from collections.abc import Callable
from typing import TypeVar

from bench.schema import InvalidDocumentError, NodeFault, Placement
from bench.store import ResultKey, Store
from collector.results.collection import SkippedDocument

AttemptDocument = TypeVar("AttemptDocument", NodeFault, Placement)


def read_attempt_documents(
    store: Store,
    prefix: str,
    parse_key: Callable[[str], ResultKey | None],
    read: Callable[[bytes], AttemptDocument],
    noun: str,
) -> tuple[list[AttemptDocument], list[SkippedDocument]]:
    """Return the documents below a prefix, and those that cannot be read or are of another attempt than their key says.

    `noun` names the kind of document in the reason. StoreError if the store cannot be used.
    """
    found, skipped = [], []
    for key, data in store.get_many(store.list_keys(prefix)):
        try:
            document = read(data)
        except InvalidDocumentError as error:
            skipped.append(SkippedDocument(key=key, reason=str(error)))
            continue
        parts = ResultKey(
            run_id=document.run_id, cell_id=document.cell_id, repeat=document.repeat, attempt=document.attempt
        )
        if parse_key(key) == parts:
            found.append(document)
        else:
            skipped.append(SkippedDocument(key=key, reason=f"the {noun} is of another attempt than its key says"))
    return found, skipped
