"""The runs of a store and their records: which one is resumed, what is missing in it. All state is in the store."""

import re
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Literal

from rich.console import Console

from bench.errors import TransientError, UserError
from bench.schema import Cluster, InvalidDocumentError, RemovedResult, Run, Status, read_result
from bench.schema import read_run as read_stored_run
from bench.store import (
    KeyMissing,
    ResultKey,
    Store,
    StoreUnreachable,
    UnreadableObject,
    parse_result_key,
    results_prefix,
    run_key,
)
from bench.store.documents import index_removed_results, read_raw_removals, read_runs
from collector.units import count_things
from runner.matrix import TIME_FORMAT, Repeat, RepeatKey, order_repeats, shorten_name
from runner.terminal import warn_on_stderr

CLOCK_TOLERANCE = timedelta(days=1)
"""A run that began later than this from now was stamped by a clock that is wrong."""
MAX_ATTEMPT = timedelta(days=366)
"""An attempt may take a year at the most (`request.Seconds`): a clock that says more was set meanwhile."""
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


@dataclass(frozen=True)
class RecordSnapshot:
    """The records of a run as of one reading."""

    records: Sequence[tuple[str, RepeatKey, Condition, float]]
    """The key of each, its repeat, and how many seconds its attempt took: 0 where that is not known."""

    def _find(self, *conditions: Condition) -> frozenset[RepeatKey]:
        return frozenset(repeat for _, repeat, condition, _ in self.records if condition in conditions)

    def find_present(self, retries: Retries) -> frozenset[RepeatKey]:
        present = self._find("ok", "contaminated") if retries.failed else self._find("ok", "contaminated", "not-ok")
        return present - (self._find("contaminated") - self._find("ok")) if retries.contaminated else present

    @property
    def damaged(self) -> list[str]:
        return sorted(key for key, _, condition, _ in self.records if condition == "damaged")

    @cached_property
    def earlier(self) -> Mapping[RepeatKey, tuple[str, ...]]:
        """By repeat the keys of its records that are not ok, contaminated or damaged: all of one that is missing."""
        found: dict[RepeatKey, tuple[str, ...]] = {}  # a tuple has 48 bytes, a set 216
        for key, repeat, condition, _ in self.records:
            if condition != "ok":
                found[repeat] = (*found.get(repeat, ()), key)
        return found

    @cached_property
    def seconds(self) -> Mapping[RepeatKey, float]:
        """How long the attempts of the readable records took, by repeat."""
        seconds: defaultdict[RepeatKey, float] = defaultdict(float)
        for _, repeat, _, duration in self.records:
            seconds[repeat] += duration
        return seconds


_DAMAGED: tuple[Condition, float] = ("damaged", 0.0)


@dataclass
class Records:
    """Reads the records of a run, each only once: a record is written once, under a key of its own."""

    store: Store
    run_id: str
    _known: dict[str, tuple[Condition, float]] = field(default_factory=dict, repr=False)
    """By key, of the records that were read; a run may have 100,000."""

    def read_snapshot(self) -> RecordSnapshot:
        """Read the records that were not read yet, and return all."""
        keys = self._list_keys()
        for key, removed in self._read_removed().items():  # whether or not it is deleted already
            # Of older versions only the verdict is known.
            is_contaminated, verdict = removed.is_contaminated, removed.verdict
            is_contaminated = verdict == "contaminated" if is_contaminated is None else is_contaminated
            keys[key] = removed.cell_id, removed.repeat
            self._known[key] = _find_condition(removed.status, is_contaminated), removed.attempt_seconds
        # A damaged record is read again: it may have been replaced since. One that is gone since it was listed counts
        # as one.
        new = [key for key in keys if self._known.setdefault(key, _DAMAGED) == _DAMAGED]
        for key, data in self.store.get_listed(new):
            if isinstance(data, bytes):
                self._known[key] = _classify(data, key)
        return RecordSnapshot([(key, repeat, *self._known[key]) for key, repeat in keys.items()])

    def list_repeats(self) -> set[RepeatKey]:
        """Return the repeats that have a record, damaged ones included, without reading any."""
        removed = self._read_removed().values()
        return {*self._list_keys().values(), *((found.cell_id, found.repeat) for found in removed)}

    def _list_keys(self) -> dict[str, RepeatKey]:
        found = ((key, parse_result_key(key)) for key in self.store.list_keys(results_prefix(self.run_id)))
        return {key: (parts.cell_id, parts.repeat) for key, parts in found if parts is not None}

    def _read_removed(self) -> dict[str, RemovedResult]:
        return index_removed_results(read_raw_removals(self.store, self.run_id))


def _classify(data: bytes, key: str) -> tuple[Condition, float]:
    """Return a record's condition and how long its attempt took; damaged: unreadable, or another than its key says."""
    try:
        result = read_result(data)
    except InvalidDocumentError:
        return _DAMAGED
    if ResultKey.of(result) != parse_result_key(key):
        return _DAMAGED
    seconds = measure_attempt(result.started_at, result.finished_at)
    return _find_condition(result.status, result.validity is not None and result.validity.is_contaminated), seconds


def measure_attempt(started_at: datetime, finished_at: datetime) -> float:
    """Return how many seconds an attempt took by its two times; 0 if its clock was set meanwhile: nobody knows then."""
    took = finished_at - started_at
    return took.total_seconds() if took <= MAX_ATTEMPT else 0.0


def find_future_runs(runs: Iterable[Run]) -> dict[str, str]:
    """Return what is wrong of the runs that began in the future, by run id."""
    latest = datetime.now(UTC) + CLOCK_TOLERANCE
    return {
        run.run_id: f"began on {run.created_at:%Y-%m-%d}, which is to come: a clock was or is wrong"
        for run in runs
        if run.created_at > latest
    }


def _find_condition(status: Status, is_contaminated: bool) -> Condition:
    if status != "ok":
        return "not-ok"
    return "contaminated" if is_contaminated else "ok"


# A run left unfinished for longer is not resumed by itself: its repeats were meant to be measured under one sky.
RESUME_WITHIN = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class RunRequest(ABC):
    """Which run of a matrix to measure, and which of its repeats."""

    matrix: str
    store: Store
    run_id: str | None
    start_new: bool
    retries: Retries

    @abstractmethod
    def make_plan(self) -> Run:
        """Return a new run of the matrix."""

    def choose_run(self) -> Run:
        """Return the run to resume (the one that is named, or the plan's newest unfinished one), or else the plan.

        A new one is not stored: it is not known yet whether it can be measured now. UserError where the named run is of
        another plan, or is measured in another namespace.
        """
        store, run_id = self.store, self.run_id
        if run_id is not None:
            check_run_id(run_id)
        plan = self.make_plan()
        if run_id is None:
            return (None if self.start_new else find_unfinished_run(store, plan, self.retries)) or plan
        if not is_stored(store, run_id):
            return plan
        if self.start_new:
            raise UserError(f"--new: there is a run {run_id} already; leave --new out to resume it")
        plan_id, num_repeats, here = plan.plan_id, plan.num_repeats, (plan.cluster, plan.hostname)
        del plan  # 100 MB for 100,000 cells: it goes before as much is read
        found = read_run(store, run_id)
        assert found is not None
        if found.plan_id != plan_id:
            raise UserError(
                f"{self.matrix}: run {run_id} was planned with other cells or repeats ({found.num_repeats} repeats, "
                f"here {num_repeats}); give another --run-id, or none for a new run"
            )
        check_same_place(found, *here)
        return found


def check_run_id(run_id: str) -> None:
    try:
        run_key(run_id)
    except ValueError as error:
        raise UserError(
            f"--run-id {run_id}: it takes up to 63 of a-z, 0-9 and '-', with neither end a '-', such as `mine-1`"
        ) from error


def read_run(store: Store, run_id: str) -> Run | None:
    """Return the run with this id, None if the store has none. UserError if its run.json cannot be read."""
    try:
        return read_stored_run(store.get(run_key(run_id)))
    except KeyMissing:
        return None
    except InvalidDocumentError as error:
        raise UserError(
            f"{store.url}/{run_key(run_id)}: the run cannot be read ({error}); give another --run-id"
        ) from error


def is_stored(store: Store, run_id: str) -> bool:
    """Return whether the store has a run with this id, without reading it: with 100,000 cells it has 62 MB."""
    return store.holds(run_key(run_id))


def check_still_stored(store: Store, run_id: str) -> None:
    """Raise UserError if the plan of a run that is being measured is gone: what follows would count nowhere.

    A directory that was unmounted, moved or deleted is made anew by the next record. A server that does not answer now
    may do so when there is a record to write.
    """
    try:
        is_there = is_stored(store, run_id)
    except StoreUnreachable:
        return
    if not is_there:
        raise UserError(
            f"store {store.url}: {run_key(run_id)} is gone while its run is measured: the store was deleted, moved, or "
            "is no longer mounted; bring it back and give the same command again, which measures what is missing"
        )


def find_unfinished_run(store: Store, plan: Run, retries: Retries = NO_RETRIES) -> Run | None:
    """Return the newest run of the same plan and place that lacks results and was begun within RESUME_WITHIN.

    The place is this machine, or the same cluster, whichever machine it was begun from.
    When a run was begun is read from its id; one with a name that the user gave is not considered. Nor is one that is
    dated in the future: nobody knows how old it is, and what looks for the newest run passes it over.
    """
    name = shorten_name(plan.matrix)
    pattern = re.compile(rf"{re.escape(name)}-\d{{8}}-\d{{6}}-[0-9a-f]{{4}}")
    oldest, newest = (
        f"{name}-{moment:{TIME_FORMAT}}"
        for moment in (plan.created_at - RESUME_WITHIN, plan.created_at + CLOCK_TOLERANCE)
    )
    for run_id in sorted(store.list_run_ids(), reverse=True):
        if not pattern.fullmatch(run_id) or not oldest <= run_id <= f"{newest}-ffff":
            continue
        with suppress(KeyMissing, InvalidDocumentError, UnreadableObject):
            run = read_stored_run(store.get(run_key(run_id)))
            if run.plan_id == plan.plan_id and is_same_place(run, plan) and _lacks_results(store, run, retries):
                return run
    return None


def _lacks_results(store: Store, run: Run, retries: Retries) -> bool:
    """Return whether repeats are missing, or their number is not decided yet, by their keys alone if these show it."""
    if any(planned.stopping and not planned.stopping.is_decided for planned in run.cells):
        return True
    records = Records(store, run.run_id)
    there = records.list_repeats()
    if any(repeat.key not in there for repeat in order_repeats(run.cells, run.order_seed)):
        return True
    return bool(select_missing(run, records.read_snapshot(), retries))


def check_same_place(run: Run, cluster: Cluster | None, hostname: str) -> None:
    """Raise UserError if the run is measured elsewhere than here, where a runner of it would not be seen.

    Each of the two would measure what the other one is measuring. A context, or a machine, of another name may be the
    same one: that is a warning. So is a context of the same name and other certificates, which may lead to the same
    cluster by another way; a pod reaches no other cluster than its own.
    """
    places = [_describe_place(run.cluster, run.hostname), _describe_place(cluster, hostname)]
    is_elsewhere = getattr(run.cluster, "namespace", None) != getattr(cluster, "namespace", None)  # None: one machine
    if run.cluster is not None and cluster is not None and _are_apart(run.cluster, cluster):
        # Where the runner is one of a cluster's pods, it reaches no other cluster.
        is_elsewhere = is_elsewhere or run.cluster.context == cluster.context == "in-cluster"
        if places[0] == places[1]:
            places[1] = "another cluster of this name, with another certificate authority"
    if places[0] == places[1]:
        return
    begun = f"run {run.run_id} was begun {places[0]}, and this is {places[1]}"
    if is_elsewhere:
        raise UserError(
            f"--run-id {run.run_id}: {begun}: a runner that is still at work there would not be seen, and what it is "
            "measuring would be measured twice; resume it there, or give another --run-id"
        )
    warn_on_stderr(f"{begun}: if these are two, end what is still at work there, or it is measured twice")


def _are_apart(one: Cluster, other: Cluster) -> bool:
    """Return whether it is known that the API servers share no authority, as those of two clusters."""
    return bool(one.authorities and other.authorities) and not set(one.authorities) & set(other.authorities)


def _describe_place(cluster: Cluster | None, hostname: str) -> str:
    return f"on {hostname}" if cluster is None else f"in namespace {cluster.namespace} of {cluster.context}"


def select_missing(run: Run, snapshot: RecordSnapshot, retries: Retries = NO_RETRIES) -> list[Repeat]:
    """Return the planned repeats without a terminal record in the run's order: every cell's first, then every second.

    A damaged record counts as none. `retries`: those that are measured again are among them.
    """
    present = snapshot.find_present(retries)
    return [repeat for repeat in order_repeats(run.cells, run.order_seed) if repeat.key not in present]


def begin_run(store: Store, run: Run, snapshot: RecordSnapshot, missing: Sequence[Repeat], console: Console) -> None:
    """Store the plan of a run that is new, and say what is planned, what is there and what of it is damaged.

    Raise TransientError if another runner has just stored a plan of this name.
    """
    if is_stored(store, run.run_id):
        console.print(f"run {run.run_id} is resumed (--new starts another)")
    elif store.put_new(run_key(run.run_id), run.to_json()):
        console.print(f"run {run.run_id}")
    else:  # each would go by its own plan: what the other one measures would not be planned, and counts nowhere
        raise TransientError(
            f"run {run.run_id}: another runner has begun a run of this name at the same moment; give the same command "
            "again, which resumes that run if it is of the same plan"
        )
    describe_plan(run, missing, console.print)
    if damaged := snapshot.damaged:
        console.print(f"damaged records: {len(damaged):,}, which count as missing; such as {damaged[0]}")


def describe_plan(run: Run, missing: Sequence[Repeat], report: Callable[[str], None]) -> None:
    planned = f"{count_things(len(run.cells), 'cell')}, {count_things(run.num_repeats, 'repeat')} in all"
    report(f"plan: {planned}; {run.num_repeats - len(missing)} there, {len(missing)} to measure")
    for line in describe_left_out(run):
        report(line)


def describe_left_out(run: Run) -> list[str]:
    numbers = Counter(cell.reason for cell in run.left_out)
    return [f"left out: {count_things(number, 'cell')}: {reason}" for reason, number in sorted(numbers.items())]


def list_alike_runs(store: Store, plan: Run, is_alike: Callable[[Run], bool]) -> list[Run]:
    """Return the runs that are alike, those with the most of the plan's cells last, and of these the newest."""
    ids = {planned.cell.cell_id for planned in plan.cells}
    return sorted(
        filter(is_alike, read_runs(store, store.list_run_ids())[0]),
        key=lambda run: (sum(planned.cell.cell_id in ids for planned in run.cells), run.created_at),
    )


def is_same_place(run: Run, plan: Run) -> bool:
    """Return whether both are of this machine, or of the same namespace and profile of one cluster."""
    if run.cluster is None and plan.cluster is None:
        return run.hostname == plan.hostname
    if run.cluster is None or plan.cluster is None or _are_apart(run.cluster, plan.cluster):
        return False
    return run.cluster.model_copy(update={"authorities": plan.cluster.authorities}) == plan.cluster
