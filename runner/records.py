"""Reads which repeats of a run have a record in the store, and which of the records are ok, not ok or damaged.

A damaged record (cut, empty, not of this version, another's than its key says) counts as none, as in the report.
One that `benchmatrix clean` removed counts as what it was.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from bench.schema import InvalidDocumentError, RemovedResult, Result, Run, Status, measure_attempt, read_result
from bench.store import ResultKey, Store, parse_result_key, raw_removals_prefix, results_prefix
from bench.store.documents import index_removed_results, read_raw_removals

RepeatKey = tuple[str, int]
"""Id of a cell and number of its repeat."""
Condition = Literal["ok", "contaminated", "not-ok", "damaged"]
"""Of a record; `contaminated`: it is ok, and others disturbed the measurement."""


@dataclass(frozen=True, kw_only=True)
class Retries:
    """Which of the repeats that have a record are measured again, as further attempts of the same run."""

    failed: bool = False
    """Those without a record that says ok."""
    contaminated: bool = False
    """Those that others disturbed in every attempt that ended ok."""


NO_RETRIES = Retries()


@dataclass(frozen=True, kw_only=True)
class RecordSnapshot:
    """The repeats of a run with records in the store, as of one reading."""

    ok: frozenset[RepeatKey]
    """Repeats with a record whose status is ok."""
    ended: frozenset[RepeatKey]
    """Repeats with a readable record of any status."""
    contaminated: frozenset[RepeatKey] = frozenset()
    """Those of `ok` that others disturbed in every record that says ok, whatever graver verdict it has."""
    num_records: Counter[RepeatKey]
    """How many records each repeat has, damaged ones included."""
    damaged: tuple[str, ...]
    """Keys of damaged records, sorted."""
    seconds: Mapping[RepeatKey, float] = field(default_factory=dict)
    """How long the attempts of the readable records took, by repeat; nothing of those of which it is not known."""

    def find_present(self, retries: Retries) -> frozenset[RepeatKey]:
        """Return the repeats that need no further attempt."""
        present = self.ok if retries.failed else self.ended
        return present - self.contaminated if retries.contaminated else present


@dataclass(kw_only=True)
class Records:
    """Reads the records of a run, each only once: a record is written once, under a key of its own."""

    store: Store
    run_id: str
    _seconds: dict[str, float] = field(default_factory=dict, repr=False)
    """By key, of the records that were read; a run may have 100,000."""
    _conditions: dict[str, Condition] = field(default_factory=dict, repr=False)
    """By key, of those that are not ok, or contaminated."""

    @classmethod
    def of(cls, store: Store, run: Run) -> "Records":
        """Return the records of a run, none of them read yet."""
        return cls(store=store, run_id=run.run_id)

    def read_snapshot(self) -> RecordSnapshot:
        """Read the records that were not read yet, and return which repeats have a record now and how each ended."""
        keys = self._list_keys()
        for key, result in self._read_removed().items():  # whether or not it is deleted already
            keys[key] = _find_repeat(key)
            self._note(key, _find_condition(result.status, _was_contaminated(result)), result.attempt_seconds)
        # A damaged record is read again: it may have been replaced since.
        new = [key for key in keys if key not in self._seconds or self._conditions.get(key) == "damaged"]
        for key in new:  # gone since it was listed: it counts as one that cannot be read, and is looked for again
            self._note(key, "damaged", 0.0)
        self._read(new)
        # Once more, before a repeat is measured again: the answer may have been another object's.
        self._read([key for key in new if self._conditions.get(key) == "damaged"])
        not_ok, disturbed = (self._find_repeats(keys, condition) for condition in ("not-ok", "contaminated"))
        sound = frozenset(repeat for key, repeat in keys.items() if key not in self._conditions)
        ok = sound | disturbed if disturbed else sound
        seconds: defaultdict[RepeatKey, float] = defaultdict(float)
        for key, repeat in keys.items():
            seconds[repeat] += self._seconds[key]
        return RecordSnapshot(
            ok=ok,
            ended=ok | not_ok if not_ok else ok,  # a set of 100,000 repeats takes 4 MB
            num_records=Counter(keys.values()),
            contaminated=disturbed - sound,
            damaged=tuple(sorted(key for key in keys if self._conditions.get(key) == "damaged")),
            seconds=seconds,
        )

    def _find_repeats(self, keys: Mapping[str, RepeatKey], condition: str) -> frozenset[RepeatKey]:
        """Return the repeats that have a record of this condition among `keys`."""
        return frozenset(keys[key] for key, found in self._conditions.items() if found == condition and key in keys)

    def _read(self, keys: Sequence[str]) -> None:
        for key, data in self.store.get_listed(keys):
            if isinstance(data, bytes):
                self._note(key, *_classify(_parse(data, _require_parts(key))))

    def count_by_key(self) -> Counter[RepeatKey]:
        """Return how many records each repeat has, damaged ones included, without reading any."""
        keys = self._list_keys().keys() | self._read_removed().keys()
        return Counter(map(_find_repeat, keys))

    def _note(self, key: str, condition: Condition, seconds: float) -> None:
        self._seconds[key] = seconds
        if condition == "ok":
            self._conditions.pop(key, None)
        else:
            self._conditions[key] = condition

    def _list_keys(self) -> dict[str, RepeatKey]:
        found = ((key, parse_result_key(key)) for key in self.store.list_keys(results_prefix(self.run_id)))
        return {key: (parts.cell_id, parts.repeat) for key, parts in found if parts is not None}

    def _read_removed(self) -> dict[str, RemovedResult]:
        return index_removed_results(read_raw_removals(self.store, self.run_id))


@dataclass(kw_only=True)
class RemovedKeys:
    """Finds the keys of removed records of a run, and reads the removals again only where there are others than before.

    They can be added while the run goes on, and each may name thousands of records.
    """

    store: Store
    run_id: str
    _seen: frozenset[str] = field(default=frozenset(), repr=False)
    """The keys of the removals that were read."""
    _keys: Mapping[RepeatKey, frozenset[str]] = field(default_factory=dict, repr=False)

    def find(self, repeat: RepeatKey) -> frozenset[str]:
        """Return the keys of a repeat's records that were removed on purpose, also of those not yet deleted."""
        seen = frozenset(self.store.list_keys(raw_removals_prefix(self.run_id)))
        if seen != self._seen:
            found: defaultdict[RepeatKey, set[str]] = defaultdict(set)
            for key in index_removed_results(read_raw_removals(self.store, self.run_id)):
                found[_find_repeat(key)].add(key)
            self._keys = {one: frozenset(keys) for one, keys in found.items()}
            self._seen = seen
        return self._keys.get(repeat, frozenset())


def _require_parts(key: str) -> ResultKey:
    parts = parse_result_key(key)
    assert parts is not None, f"{key} is no key of a result"
    return parts


def _find_repeat(key: str) -> RepeatKey:
    parts = _require_parts(key)
    return parts.cell_id, parts.repeat


def find_fault(result: Result, key: ResultKey) -> str | None:
    """Return why a record counts for nothing that can be read, in one line, or None: it is the one that its key says.

    `key`: of its place in the store.
    """
    if (result.run_id, result.cell_id, result.repeat, result.attempt) != (
        key.run_id,
        key.cell_id,
        key.repeat,
        key.attempt,
    ):
        return f"it is of {result.run_id}/{result.cell_id}, repeat {result.repeat}, attempt {result.attempt}"
    return None


def _parse(data: bytes, key: ResultKey) -> Result | None:
    """Return a record; None where it is damaged, or another than its key says."""
    try:
        result = read_result(data)
    except InvalidDocumentError:
        return None
    return result if find_fault(result, key) is None else None


def _classify(result: Result | None) -> tuple[Condition, float]:
    """Return the condition of a record, and how many seconds its attempt took: 0 where it is damaged."""
    if result is None:
        return "damaged", 0.0
    seconds = measure_attempt(result.started_at, result.finished_at) or 0.0
    return _find_condition(result.status, result.validity is not None and result.validity.is_contaminated), seconds


def _was_contaminated(removed: RemovedResult) -> bool:
    """Return whether a removed record says that others disturbed it; of older versions only the verdict is known."""
    return removed.verdict == "contaminated" if removed.is_contaminated is None else removed.is_contaminated


def _find_condition(status: Status, is_contaminated: bool) -> Condition:
    if status != "ok":
        return "not-ok"
    return "contaminated" if is_contaminated else "ok"
