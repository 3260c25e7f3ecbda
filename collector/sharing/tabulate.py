"""Tabulate what sharing a device does: one row per cell with tenants, environment and kind of tenant."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from bench.schema import Cell
from collector.ratio_verdicts import adjust_verdicts
from collector.results.cells import find_shared
from collector.results.collection import Collection
from collector.results.frames import CELL_COLUMNS, ENVIRONMENT_COLUMNS, Columns, Row, make_frame
from collector.sharing.alone import Alone, AloneByWork, find_alone, index_alone
from collector.sharing.fallen import count_fallen
from collector.sharing.figures import SharedCell, describe_device, describe_role
from collector.sharing.repeats import (
    PERCENTILES,
    CellGroup,
    GroupFigures,
    Role,
    list_groups,
    measure_groups,
)


def _with_interval(*names: str) -> Columns:
    return {f"{name}{end}": "float64" for name in names for end in ("", "_low", "_high")}


LATENCY_COLUMNS: Columns = {
    name: dtype
    for percent in PERCENTILES
    for name, dtype in {
        **_with_interval(f"p{percent}_step_seconds"),
        f"alone_p{percent}_step_seconds": "float64",
        **_with_interval(f"p{percent}_ratio"),
    }.items()
}
SHARING_COLUMNS: Columns = {
    "run_id": "str",
    "cell_id": "str",
    **CELL_COLUMNS,
    **{name: ENVIRONMENT_COLUMNS[name] for name in ("environment_id", "hardware_id", "gpu_name")},
    "num_environments": "int64",
    "num_planned": "int64",
    "num_ok": "int64",
    "num_sound": "int64",
    "num_counted": "int64",
    "role": "str",
    "num_role_tenants": "int64",
    "alone_cell_id": "str",
    **_with_interval("tenant_samples_per_s", "role_samples_per_s", "alone_samples_per_s"),
    **_with_interval("slowdown", "slowest_slowdown"),
    **LATENCY_COLUMNS,
    **_with_interval("aggregate_ratio"),
    "aggregate_log_standard_error": "float64",
    "aggregate_degrees_of_freedom": "float64",
    "joint_low": "float64",
    "joint_high": "float64",
    "p_value": "float64",
    "p_adjusted": "float64",
    "verdict": "str",
    "adjusted_verdict": "str",
    **_with_interval("jain_index"),
    "lowest_jain_index": "float64",
    **_with_interval("joules_per_sample", "energy_ratio"),
    "tenant_peak_bytes": "Int64",
    "role_peak_bytes": "Int64",
    "device_peak_bytes": "Int64",
    "num_fallen_repeats": "int64",
    "fallen": "str",
    "not_compared": "str",
    "note": "str",
}
"""`role`: `cell`, or `neighbour` for the tenants that run what the cell names as its neighbour. `tenant_...`: of one
tenant; `role_...`: of all tenants with the role; `slowest_slowdown`: of the slowest of them. `aggregate_ratio`,
`jain_index`, energy and `device_peak_bytes` are of the whole device, and the same in both rows of a cell with two
roles; so are `joint_low` to `joint_high`, the interval of `aggregate_ratio` that holds together with those of all
tested cells, and the verdict that rests on it. docs/report.md has the formulas."""

JUDGED_COLUMNS = ("joint_low", "joint_high", "p_adjusted", "verdict", "adjusted_verdict")
"""What is found of all cells together."""


def tabulate_sharing(collection: Collection, *, include_invalid: bool = False) -> pd.DataFrame:
    """Return one row per cell that shared its device, environment and role, with the columns SHARING_COLUMNS.

    A figure that cannot be given is missing; `not_compared` says why a row is held against nothing alone.
    `include_invalid`: as in `compare_cells`. A run without such a cell has no rows, and none of its steps are read.
    """
    if not find_shared(collection.results).any():
        return make_frame([], SHARING_COLUMNS)
    groups = list_groups(collection.results)
    cells = {planned.cell.cell_id: planned.cell for planned in collection.run.cells}
    shared = [group for group in groups if group.is_shared]
    alone = index_alone(groups)
    asked = [_Asked.make(group, cells[group.row["cell_id"]], alone, include_invalid) for group in shared]
    needed = {id(group): group for one in asked for group in one.needed}
    figures = dict(zip(needed, measure_groups(collection, list(needed.values())), strict=True))
    fallen = count_fallen(collection.tenants)
    rows = [row for one in asked for row in _describe(one, figures, fallen.get(one.group.row["cell_id"], {}))]
    return make_frame(_adjust(rows), SHARING_COLUMNS)


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """A cell with tenants, and what each kind of them is held against."""

    group: CellGroup
    alone: Mapping[Role, Alone]

    @classmethod
    def make(cls, group: CellGroup, cell: Cell, alone: AloneByWork, include_invalid: bool) -> "_Asked":
        """Return the cell with the cells that it is compared with: those that had the device to themselves."""
        if not group.ok:
            ends = ", ".join(f"{count} {status}" for status, count in group.statuses.items())
            return cls(group=group, alone={role: Alone(reason=f"no ok repeat ({ends})") for role in group.roles})
        if not group.sound and not include_invalid:
            reason = "no repeat was measured under sound conditions"
            return cls(group=group, alone={role: Alone(reason=reason) for role in group.roles})
        found = {role: find_alone(group, role, cell, alone, include_invalid=include_invalid) for role in group.roles}
        return cls(group=group, alone=found)

    @property
    def needed(self) -> list[CellGroup]:
        """The groups whose figures are needed."""
        own = [self.group] if self.group.ok else []
        return [*own, *(alone.group for alone in self.alone.values() if alone.group is not None)]


def _describe(asked: _Asked, figures: Mapping[int, GroupFigures], fallen: Row) -> list[Row]:
    """Return the rows of one cell in one environment, one for each role."""
    group = asked.group
    common = group.row | {
        "num_environments": group.num_environments,
        "num_planned": group.num_planned,
        **{f"num_{name}": len(getattr(group, name)) for name in ("ok", "sound")},
        "num_counted": len(group.counted),
        "num_fallen_repeats": 0,
        **fallen,
    }
    shared = None
    if group.ok:
        alone = {role: figures[id(found.group)] for role, found in asked.alone.items() if found.group is not None}
        shared = SharedCell(group=group, figures=figures[id(group)], alone=alone)
        common |= describe_device(shared)
    rows = []
    for role, found in asked.alone.items():
        row = common | {"role": role, "num_role_tenants": group.count_tenants(role)}
        row |= describe_role(shared, role) if shared else {}
        row["alone_cell_id"] = found.group.row["cell_id"] if found.group else None
        rows.append(row | {"not_compared": found.reason or None, "note": _note(group, found)})
    return rows


def _adjust(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with the verdict on the aggregate, which allows for one ratio for each cell."""
    first = [index for index, row in enumerate(rows) if row["role"] == "cell"]
    adjusted = adjust_verdicts([rows[index] for index in first])
    own = dict(zip(first, adjusted, strict=True))
    last: Row = {}
    found = []
    for index, row in enumerate(rows):
        last = own.get(index, last)
        found.append(row | {name: last.get(name) for name in JUDGED_COLUMNS})
    return found


def _note(group: CellGroup, alone: Alone) -> str:
    """Return what a reader must know beside the figures of a row."""
    notes = []
    if len(group.counted) < len(group.ok):
        notes.append(f"figures from {len(group.counted)} of {len(group.ok)} ok, those with sound conditions")
    if group.ok and not group.sound:
        notes.append(f"no sound repeat: figures from all {len(group.ok)} ok")
    if len(group.counted) == 1:
        notes.append("one repeat counts: no interval")
    if alone.group is not None and not alone.group.sound:
        notes.append("alone: no sound repeat")
    if alone.group is not None and alone.group.row["environment_id"] != group.row["environment_id"]:
        notes.append("alone in another environment on the same hardware")
    return "; ".join(notes)
