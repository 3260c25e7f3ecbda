"""Reads which repeats of a run have a record in the store, and which of the records are ok, not ok or damaged.

A damaged record (cut, empty, not of this version, or another's than its key says) counts as none, as in the report.
One that `benchmatrix clean` removed counts as what it was.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from bench.raw_removals import index_removed_results, read_raw_removals
from bench.schema import InvalidDocumentError, RemovedResult, Run, read_result
from bench.store import ResultKey, Store, parse_result_key, results_prefix

RepeatKey = tuple[str, int]
"""Id of a cell and number of its repeat."""
Condition = Literal["ok", "not-ok", "damaged"]


@dataclass(frozen=True, kw_only=True)
class RecordSnapshot:
    """The repeats of a run with records in the store, as of one reading."""

    ok: frozenset[RepeatKey]
    """Repeats with a record whose status is ok."""
    ended: frozenset[RepeatKey]
    """Repeats with a readable record of any status."""
    num_records: Counter[RepeatKey]
    """How many records each repeat has, damaged ones included."""
    damaged: tuple[str, ...]
    """Keys of damaged records, sorted."""
    seconds: Mapping[RepeatKey, float] = field(default_factory=dict)
    """How long the attempts of the readable records took, by repeat."""


@dataclass(kw_only=True)
class Records:
    """Reads the records of a run, each only once: a record is written once, under a key of its own."""

    store: Store
    run_id: str
    _conditions: dict[str, Condition] = field(default_factory=dict, repr=False)
    _seconds: dict[str, float] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, store: Store, run: Run) -> "Records":
        """Return the records of a run, none of them read yet."""
        return cls(store=store, run_id=run.run_id)

    def read_snapshot(self) -> RecordSnapshot:
        """List the store, read what is new there, many records at a time, and return what the store has now."""
        keys = self._list_keys()
        for key, result in self._read_removed().items():  # whether or not it is deleted already
            keys[key] = _require_parts(key)
            self._conditions[key] = "ok" if result.status == "ok" else "not-ok"
            self._seconds[key] = result.attempt_seconds
        # A damaged record is read again: it may have been replaced since.
        new = [key for key in keys if self._conditions.get(key, "damaged") == "damaged"]
        for key in new:  # gone since it was listed: it counts as one that cannot be read, and is looked for again
            self._conditions[key], self._seconds[key] = "damaged", 0.0
        for key, data in self.store.get_listed(new):
            if isinstance(data, bytes):
                self._conditions[key], self._seconds[key] = _classify(data, keys[key])
        by_condition: dict[Condition, set[RepeatKey]] = {"ok": set(), "not-ok": set(), "damaged": set()}
        seconds: defaultdict[RepeatKey, float] = defaultdict(float)
        for key, parts in keys.items():
            by_condition[self._conditions[key]].add((parts.cell_id, parts.repeat))
            seconds[parts.cell_id, parts.repeat] += self._seconds[key]
        return RecordSnapshot(
            ok=frozenset(by_condition["ok"]),
            ended=frozenset(by_condition["ok"] | by_condition["not-ok"]),
            num_records=Counter((parts.cell_id, parts.repeat) for parts in keys.values()),
            damaged=tuple(sorted(key for key in keys if self._conditions[key] == "damaged")),
            seconds=seconds,
        )

    def count_by_key(self) -> Counter[RepeatKey]:
        """Return how many records each repeat has, damaged ones included, without reading any."""
        keys = self._list_keys().keys() | self._read_removed().keys()
        return Counter((parts.cell_id, parts.repeat) for parts in map(_require_parts, keys))

    def _list_keys(self) -> dict[str, ResultKey]:
        found = ((key, parse_result_key(key)) for key in self.store.list_keys(results_prefix(self.run_id)))
        return {key: parts for key, parts in found if parts is not None}

    def _read_removed(self) -> dict[str, RemovedResult]:
        return index_removed_results(read_raw_removals(self.store, self.run_id))


def _require_parts(key: str) -> ResultKey:
    """Return the parts of the key of a result."""
    parts = parse_result_key(key)
    assert parts is not None, f"{key} is no key of a result"
    return parts


def _classify(data: bytes, key: ResultKey) -> tuple[Condition, float]:
    """Return the condition of a record, and how many seconds its attempt took: 0 where it is damaged."""
    try:
        result = read_result(data)
    except InvalidDocumentError:
        return "damaged", 0.0
    if (result.run_id, result.cell_id, result.repeat, result.attempt) != (
        key.run_id,
        key.cell_id,
        key.repeat,
        key.attempt,
    ):
        return "damaged", 0.0
    seconds = (result.finished_at - result.started_at).total_seconds()
    return ("ok" if result.status == "ok" else "not-ok"), seconds
