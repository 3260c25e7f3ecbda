"""The table of changes that were seen over the nights of the run's matrix, with what became of them."""

import pandas as pd

from bench.schema import NightChange
from collector.analysis import Analysis
from collector.nights.records import RecordedChange
from collector.tables.table import MAX_LISTED, Column, Table, make_table
from collector.units import NOT_THERE

CAPTION = "Changes over the nights"


def make_nights_table(analysis: Analysis) -> Table | None:
    """Return one row per change that was suspected, the newest first; None where there is none."""
    changes = list(reversed(analysis.history.changes))
    if not changes:
        return None
    columns = [
        _show("cell", "cell"),
        _show("change, %", "shift", align="right"),
        _show("95 % interval, %", "interval", align="right"),
        _show("what became of it", "state"),
        _show("first run after it", "first"),
        _show("seen in", "night"),
        _show("changed in the environment", "environment"),
        _show("reason", "reason"),
    ]
    rows = pd.DataFrame([_describe(change) for change in changes[:MAX_LISTED]])
    remark = "Ratios of step times, after the change over before. docs/nights.md says how they are found and decided."
    if len(changes) > MAX_LISTED:
        remark += f" The newest {MAX_LISTED} of {len(changes)}."
    return make_table(CAPTION, columns, rows, remark=remark)


def _show(title: str, source: str, *, align: str = "left") -> Column:
    return Column(title=title, sources=(source,), format=str, align="right" if align == "right" else "left")


def _describe(change: RecordedChange) -> dict[str, str]:
    suspicion, decision = change.suspicion, change.decision
    shift = suspicion.shift if decision is None or decision.shift is None else decision.shift
    of_all = f"{suspicion.num_cells} cells on {suspicion.hardware}"
    return {
        "cell": suspicion.cell_ids[0] if suspicion.num_cells == 1 else of_all,
        "shift": f"{100 * (shift.ratio - 1):+.1f}",
        "interval": f"{100 * (shift.low - 1):+.1f} to {100 * (shift.high - 1):+.1f}",
        "state": "waits to be measured again" if decision is None else decision.outcome,
        "first": suspicion.first_run_id,
        "night": suspicion.night_run_id,
        "environment": "; ".join(_name(part) for part in suspicion.changes) or "nothing that is recorded",
        "reason": NOT_THERE if decision is None else decision.reason,
    }


def _name(part: NightChange) -> str:
    return f"{part.what}: {part.before or 'unknown'} → {part.after or 'unknown'}"
