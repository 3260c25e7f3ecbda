"""Look at the newest night of a matrix, keep what is suspected and decided in the store, and say what is left to do.

All state is in the store, under keys that follow from the night: killed at any moment, the same call goes on.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench.errors import UserError
from bench.schema import Run, Suspicion
from bench.store import Store, decision_key, suspicion_key
from collector.nights.detection import MIN_NIGHTS_BEFORE
from collector.nights.records import ChangeHistory, RecordedChange, read_history
from collector.nights.suspicions import NightRun, decide, suspect
from runner.nights.loading import choose_matrix, list_runs, load_nights


@dataclass(frozen=True, kw_only=True)
class NightReport:
    """What is known of the newest night."""

    matrix: str
    night: Run
    num_nights: int
    num_cells: int
    """Cells of the night with a repeat that counts."""
    num_uncounted: int
    """Planned cells of the night without one: nothing can be said of them."""
    num_too_new: int
    """Of `num_cells`, those with too few nights before: nothing can be said of them yet."""
    history: ChangeHistory
    warnings: tuple[str, ...] = ()

    @property
    def changes(self) -> list[RecordedChange]:
        """The changes that were seen in this night."""
        return self.history.of_night(self.night.run_id)

    @property
    def pending(self) -> list[Suspicion]:
        """What has to be measured again."""
        return [change.suspicion for change in self.changes if change.is_pending]

    @property
    def regressions(self) -> list[RecordedChange]:
        """The regressions that this night confirmed."""
        return [change for change in self.changes if change.is_regression]


@dataclass(kw_only=True)
class Watch:
    """Watches one matrix in one store."""

    store: Store
    matrix: str | None = None
    """None: that of the newest run."""

    def look(self, *, is_final: bool = False) -> NightReport:
        """Look at the newest night, record what is new, and return what is known of it.

        `is_final`: what is not measured again by now will not be. UserError if the store has no run of the matrix.
        """
        runs, left_out = list_runs(self.store, self.matrix)
        matrix = choose_matrix(runs, left_out, self.store, self.matrix)
        loaded = load_nights(self.store, matrix, runs, left_out)
        if not loaded.nights:
            raise UserError(f"store {self.store.url}: no run of {matrix} can be read: {'; '.join(loaded.warnings)}")
        history = read_history(self.store, matrix)
        history = self._decide_open(loaded.nights, history, is_final=is_final)
        history = self._suspect_new(loaded.nights, history)
        newest = loaded.nights[-1]
        return NightReport(
            matrix=matrix,
            night=newest.run,
            num_nights=len(loaded.nights),
            **_count_cells(loaded.nights),
            history=history,
            warnings=(*loaded.warnings, *(f"{document.key}: {document.reason}" for document in history.skipped)),
        )

    def _decide_open(self, nights: Sequence[NightRun], history: ChangeHistory, *, is_final: bool) -> ChangeHistory:
        """Decide what waits, the oldest first: what is confirmed moves the level that later nights are compared with.

        What an older night left open stays undecided, unless its confirmation is there.
        """
        newest = nights[-1].run.run_id
        columns = {night.run.run_id: column for column, night in enumerate(nights)}
        for change in history.changes:
            if not change.is_pending:
                continue
            run_id = change.suspicion.night_run_id
            column = columns.get(run_id)
            until = nights[: column + 1] if column is not None else ()
            if until:
                history = self._decide(change, until, history, is_final=is_final or run_id != newest)
        return history

    def _decide(
        self, change: RecordedChange, nights: Sequence[NightRun], history: ChangeHistory, *, is_final: bool
    ) -> ChangeHistory:
        decision = decide(change.suspicion, nights, history, is_final=is_final)
        if decision is None:
            return history
        self.store.put(decision_key(decision.matrix, decision.change_id), decision.to_json())
        decided = replace(change, decision=decision)
        return replace(history, changes=tuple(decided if known is change else known for known in history.changes))

    def _suspect_new(self, nights: Sequence[NightRun], history: ChangeHistory) -> ChangeHistory:
        """Record what the newest night shows. Once it was measured again, nothing new is suspected in it."""
        if nights[-1].confirmation is not None:
            return history
        for suspicion in suspect(nights, history):
            self.store.put(suspicion_key(suspicion.matrix, suspicion.change_id), suspicion.to_json())
            change = RecordedChange(suspicion=suspicion)
            history = replace(history, changes=(*history.changes, change))
            if suspicion.direction == "faster":
                history = self._decide(change, nights, history, is_final=True)
        return history


def _count_cells(nights: Sequence[NightRun]) -> dict[str, int]:
    """Return how many cells of the newest night can be compared with nights before, and how many cannot."""
    newest, before = nights[-1], nights[:-1]
    ids = {key.cell.cell_id for key in newest.cells}
    known = {
        key.cell.cell_id for key in newest.cells if sum(key in night.cells for night in before) >= MIN_NIGHTS_BEFORE
    }
    planned = {planned.cell.cell_id for planned in newest.run.cells}
    return {"num_cells": len(ids), "num_uncounted": len(planned - ids), "num_too_new": len(ids - known)}
