"""Tabulate what sharing a device does: one row per cell with tenants, environment and kind of tenant."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from bench.schema import Cell
from collector.labels import count_tenants
from collector.ratio_words import NO_INTERVAL, adjust_verdicts
from collector.results.collection import Collection
from collector.results.frames import (
    CELL_COLUMNS,
    ENVIRONMENT_COLUMNS,
    Columns,
    Row,
    describe_cell,
    find_shared,
    make_frame,
)
from collector.sharing.measure import (
    PERCENTILES,
    Alone,
    AloneByWork,
    CellGroup,
    GroupFigures,
    Role,
    Series,
    compute_jain_index,
    estimate_quotient,
    estimate_total,
    find_alone,
    index_alone,
    list_groups,
    measure_groups,
    spread,
)
from collector.statistics import Estimate, compute_geometric_mean, invert_estimate
from collector.units import count_things, format_significant


@dataclass(frozen=True, kw_only=True)
class SharedCell:
    """A cell with tenants, and what it is held against."""

    group: CellGroup
    figures: GroupFigures
    alone: Mapping[Role, GroupFigures]
    """By role, the same work alone; a role that is held against nothing is left out."""

    def take_rates(self, role: Role) -> Series | None:
        """Return the samples per second of all tenants with the role together."""
        return self.figures.make_series([sum(rates) for rates in self.figures.rates[role]])

    def take_alone_rate(self, role: Role) -> Series | None:
        """Return the samples per second of the role's work alone."""
        figures = self.alone.get(role)
        return figures.make_series([rate for (rate,) in figures.rates["cell"]]) if figures else None


def describe_role(shared: SharedCell, role: Role) -> Row:
    """Return the columns of the tenants with one role: speed and latency, and both against the same work alone."""
    figures, alone = shared.figures, shared.alone.get(role)
    rates = shared.take_rates(role)
    mean = figures.make_series([_average(found) for found in figures.rates[role]])
    slowest = figures.make_series([min(found) for found in figures.rates[role]])
    alone_rate = shared.take_alone_rate(role)
    return {
        **spread("role_samples_per_s", rates.estimate() if rates else None),
        **spread("tenant_samples_per_s", mean.estimate() if mean else None),
        **spread("alone_samples_per_s", alone_rate.estimate() if alone_rate else None),
        **spread("slowdown", _divide(alone_rate, mean)),
        **spread("slowest_slowdown", _divide(alone_rate, slowest)),
        **_describe_latencies(figures, role, alone),
        "tenant_peak_bytes": max((max(peaks) for peaks in figures.memory_bytes[role] if peaks), default=None),
        "role_peak_bytes": max((sum(peaks) for peaks in figures.memory_bytes[role] if peaks), default=None),
    }


def describe_device(shared: SharedCell) -> Row:
    """Return the columns of the device: what all tenants get together, how evenly, and for what energy."""
    roles = shared.group.roles
    rates = [shared.take_rates(role) for role in roles]
    alone = [shared.take_alone_rate(role) for role in roles]
    aggregate = _total(rates, alone)
    return {
        **spread("aggregate_ratio", aggregate),
        "aggregate_log_standard_error": aggregate.log_standard_error if aggregate else None,
        "aggregate_degrees_of_freedom": aggregate.degrees_of_freedom if aggregate else None,
        **_judge(aggregate),
        **_describe_fairness(shared, alone),
        **_describe_energy(shared, rates),
        "device_peak_bytes": shared.figures.device_peak_bytes,
    }


def _describe_latencies(figures: GroupFigures, role: Role, alone: GroupFigures | None) -> Row:
    row: Row = {}
    for percent in PERCENTILES:
        shared = figures.make_series(figures.latencies[role][percent])
        before = alone.make_series(alone.latencies["cell"][percent]) if alone else None
        row |= spread(f"p{percent}_step_seconds", shared.estimate() if shared else None)
        row[f"alone_p{percent}_step_seconds"] = before.estimate().center if before else None
        row |= spread(f"p{percent}_ratio", _divide(shared, before))
    return row


def _describe_fairness(shared: SharedCell, alone: Sequence[Series | None]) -> Row:
    """Return Jain's index over the tenants' rates, each as a share of what its work does alone.

    Where all tenants run the same, that divisor is the same for all and cancels.
    """
    roles = shared.group.roles
    divisors = [series.estimate().center if series else None for series in alone] if len(roles) > 1 else [1.0]
    if shared.group.row["tenants"] < 2 or None in divisors:
        return {}
    shares = [
        [rate / by for rates, by in zip(repeat, divisors, strict=True) if by is not None for rate in rates]
        for repeat in zip(*(shared.figures.rates[role] for role in roles), strict=True)
    ]
    indices = [compute_jain_index(found) for found in shares]
    series = shared.figures.make_series(indices)
    row = dict(spread("jain_index", series.estimate() if series else None))
    if row["jain_index_high"] is not None:
        row["jain_index_high"] = min(1.0, row["jain_index_high"])  # the index is no larger
    return row | {"lowest_jain_index": min(indices)}


def _describe_energy(shared: SharedCell, rates: Sequence[Series | None]) -> Row:
    figures = shared.figures
    joules = figures.make_series(figures.joules_per_sample)
    if joules is None or None in rates:
        return {}
    known = [series for series in rates if series is not None]
    watts = [
        energy * sum(parts) for energy, *parts in zip(joules.values, *(series.values for series in known), strict=True)
    ]
    per_joule = [
        figures.make_series([value / power for value, power in zip(series.values, watts, strict=True)])
        for series in known
    ]
    alone = [
        found.make_series([1 / value for value in found.joules_per_sample]) if found else None
        for found in (shared.alone.get(role) for role in shared.group.roles)
    ]
    gain = _total(per_joule, alone)
    return {
        **spread("joules_per_sample", joules.estimate()),
        **spread("energy_ratio", invert_estimate(gain) if gain else None),
    }


def _judge(aggregate: Estimate | None) -> Row:
    if aggregate is None:
        return {}
    if aggregate.interval is None:
        return {"verdict": NO_INTERVAL}
    direction = "more" if aggregate.center > 1 else "less"
    verdict = f"together {format_significant(aggregate.center)}x one alone"
    return {"verdict": verdict, "p_value": aggregate.p_value, "estimate": aggregate, "direction": direction}


def _average(rates: Sequence[float]) -> float:
    return compute_geometric_mean(rates) if min(rates) > 0 else 0.0


def _divide(numerator: Series | None, denominator: Series | None) -> Estimate | None:
    return estimate_quotient(numerator, denominator) if numerator and denominator else None


def _total(numerators: Sequence[Series | None], denominators: Sequence[Series | None]) -> Estimate | None:
    over, under = [one for one in numerators if one], [one for one in denominators if one]
    if len(over) < len(numerators) or len(under) < len(denominators):
        return None
    return estimate_total(over, under)


OUT_OF_MEMORY = "oom"


def count_fallen(tenants: pd.DataFrame) -> dict[str, Row]:
    """Return, by cell, in how many repeats tenants fell out of memory, and how many did; cells without any left out.

    `tenants`: rows of TENANT_COLUMNS.
    """
    fallen = tenants[tenants["status"] == OUT_OF_MEMORY]
    numbers = tenants.groupby("cell_id")["tenant"].max() + 1
    found: dict[str, Row] = {}
    for cell_id, rows in fallen.groupby("cell_id", sort=False):
        counts = rows.groupby("repeat").size()
        span = f"{counts.min()}" if counts.min() == counts.max() else f"{counts.min()} to {counts.max()}"
        of_all = count_tenants(int(numbers[cell_id]))
        text = f"{span} of {of_all} in {count_things(len(counts), 'repeat')}"
        found[str(cell_id)] = {"num_fallen_repeats": len(counts), "fallen": text}
    return found


def select_fallen(collection: Collection) -> pd.DataFrame:
    """Return one row per tenant that fell out of memory: CELL_COLUMNS of its cell, and what it says of itself.

    `num_running`: how many tenants of its repeat ran to the end, in words.
    """
    tenants = collection.tenants
    cells = {planned.cell.cell_id: describe_cell(planned.cell) for planned in collection.run.cells}
    fallen = tenants[tenants["status"] == OUT_OF_MEMORY].reset_index(drop=True)
    ok = tenants[tenants["status"] == "ok"].groupby(["cell_id", "repeat"]).size()
    sizes = tenants.groupby(["cell_id", "repeat"]).size()
    keys = list(zip(fallen["cell_id"], fallen["repeat"], strict=True))
    running = [f"{ok.get(key, 0)} of {sizes[key] - 1}" for key in keys]
    names = ("repeat", "tenant", "peak_memory_reserved_bytes", "error_message")
    named = make_frame([cells[cell_id] for cell_id, _ in keys], CELL_COLUMNS)
    return named.assign(**{name: fallen[name] for name in names}, num_running=running)


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
    "decision": "str",
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
tested cells, and the verdict that rests on it. docs/statistics.md has the formulas."""

JUDGED_COLUMNS = ("joint_low", "joint_high", "p_adjusted", "verdict", "decision")
"""What is found of all cells together."""


def tabulate_sharing(collection: Collection) -> pd.DataFrame:
    """Return one row per cell that shared its device, environment and role, with the columns SHARING_COLUMNS.

    A figure that cannot be given is missing; `not_compared` says why a row is held against nothing alone.
    A run without such a cell has no rows, and none of its steps are read.
    """
    if not find_shared(collection.results).any():
        return make_frame([], SHARING_COLUMNS)
    groups = list_groups(collection.results)
    cells = {planned.cell.cell_id: planned.cell for planned in collection.run.cells}
    shared = [group for group in groups if group.is_shared]
    alone = index_alone(groups)
    asked = [_Asked.make(group, cells[group.row["cell_id"]], alone) for group in shared]
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
    def make(cls, group: CellGroup, cell: Cell, alone: AloneByWork) -> "_Asked":
        """Return the cell with the cells that it is compared with: those that had the device to themselves."""
        if not group.ok:
            ends = ", ".join(f"{count} {status}" for status, count in group.statuses.items())
            return cls(group=group, alone={role: Alone(reason=f"no ok repeat ({ends})") for role in group.roles})
        if not group.sound:
            reason = "no repeat was measured under sound conditions"
            return cls(group=group, alone={role: Alone(reason=reason) for role in group.roles})
        found = {role: find_alone(group, role, cell, alone) for role in group.roles}
        return cls(group=group, alone=found)

    @property
    def needed(self) -> list[CellGroup]:
        """The groups whose figures are needed."""
        own = [self.group] if self.group.ok else []
        return [*own, *(alone.group for alone in self.alone.values() if alone.group is not None)]


def _describe(asked: _Asked, figures: Mapping[int, GroupFigures], fallen: Row) -> list[Row]:
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
