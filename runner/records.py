"""A run in, what the store holds of its repeats out: which records are ok, which are not, and which are damaged.

A damaged record (cut, empty, not of this version, or another's than its key says) counts as none, as in the report.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from bench.schema import InvalidDocumentError, Run, read_result
from bench.store import ResultKey, Store, parse_result_key, results_prefix

RepeatKey = tuple[str, int]
"""Id of a cell and number of its repeat."""
Condition = Literal["ok", "not-ok", "damaged"]


@dataclass(frozen=True, kw_only=True)
class Look:
    """What the store held at one time."""

    ok: frozenset[RepeatKey]
    """With a record that says ok."""
    ended: frozenset[RepeatKey]
    """With a record that can be read, whatever it says."""
    num_records: Counter[RepeatKey]
    """Records, damaged ones included."""
    damaged: tuple[str, ...]
    """Keys of damaged records, sorted."""


@dataclass(kw_only=True)
class Records:
    """The records of a run. What was read once is not read again: a record is written once, under a key of its own."""

    store: Store
    run_id: str
    _conditions: dict[str, Condition] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, store: Store, run: Run) -> "Records":
        """Return the records of a run, none of them read yet."""
        return cls(store=store, run_id=run.run_id)

    def look(self) -> Look:
        """List the store, read what is new there, many at a time, and return what there is."""
        keys = self._list_keys()
        new = [key for key in keys if self._conditions.get(key, "damaged") == "damaged"]  # perhaps mended meanwhile
        for key, data in self.store.get_many(new):
            self._conditions[key] = _judge(data, keys[key])
        by_condition: dict[Condition, set[RepeatKey]] = {"ok": set(), "not-ok": set(), "damaged": set()}
        for key, parts in keys.items():
            by_condition[self._conditions[key]].add((parts.cell_id, parts.repeat))
        return Look(
            ok=frozenset(by_condition["ok"]),
            ended=frozenset(by_condition["ok"] | by_condition["not-ok"]),
            num_records=Counter((parts.cell_id, parts.repeat) for parts in keys.values()),
            damaged=tuple(sorted(key for key in keys if self._conditions[key] == "damaged")),
        )

    def count_by_key(self) -> Counter[RepeatKey]:
        """Return how many records each repeat has, damaged ones included, without reading any."""
        return Counter((parts.cell_id, parts.repeat) for parts in self._list_keys().values())

    def _list_keys(self) -> dict[str, ResultKey]:
        found = ((key, parse_result_key(key)) for key in self.store.list_keys(results_prefix(self.run_id)))
        return {key: parts for key, parts in found if parts is not None}


def _judge(data: bytes, key: ResultKey) -> Condition:
    try:
        result = read_result(data)
    except InvalidDocumentError:
        return "damaged"
    if (result.run_id, result.cell_id, result.repeat, result.attempt) != (
        key.run_id,
        key.cell_id,
        key.repeat,
        key.attempt,
    ):
        return "damaged"
    return "ok" if result.status == "ok" else "not-ok"
