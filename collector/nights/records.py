"""Read what the store has of changes over a matrix's nights: suspicions, their decisions, and sent notices."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from bench.schema import (
    Decision,
    InvalidDocumentError,
    Notice,
    Suspicion,
    read_decision,
    read_notice,
    read_suspicion,
)
from bench.store import Store, UnreadableObject, changes_prefix, parse_change_key
from collector.results.collection import SkippedDocument

DocumentT = TypeVar("DocumentT", Suspicion, Decision, Notice)


@dataclass(frozen=True, kw_only=True)
class RecordedChange:
    """A suspected change and what became of it."""

    suspicion: Suspicion
    decision: Decision | None = None
    channels: frozenset[str] = frozenset()
    """Where it was announced."""

    @property
    def is_pending(self) -> bool:
        """Return whether no decision was made about the change yet."""
        return self.decision is None

    @property
    def is_confirmed(self) -> bool:
        """Return whether it was decided that the change is real."""
        return self.decision is not None and self.decision.outcome == "confirmed"

    @property
    def is_regression(self) -> bool:
        """Return whether it was decided that the cell, or group of cells, became slower."""
        return self.is_confirmed and self.suspicion.direction == "slower"


@dataclass(frozen=True, kw_only=True)
class ChangeHistory:
    """All changes that the store has of a matrix, the oldest first."""

    changes: tuple[RecordedChange, ...] = ()
    skipped: tuple[SkippedDocument, ...] = ()
    """Documents that cannot be read, or are of another change than their key says."""

    def of_night(self, run_id: str) -> list[RecordedChange]:
        """Return the changes that were seen in one run."""
        return [change for change in self.changes if change.suspicion.night_run_id == run_id]


@dataclass(kw_only=True)
class _Documents:
    suspicions: dict[str, Suspicion] = field(default_factory=dict)
    decisions: dict[str, Decision] = field(default_factory=dict)
    channels: dict[str, set[str]] = field(default_factory=dict)
    skipped: list[SkippedDocument] = field(default_factory=list)


def read_history(store: Store, matrix: str) -> ChangeHistory:
    """Return what the store has of a matrix's changes; raise StoreError if it cannot be used.

    A decision or notice without its suspicion is left out: the suspicion is written first.
    """
    documents = _Documents()
    for key, data in store.get_listed(sorted(store.list_keys(changes_prefix(matrix)))):
        _sort_in(documents, key, data)
    changes = [
        RecordedChange(
            suspicion=suspicion,
            decision=documents.decisions.get(change_id),
            channels=frozenset(documents.channels.get(change_id, ())),
        )
        for change_id, suspicion in documents.suspicions.items()
    ]
    changes.sort(key=lambda change: (change.suspicion.seen_at, change.suspicion.change_id))
    return ChangeHistory(
        changes=tuple(changes), skipped=tuple(sorted(documents.skipped, key=lambda document: document.key))
    )


def _sort_in(documents: _Documents, key: str, data: bytes | UnreadableObject) -> None:
    parsed = parse_change_key(key)
    try:
        if isinstance(data, UnreadableObject):
            raise InvalidDocumentError(str(data))
        if parsed is None:
            raise InvalidDocumentError("the key is not one of a change")
        change_id, name = parsed
        if name == "suspicion":
            documents.suspicions[change_id] = _check(read_suspicion, data, change_id)
        elif name == "decision":
            documents.decisions[change_id] = _check(read_decision, data, change_id)
        elif name.startswith("notices/"):
            notice = _check(read_notice, data, change_id)
            documents.channels.setdefault(change_id, set()).add(notice.channel)
        else:
            raise InvalidDocumentError("the key is not one of a change")
    except InvalidDocumentError as error:
        documents.skipped.append(SkippedDocument(key=key, reason=str(error)))


def _check(read: Callable[[bytes], DocumentT], data: bytes, change_id: str) -> DocumentT:
    document = read(data)
    if document.change_id != change_id:
        raise InvalidDocumentError(f"change_id is '{document.change_id}' inside, '{change_id}' in its key")
    return document
