"""Make the documents of a night: suspicions of what it shows, and decisions by what was measured again."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from bench.schema import Decision, Direction, NightChange, Run, Suspicion, hash_text
from bench.store import confirmation_run_id
from collector.changes import ChangeHistory
from collector.nights.detection import (
    DECISION_P_VALUE,
    CellNights,
    Nights,
    Seen,
    Starts,
    judge,
    look,
    look_for_changes,
    measure_alone,
    tabulate_nights,
)

MAX_CELLS = 20
"""Suspicions of one night, at the most: the least likely ones by chance. A confirmation has to fit into what is left of
the night; the others are suspected again in the next one."""
CELLS_OF_GROUP = 5
"""Cells that are measured again where all cells of some hardware changed."""
CONFIRMATION_FACTOR = 5
MIN_CONFIRMATION_REPEATS = 10
"""Repeats of a confirmation: five times the night's, which more than halves what repeats add to its
noise; and ten where the night has few."""
MAX_LENGTH = 300
"""Of one side of a change of the environment: the names of many nodes are cut."""


@dataclass(frozen=True, kw_only=True)
class Confirmation:
    """The run that measured suspected cells again."""

    run: Run
    cells: CellNights
    ended_at: datetime
    """When its last repeat ended, or the run began where there is none."""
    is_complete: bool
    """Whether every planned repeat has its record."""


@dataclass(frozen=True, kw_only=True)
class NightRun:
    """One night: its run, the repeats that count, and the confirmation that followed, if any."""

    run: Run
    cells: CellNights
    confirmation: Confirmation | None = None

    @property
    def again(self) -> CellNights:
        """The repeats of the confirmation that ran on the night's hardware and, as far as recorded, machine types."""
        cells = {} if self.confirmation is None else self.confirmation.cells
        known = {key: self.cells[key].instance_types for key in cells if key in self.cells}
        return {key: cells[key] for key, types in known.items() if not types or cells[key].instance_types <= types}

    @property
    def all_cells(self) -> CellNights:
        again = self.again
        return {key: night.join(again[key]) if key in again else night for key, night in self.cells.items()}


def suspect(nights: Sequence[NightRun], history: ChangeHistory) -> list[Suspicion]:
    """Return what the newest night shows and the history does not have, the least likely by chance first.

    Changes for the better are in it only where they are certain: they are not measured again.
    """
    table, starts = _tabulate(nights, history)
    newest = nights[-1].run
    known = {change.suspicion.change_id for change in history.changes}
    seen = [one for one in look_for_changes(table, starts) if one.shift > 0 or one.p_value < DECISION_P_VALUE]
    suspicions = (_make_suspicion(one, table, nights[-1]) for one in seen)
    found = [suspicion for suspicion in suspicions if suspicion.change_id not in known]
    room = MAX_CELLS - sum(change.suspicion.direction == "slower" for change in history.of_night(newest.run_id))
    slower = [suspicion for suspicion in found if suspicion.direction == "slower"]
    return [*slower[: max(0, room)], *(suspicion for suspicion in found if suspicion.direction == "faster")]


def decide(
    suspicion: Suspicion, nights: Sequence[NightRun], history: ChangeHistory, *, is_final: bool
) -> Decision | None:
    """Return what becomes of a suspicion; None while its confirmation is to be waited for.

    `nights` end with that of the suspicion. `is_final`: no further repeat of the confirmation is to be expected.
    """
    if suspicion.direction == "faster":
        reason = "the nights are clear by themselves; a change for the better is not measured again"
        return _make_decision(suspicion, None, outcome="confirmed", reason=reason, shift=suspicion.shift)
    night = nights[-1]
    confirmation = night.confirmation
    if not is_final and (confirmation is None or not confirmation.is_complete):
        return None
    if confirmation is None:
        return _make_decision(suspicion, None, outcome="undecided", reason="it was not measured again in its night")
    table, starts = _tabulate(nights, history)
    seen = _find(suspicion, table, starts)
    alone = None if seen is None else measure_alone(seen, table, night.again, suspicion.cell_ids)
    measured = [night.again[key] for row in seen.rows if (key := table.keys[row]) in night.again] if seen else []
    repeats = sum(len(found.logs) for found in measured)
    if seen is None or alone is None:
        reason = "no repeat of its confirmation counts: none ended well on the same hardware and type of node"
        return _make_decision(suspicion, confirmation, outcome="undecided", reason=reason)
    outcome, reason = judge(seen, alone)
    return _make_decision(
        suspicion, confirmation, outcome=outcome, reason=reason, shift=seen.describe(), num_repeats=repeats
    )


def _tabulate(nights: Sequence[NightRun], history: ChangeHistory) -> tuple[Nights, Starts]:
    """Return the series, and from which night on each is compared: after the last change of it that was confirmed."""
    table = tabulate_nights([night.run for night in nights], [night.all_cells for night in nights])
    columns = {night.run.run_id: column for column, night in enumerate(nights)}
    starts = Starts()
    for change in history.changes:
        suspicion, column = change.suspicion, columns.get(change.suspicion.first_run_id)
        if change.state != "confirmed" or column is None:
            continue
        if suspicion.num_cells > 1:
            starts.groups[suspicion.device, suspicion.hardware, suspicion.metric] = column
            continue
        for key in table.keys:
            is_same = key.group == (suspicion.device, suspicion.hardware, suspicion.metric)
            if is_same and key.cell.cell_id in suspicion.cell_ids:
                starts.cells[key] = column
    return table, starts


def _make_suspicion(seen: Seen, table: Nights, night: NightRun) -> Suspicion:
    run = night.run
    keys = [table.keys[row] for row in seen.rows]
    chosen = tuple(sorted(key.cell.cell_id for key in keys[:CELLS_OF_GROUP]))
    device, hardware, metric = seen.group
    direction: Direction = "slower" if seen.shift > 0 else "faster"
    scope = f"{device} {hardware}" if seen.is_of_group else chosen[0] + hardware
    scope += f"/{metric}" if metric != "step-time" else ""
    types = {name for key in keys if key in night.cells for name in night.cells[key].instance_types}
    most = max(planned.repeats for planned in run.cells if planned.cell.cell_id in chosen)
    is_again = direction == "slower"
    return Suspicion(
        matrix=run.matrix,
        change_id=hash_text(f"{run.matrix}/{run.run_id}/{direction}/{scope}"),
        direction=direction,
        metric=metric,
        cell_ids=chosen,
        num_cells=len(keys),
        device=keys[0].cell.device,
        hardware=hardware,
        instance_types=tuple(sorted(types)),
        night_run_id=run.run_id,
        first_run_id=table.runs[seen.first].run_id,
        seen_at=run.created_at,
        shift=seen.describe(),
        night_deviation=seen.deviation,
        changes=describe_changes(table, seen.rows, seen.first),
        confirmation_run_id=confirmation_run_id(run.matrix, run.run_id) if is_again else None,
        confirmation_repeats=max(MIN_CONFIRMATION_REPEATS, CONFIRMATION_FACTOR * most) if is_again else 0,
    )


def _make_decision(suspicion: Suspicion, confirmation: Confirmation | None, **fields: object) -> Decision:
    return Decision.model_validate(
        {
            "matrix": suspicion.matrix,
            "change_id": suspicion.change_id,
            "night_run_id": suspicion.night_run_id,
            "confirmation_run_id": None if confirmation is None else confirmation.run.run_id,
            "decided_at": suspicion.seen_at if confirmation is None else confirmation.ended_at,
            **fields,
        }
    )


def _find(suspicion: Suspicion, table: Nights, starts: Starts) -> Seen | None:
    """Return what the night shows of the suspicion's series now; None where nothing can be said."""
    is_of_group, group = suspicion.num_cells > 1, (suspicion.device, suspicion.hardware, suspicion.metric)
    for seen in look(table, starts):
        is_same = seen.is_of_group == is_of_group and seen.group == group
        if is_same and (is_of_group or table.keys[seen.rows[0]].cell.cell_id in suspicion.cell_ids):
            return seen
    return None


def describe_changes(nights: Nights, rows: Sequence[int], first: int) -> tuple[NightChange, ...]:
    """Return what differs between the newest night and the last one before `first` that the series have.

    Of several series all values together. A fact that only one of the nights has recorded differs too: it was, or is,
    unknown.
    """
    before: defaultdict[str, set[str]] = defaultdict(set)
    after: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows:
        earlier = [facts for facts in nights.facts[row][:first] if facts]
        for found, facts in ((before, earlier[-1]), (after, nights.facts[row][-1])) if earlier else ():
            for what, values in facts.items():
                found[what] |= values
    return tuple(
        NightChange(what=what, before=_join(before[what]), after=_join(after[what]))
        for what in sorted({*before, *after})
        if before[what] != after[what]
    )


def _join(values: Iterable[str]) -> str | None:
    text = ", ".join(sorted(values))
    return text[: MAX_LENGTH - 1] + "…" if len(text) > MAX_LENGTH else text or None
