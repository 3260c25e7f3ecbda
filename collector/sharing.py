"""Tabulate what tenants of one device do to each other: each against the same work alone, and all of them together."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from bench.schema import Cell
from collector.labels import count_tenants
from collector.ratio_words import judge_rows
from collector.results.cell_repeats import SOUND_VERDICTS
from collector.results.collection import Collection
from collector.results.frames import (
    CELL_COLUMNS,
    ENVIRONMENT_COLUMNS,
    PROTOCOL_FIELDS,
    SHARING_FIELDS,
    WITHOUT_RECORD,
    Columns,
    Row,
    describe_cell,
    find_shared,
    list_known,
    make_frame,
)
from collector.results.hosts import drop_build
from collector.statistics import (
    MIN_SAMPLES,
    Estimate,
    FloatArray,
    Measured,
    average_by_machine,
    combine_estimates,
    compute_geometric_mean,
    divide,
    estimate_center,
    estimate_ratio,
    invert_estimate,
    measure,
)
from collector.units import count_things


class Series(NamedTuple):
    """One figure (> 0) of each repeat that counts, and the machine that the repeat ran on; at least one."""

    values: tuple[float, ...]
    machines: tuple[str, ...]

    @property
    def measured(self) -> Measured:
        return measure(self.values, self.machines)


def estimate_total(numerators: Sequence[Series], denominators: Sequence[Series]) -> Estimate:
    """Return the sum of the quotients, one for each kind of tenant; of one kind it is their quotient.

    The numerators are of the same repeats, place by place, and are added repeat by repeat, so what a repeat does to all
    of them is in the spread of the sums. The denominators are independent of them and of each other: each adds the
    square of its log standard error, weighted by the square of its share of the sum (the delta method), with Welch and
    Satterthwaite's degrees of freedom.
    """
    machines = numerators[0].machines
    if len(set(machines)) > 1 and all(set(one.machines) == set(machines) for one in (*numerators, *denominators)):
        means = [denominator.measured.means for denominator in denominators]
        totals = _add(numerators, [[mean[machine] for machine in machines] for mean in means])
        return estimate_center(list(average_by_machine(totals, machines).values()))
    known = [denominator.measured.estimate for denominator in denominators]
    totals = _add(numerators, [[estimate.center] * len(machines) for estimate in known])
    weights = [
        sum(value / estimate.center / total for value, total in zip(numerator.values, totals, strict=True))
        / len(totals)
        for numerator, estimate in zip(numerators, known, strict=True)
    ]
    return estimate_ratio(
        measure(totals, machines).estimate, combine_estimates(1.0, list(zip(known, weights, strict=True)))
    )


def compute_jain_index(shares: Sequence[float]) -> float:
    """Return Jain's index (sum x)^2 / (n sum x^2) of normalised shares: 1 where all are equal, 1/n where one has all.

    R. Jain, D. Chiu, W. Hawe, A Quantitative Measure of Fairness and Discrimination for Resource Allocation in Shared
    Computer Systems, DEC Research Report TR-301, 1984.
    """
    return sum(shares) ** 2 / (len(shares) * sum(share**2 for share in shares))


def _add(numerators: Sequence[Series], denominators: Sequence[Sequence[float]]) -> list[float]:
    quotients = (
        [value / by for value, by in zip(numerator.values, divisors, strict=True)]
        for numerator, divisors in zip(numerators, denominators, strict=True)
    )
    return [sum(parts) for parts in zip(*quotients, strict=True)]


def spread(name: str, estimate: Estimate | Series | None) -> Row:
    """Return the columns `name`, `name_low` and `name_high` of an estimate; missing where it, or its interval, is."""
    if isinstance(estimate, Series):
        estimate = estimate.measured.estimate
    low, high = (estimate.interval if estimate else None) or (None, None)
    return {name: estimate.center if estimate else None, f"{name}_low": low, f"{name}_high": high}


Role = Literal["cell", "neighbour"]
"""What a tenant runs: the cell itself, or what the cell names as its neighbour."""

# A median needs no samples beyond it, so one step is enough; for the others see collector.statistics.
MIN_STEPS = {50: 1, **MIN_SAMPLES}
PERCENTILES = tuple(MIN_STEPS)
ENERGY_COLUMNS = {"gpu": "gpu_energy_per_sample_joules", "cpu": "cpu_energy_per_sample_joules"}
MEMORY_COLUMN = {"gpu": "peak_memory_allocated_bytes", "cpu": "peak_rss_bytes"}
"""By device, what a tenant's memory is: of a GPU, the peak of its framework's allocator in the window."""
MATCH_FIELDS = tuple(name for name in CELL_COLUMNS if name not in (*SHARING_FIELDS, *PROTOCOL_FIELDS))
"""What is equal in a tenant's cell and in the cell alone: all but with whom it ran, and how long was measured."""
READ_COLUMNS = (
    *("run_id", "cell_id", "repeat", "status", "verdict", "machine", "gpu_memory_peak_bytes", "window_samples_per_s"),
    *(*CELL_COLUMNS, *ENVIRONMENT_COLUMNS, *ENERGY_COLUMNS.values(), *MEMORY_COLUMN.values()),
)


class Tenants(NamedTuple):
    """What the tenants with one role did in each repeat that counts; of a cell alone it is the only one."""

    rates: list[list[float]]
    """Samples per second of each."""
    peaks: list[list[int]]
    """Peak memory of each of which it is known, in bytes."""
    steps: list[FloatArray]
    """The timed steps of all of them, in seconds."""


@dataclass(kw_only=True)
class CellGroup:
    """The repeats of one cell that ended ok in one environment; a cell without any has one group without rows."""

    row: Row
    """READ_COLUMNS of one of its repeats."""
    num_planned: int
    num_environments: int
    ok: Sequence[Row]
    sound: Sequence[Row]
    """Those whose conditions were not at fault."""
    counted: Sequence[Row]
    """The repeats that figures come from, as in the summary."""
    ends: str
    """How the cell's planned repeats ended, in any environment, that did not end ok."""
    tenants: Mapping[Role, Tenants]
    alone: "dict[Role, CellGroup]" = field(default_factory=dict)
    """What the tenants with a role are held against."""
    reasons: dict[Role, str] = field(default_factory=dict)
    """Why a role is held against nothing."""

    def make_series(self, values: Sequence[float]) -> Series | None:
        """Return a value of each repeat as a series; None where there is none, or where a repeat lacks one."""
        if not values or len(values) < len(self.counted) or min(values) <= 0:
            return None
        return Series(tuple(values), tuple(row["machine"] for row in self.counted))

    def take_rates(self, role: Role) -> Series | None:
        """Return the samples per second of all tenants with the role together."""
        return self.make_series([sum(rates) for rates in self.tenants[role].rates])

    def take_percentile(self, role: Role, percent: int) -> Series | None:
        """Return a percentile of the steps of all tenants with the role; None where a repeat has too few steps."""
        known = [steps for steps in self.tenants[role].steps if len(steps) >= MIN_STEPS[percent]]
        return self.make_series([float(np.quantile(steps, percent / 100)) for steps in known])

    def take_energy(self) -> Series | None:
        """Return the energy over the samples of all tenants; None where a repeat does not say it, or says 0."""
        values = [row[ENERGY_COLUMNS[self.row["device"]]] for row in self.counted]
        return self.make_series(values) if all(values) else None


def list_groups(collection: Collection) -> list[CellGroup]:
    """Return the groups of a run in the order of the plan, of cells that shared their device and of those alone."""
    results = collection.results[list(READ_COLUMNS)]
    places = (~results["status"].isin(WITHOUT_RECORD)).cumsum() - 1
    by_repeat: defaultdict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in list_known(collection.tenants.sort_values("tenant", kind="stable")):
        by_repeat[row["cell_id"], row["repeat"]].append(row)
    groups = []
    for _, frame in results.assign(place=places).groupby("cell_id", sort=False):
        planned = list_known(frame)
        ended = Counter(row["status"] for row in planned if row["status"] != "ok")
        environments = dict.fromkeys(row["environment_id"] for row in planned if row["status"] == "ok")
        for environment in environments or [None]:
            ok = [row for row in planned if row["status"] == "ok" and row["environment_id"] == environment]
            sound = [row for row in ok if row["verdict"] in SOUND_VERDICTS]
            group = CellGroup(
                row=(ok or planned)[0],
                num_planned=len(planned),
                num_environments=len(environments),
                ok=ok,
                sound=sound,
                counted=sound or ok,
                ends=", ".join(f"{count} {status}" for status, count in ended.items()),
                tenants=_gather_tenants(collection, (ok or planned)[0], sound or ok, by_repeat),
            )
            groups.append(group)
    return groups


def _gather_tenants(
    collection: Collection, cell: Row, counted: Sequence[Row], by_repeat: Mapping[tuple[str, int], list[Row]]
) -> dict[Role, Tenants]:
    memory = MEMORY_COLUMN[cell["device"]]
    parts: dict[Role, slice] = {"cell": slice(None)}
    if cell["neighbour"] is not None:
        parts = {"cell": slice(1), "neighbour": slice(1, None)}
    found = {role: Tenants([], [], []) for role in parts}
    for row in counted:
        records = by_repeat.get((row["cell_id"], row["repeat"]), [row])
        series = collection.steps.read_tenants(row["place"])
        for role, own in parts.items():
            found[role].rates.append([one["window_samples_per_s"] for one in records[own]])
            found[role].peaks.append([int(one[memory]) for one in records[own] if one[memory] is not None])
            found[role].steps.append(np.concatenate(series[own]))
    return found


def find_alone(shared: CellGroup, cells: Mapping[str, Cell], alone: Mapping[tuple[Any, ...], list[CellGroup]]) -> None:
    """Set what the tenants of a cell are held against, of the cells `alone` of a run by their MATCH_FIELDS.

    `cells`: those of the run by their ids. Of several candidates one in the same environment is preferred, then one
    that was measured as long. A slice of a GPU in MIG mode is another device to CUDA than the whole GPU: it is held
    against the whole one in a host with the same CPU and driver.
    """
    is_slice = shared.row["sharing"] == "mig"
    hardware = ("cpu_model", "num_threads", "driver_version") if is_slice else ("hardware_id",)
    version = drop_build(shared.row["framework_version"])
    for number, (role, who) in enumerate(zip(shared.tenants, ("the cell", "its neighbour"), strict=False)):
        if not shared.sound:
            why = "no repeat was measured under sound conditions"
            shared.reasons[role] = why if shared.ok else f"no ok repeat ({shared.ends})"
            continue
        wanted = describe_cell(cells[shared.row["cell_id"]].as_tenant(number))
        same = alone.get(_get_work(wanted), [])
        ok = [group for group in same if group.ok]
        found = [group for group in ok if _has(group.row, shared.row, hardware)]
        versions = {drop_build(group.row["framework_version"]) for group in found}
        current = [group for group in found if drop_build(group.row["framework_version"]) == version]
        usable = [group for group in current if group.sound]
        if usable:
            near = [group for group in usable if _has(group.row, shared.row, ["environment_id"])] or usable
            as_long = [group for group in near if _has(group.row, wanted, PROTOCOL_FIELDS)]
            shared.alone[role] = (as_long or near)[0]
        elif not same:
            shared.reasons[role] = f"the run has no cell that is {who} alone (tenants 1, the whole device)"
        elif not ok:
            shared.reasons[role] = f"no ok repeat of {who} alone"
        elif not found:
            shared.reasons[role] = f"the hardware of {who} alone differs"
        elif not current:
            others = ", ".join(sorted(map(str, versions)))
            shared.reasons[role] = f"the framework's versions differ, {version} and {others} alone"
        else:
            shared.reasons[role] = f"no repeat of {who} alone was measured under sound conditions"


def _get_work(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in MATCH_FIELDS)


def _has(row: Row, wanted: Row, names: Sequence[str]) -> bool:
    return all(row[name] == wanted[name] for name in names)


def describe_role(shared: CellGroup, role: Role) -> Row:
    """Return the columns of the tenants with one role: speed and latency, and both against the same work alone."""
    tenants, alone = shared.tenants[role], shared.alone.get(role)
    alone_rate = alone.take_rates("cell") if alone else None
    mean = shared.make_series([compute_geometric_mean(own) if min(own) > 0 else 0.0 for own in tenants.rates])
    slowest = shared.make_series([min(own) for own in tenants.rates])
    peaks = [own for own in tenants.peaks if own]
    row = {
        **spread("role_samples_per_s", shared.take_rates(role)),
        **spread("tenant_samples_per_s", mean),
        **spread("alone_samples_per_s", alone_rate),
        **spread("slowdown", _divide(alone_rate, mean)),
        **spread("slowest_slowdown", _divide(alone_rate, slowest)),
        "tenant_peak_bytes": max(map(max, peaks), default=None),
        "role_peak_bytes": max(map(sum, peaks), default=None),
    }
    for percent in PERCENTILES:
        own, before = shared.take_percentile(role, percent), alone.take_percentile("cell", percent) if alone else None
        row |= spread(f"p{percent}_step_seconds", own) | spread(f"p{percent}_ratio", _divide(own, before))
        row[f"alone_p{percent}_step_seconds"] = before.measured.estimate.center if before else None
    return row


def describe_device(shared: CellGroup) -> Row:
    """Return the columns of the device: what all tenants get together, how evenly, and for what energy."""
    if not shared.ok:
        return {}
    rates = [shared.take_rates(role) for role in shared.tenants]
    alone = [shared.alone[role].take_rates("cell") if role in shared.alone else None for role in shared.tenants]
    aggregate = _total(rates, alone)
    return {
        **spread("aggregate_ratio", aggregate),
        "aggregate_log_standard_error": aggregate.log_standard_error if aggregate else None,
        "aggregate_degrees_of_freedom": aggregate.degrees_of_freedom if aggregate else None,
        **_judge(aggregate),
        **_describe_fairness(shared, alone),
        **_describe_energy(shared, rates),
        "device_peak_bytes": max(filter(None, (row["gpu_memory_peak_bytes"] for row in shared.counted)), default=None),
    }


def _describe_fairness(shared: CellGroup, alone: Sequence[Series | None]) -> Row:
    """Return Jain's index over the tenants' rates, each as a share of what its work does alone.

    Where all tenants run the same, that divisor is the same for all and cancels.
    """
    divisors = [series.measured.estimate.center if series else None for series in alone] if len(alone) > 1 else [1.0]
    if shared.row["tenants"] < 2 or None in divisors:
        return {}
    shares = [
        [rate / by for rates, by in zip(repeat, divisors, strict=True) if by is not None for rate in rates]
        for repeat in zip(*(tenants.rates for tenants in shared.tenants.values()), strict=True)
    ]
    indices = [compute_jain_index(found) for found in shares]
    row = spread("jain_index", shared.make_series(indices))
    if row["jain_index_high"] is not None:
        row["jain_index_high"] = min(1.0, row["jain_index_high"])  # the index is no larger
    return row | {"lowest_jain_index": min(indices)}


def _describe_energy(shared: CellGroup, rates: Sequence[Series | None]) -> Row:
    joules, known = shared.take_energy(), [series for series in rates if series is not None]
    if joules is None or len(known) < len(rates):
        return {}
    totals = [sum(parts) for parts in zip(*(series.values for series in known), strict=True)]
    watts = [energy * total for energy, total in zip(joules.values, totals, strict=True)]
    per_joule = [
        shared.make_series([value / power for value, power in zip(series.values, watts, strict=True)])
        for series in known
    ]
    alone = [shared.alone[role].take_energy() if role in shared.alone else None for role in shared.tenants]
    gain = _total(per_joule, [one and one._replace(values=tuple(1 / each for each in one.values)) for one in alone])
    return spread("joules_per_sample", joules) | spread("energy_ratio", invert_estimate(gain) if gain else None)


def _judge(aggregate: Estimate | None) -> Row:
    if aggregate is None or aggregate.interval is None:
        return {}
    direction = "more" if aggregate.center > 1 else "less"
    return {"p_value": aggregate.p_value, "estimate": aggregate, "direction": direction}


def _divide(numerator: Series | None, denominator: Series | None) -> Estimate | None:
    return divide(numerator.measured, denominator.measured) if numerator and denominator else None


def _total(numerators: Sequence[Series | None], denominators: Sequence[Series | None]) -> Estimate | None:
    over, under = [one for one in numerators if one], [one for one in denominators if one]
    if len(over) < len(numerators) or len(under) < len(denominators):
        return None
    return estimate_total(over, under)


def count_fallen(tenants: pd.DataFrame) -> dict[str, Row]:
    """Return, by cell, in how many repeats tenants fell out of memory, and how many did; cells without any left out.

    `tenants`: rows of TENANT_COLUMNS.
    """
    fallen = tenants[tenants["status"] == "oom"]
    numbers = tenants.groupby("cell_id")["tenant"].max() + 1
    found: dict[str, Row] = {}
    for cell_id, rows in fallen.groupby("cell_id", sort=False):
        counts = rows.groupby("repeat").size()
        span = f"{counts.min()}" if counts.min() == counts.max() else f"{counts.min()} to {counts.max()}"
        of_all = count_tenants(int(numbers[cell_id]))
        text = f"{span} of {of_all} in {count_things(len(counts), 'repeat')}"
        found[str(cell_id)] = {"num_fallen_repeats": len(counts), "fallen": text}
    return found


def _with_interval(*names: str) -> Columns:
    return {f"{name}{end}": "float64" for name in names for end in ("", "_low", "_high")}


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
    **{
        name: "float64"
        for percent in PERCENTILES
        for name in (
            *_with_interval(f"p{percent}_step_seconds"),
            f"alone_p{percent}_step_seconds",
            *_with_interval(f"p{percent}_ratio"),
        )
    },
    **_with_interval("aggregate_ratio"),
    "aggregate_log_standard_error": "float64",
    "aggregate_degrees_of_freedom": "float64",
    "joint_low": "float64",
    "joint_high": "float64",
    "p_value": "float64",
    "p_adjusted": "float64",
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


def tabulate_sharing(collection: Collection) -> pd.DataFrame:
    """Return one row per cell that shared its device, environment and role, with the columns SHARING_COLUMNS.

    A figure that cannot be given is missing; `not_compared` says why a row is held against nothing alone.
    A run without such a cell has no rows, and none of its steps are read.
    """
    if not find_shared(collection.results).any():
        return make_frame([], SHARING_COLUMNS)
    groups = list_groups(collection)
    is_shared = dict(zip(collection.results["cell_id"], find_shared(collection.results), strict=True))
    cells = {planned.cell.cell_id: planned.cell for planned in collection.run.cells}
    alone: defaultdict[tuple[Any, ...], list[CellGroup]] = defaultdict(list)
    for group in groups:
        if not is_shared[group.row["cell_id"]]:
            alone[_get_work(group.row)].append(group)
    shared = [group for group in groups if is_shared[group.row["cell_id"]]]
    for group in shared:
        find_alone(group, cells, alone)
    fallen = count_fallen(collection.tenants)
    rows = [
        _describe(group, role) | fallen.get(group.row["cell_id"], {"num_fallen_repeats": 0}) | device
        for group, device in zip(shared, judge_rows([describe_device(group) for group in shared]), strict=True)
        for role in group.tenants
    ]
    return make_frame(rows, SHARING_COLUMNS)


def _describe(group: CellGroup, role: Role) -> Row:
    names = ("run_id", "cell_id", *CELL_COLUMNS, *ENVIRONMENT_COLUMNS)
    alone, number = group.alone.get(role), int(group.row["tenants"])
    of_role = number if len(group.tenants) == 1 else 1 if role == "cell" else number - 1
    return {name: group.row[name] for name in names} | {
        "num_environments": group.num_environments,
        "num_planned": group.num_planned,
        "num_ok": len(group.ok),
        "num_sound": len(group.sound),
        "num_counted": len(group.counted),
        "role": role,
        "num_role_tenants": of_role,
        "alone_cell_id": alone.row["cell_id"] if alone else None,
        "not_compared": group.reasons.get(role),
        "note": _note(group, alone),
        **(describe_role(group, role) if group.ok else {}),
    }


def _note(group: CellGroup, alone: CellGroup | None) -> str:
    notes = []
    if len(group.counted) < len(group.ok):
        notes.append(f"figures from {len(group.counted)} of {len(group.ok)} ok, those with sound conditions")
    if group.ok and not group.sound:
        notes.append(f"no sound repeat: figures from all {len(group.ok)} ok")
    if len(group.counted) == 1:
        notes.append("one repeat counts: no interval")
    if alone is not None and alone.row["environment_id"] != group.row["environment_id"]:
        notes.append("alone in another environment on the same hardware")
    return "; ".join(notes)
