"""Read what the store has of changes over a matrix's nights: suspicions, their decisions, and sent notices."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from bench.schema import (
    AlarmedChange,
    Decision,
    InvalidDocumentError,
    Notice,
    Shift,
    Suspicion,
    read_decision,
    read_notice,
    read_suspicion,
)
from bench.store import Store, UnreadableObject, changes_prefix, parse_change_key
from collector.results.stored_tables import SkippedDocument


def name_changed(change: Suspicion | AlarmedChange) -> str:
    """Return the cell that changed, or how many on which hardware, and what of them, unless it is the step time."""
    name = change.cell_ids[0] if change.num_cells == 1 else f"{change.num_cells} cells on {change.hardware}"
    return name if change.metric == "step-time" else f"{name}, cold start"


@dataclass(frozen=True, kw_only=True)
class RecordedChange:
    """A suspected change and what became of it."""

    suspicion: Suspicion
    decision: Decision | None = None
    channels: frozenset[str] = frozenset()
    """Where it was announced."""

    @property
    def shift(self) -> Shift:
        """The change as it was decided, or as it was suspected where no decision has one."""
        return (self.decision and self.decision.shift) or self.suspicion.shift

    @property
    def state(self) -> Literal["pending", "confirmed", "dismissed", "undecided"]:
        return "pending" if self.decision is None else self.decision.outcome

    @property
    def is_regression(self) -> bool:
        return self.state == "confirmed" and self.suspicion.direction == "slower"


@dataclass(frozen=True, kw_only=True)
class ChangeHistory:
    """All changes that the store has of a matrix, the oldest first."""

    changes: tuple[RecordedChange, ...] = ()
    skipped: tuple[SkippedDocument, ...] = ()
    """Documents that cannot be read, or are of another change than their key says."""

    def of_night(self, run_id: str) -> list[RecordedChange]:
        return [change for change in self.changes if change.suspicion.night_run_id == run_id]


def read_history(store: Store, matrix: str) -> ChangeHistory:
    """Return what the store has of a matrix's changes; raise StoreError if it cannot be used.

    A decision or notice without its suspicion is left out: the suspicion is written first.
    """
    suspicions: dict[str, Suspicion] = {}
    decisions: dict[str, Decision] = {}
    channels: dict[str, set[str]] = {}
    skipped = []
    for key, data in store.get_listed(sorted(store.list_keys(changes_prefix(matrix)))):
        try:
            document = _read(key, data)
        except InvalidDocumentError as error:
            skipped.append(SkippedDocument(key=key, reason=str(error)))
            continue
        if isinstance(document, Suspicion):
            suspicions[document.change_id] = document
        elif isinstance(document, Decision):
            decisions[document.change_id] = document
        else:
            channels.setdefault(document.change_id, set()).add(document.channel)
    changes = [
        RecordedChange(
            suspicion=suspicion, decision=decisions.get(change_id), channels=frozenset(channels.get(change_id, ()))
        )
        for change_id, suspicion in suspicions.items()
    ]
    changes.sort(key=lambda change: (change.suspicion.seen_at, change.suspicion.change_id))
    return ChangeHistory(changes=tuple(changes), skipped=tuple(sorted(skipped, key=lambda document: document.key)))


READERS: Mapping[str, Callable[[bytes], Suspicion | Decision | Notice]] = {
    "suspicion": read_suspicion,
    "decision": read_decision,
    "notices": read_notice,
}


def _read(key: str, data: bytes | UnreadableObject) -> Suspicion | Decision | Notice:
    if isinstance(data, UnreadableObject):
        raise InvalidDocumentError(str(data))
    change_id, name = parse_change_key(key) or ("", "")
    if (read := READERS.get(name.partition("/")[0])) is None:
        raise InvalidDocumentError("the key is not one of a change")
    document = read(data)
    if document.change_id != change_id:
        raise InvalidDocumentError(f"change_id is '{document.change_id}' inside, '{change_id}' in its key")
    return document
