"""Tabulate what tenants of one device do to each other: each against the same work alone, and all of them together."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from bench.schema import Cell
from collector.ratio_words import judge_rows
from collector.results.collection import Collection
from collector.results.frames import (
    CELL_COLUMNS,
    ENVIRONMENT_COLUMNS,
    PROTOCOL_FIELDS,
    SHARING_FIELDS,
    Columns,
    Row,
    describe_cell,
    find_shared,
    group_rows,
    is_shared,
    list_rows,
    make_frame,
)
from collector.results.hosts import drop_build
from collector.results.summary import SOUND_VERDICTS, count_values
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
    is_first: tuple[bool, ...] = ()

    @property
    def measured(self) -> Measured:
        return measure(self.values, self.machines, self.is_first)

    def over(self, divisors: Sequence[float]) -> "Series":
        return self._replace(values=tuple(value / by for value, by in zip(self.values, divisors, strict=True)))


def estimate_total(numerators: Sequence[Series], denominators: Sequence[Series]) -> Estimate:
    """Return the sum of the quotients, one for each kind of tenant; of one kind it is their quotient.

    The numerators are of the same repeats, place by place; the denominators are independent of them and of each other.
    docs/statistics.md, "Sharing", says how the uncertainty of each enters (the delta method).
    """
    machines = numerators[0].machines
    if len(set(machines)) > 1 and all(set(one.machines) == set(machines) for one in (*numerators, *denominators)):
        means = [denominator.measured.means for denominator in denominators]
        totals = _add(numerators, [[mean[machine] for machine in machines] for mean in means])
        return estimate_center(list(average_by_machine(totals, machines).values()))
    known = [denominator.measured.estimate for denominator in denominators]
    totals = _add(numerators, [[estimate.center] * len(machines) for estimate in known])
    weights = [
        sum(numerator.over(totals).values) / estimate.center / len(totals)
        for numerator, estimate in zip(numerators, known, strict=True)
    ]
    total = measure(totals, machines, numerators[0].is_first).estimate
    return estimate_ratio(total, combine_estimates(1.0, list(zip(known, weights, strict=True))))


def compute_jain_index(shares: Sequence[float]) -> float:
    """Return Jain's index (sum x)^2 / (n sum x^2) of normalised shares: 1 where all are equal, 1/n where one has all.

    R. Jain, D. Chiu, W. Hawe, A Quantitative Measure of Fairness and Discrimination for Resource Allocation in Shared
    Computer Systems, DEC Research Report TR-301, 1984.
    """
    return sum(shares) ** 2 / (len(shares) * sum(share**2 for share in shares))


def _add(numerators: Sequence[Series], denominators: Sequence[Sequence[float]]) -> list[float]:
    quotients = (one.over(by).values for one, by in zip(numerators, denominators, strict=True))
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
ENERGY_COLUMNS = {"gpu": "gpu_energy_per_sample_joules", "cpu": "cpu_energy_per_sample_joules"}
MEMORY_COLUMN = {"gpu": "peak_memory_allocated_bytes", "cpu": "peak_rss_bytes"}
"""By device, what a tenant's memory is: of a GPU, the peak of its framework's allocator in the window."""
MATCH_FIELDS = tuple(name for name in CELL_COLUMNS if name not in (*SHARING_FIELDS, *PROTOCOL_FIELDS))
"""What is equal in a tenant's cell and in the cell alone: all but with whom it ran, and how long was measured."""
COUNTS = ("num_environments", "num_planned", "num_ok", "num_sound", "num_counted")


@dataclass(frozen=True, kw_only=True)
class CellGroup:
    """The repeats of one cell that ended ok in one environment; a cell without any has one group without rows."""

    row: Row
    """One of its repeats, and COUNTS."""
    ok: Sequence[Row]
    sound: Sequence[Row]
    """Those whose conditions were not at fault."""
    counted: Sequence[Row]
    """The repeats that figures come from, as in the summary."""
    ends: str
    """How the cell's planned repeats ended, in any environment, that did not end ok."""
    figures: Mapping[Role, Sequence[Row]]
    """What the tenants with each role did in each repeat that counts; a cell alone is its only tenant."""

    def take(self, name: str, role: Role = "cell") -> Series | None:
        """Return a figure of each repeat as a series; None where there is none, or where a repeat lacks it."""
        values = tuple(figures[name] for figures in self.figures[role])
        return self.make_series(values) if values and all(values) else None

    def make_series(self, values: tuple[float, ...]) -> Series:
        machines, is_first = (tuple(row[name] for row in self.counted) for name in ("machine", "is_first_stage"))
        return Series(values, machines, is_first)


def list_groups(collection: Collection) -> list[CellGroup]:
    """Return the groups of a run in the order of the plan, of cells that shared their device and of those alone."""
    results = collection.results
    tenants = group_rows(list_rows(collection.tenants.sort_values("tenant", kind="stable")), ["cell_id", "repeat"])
    groups = []
    for planned in group_rows(list_rows(results.assign(place=results.index)), ["cell_id"]).values():
        by_environment = group_rows((row for row in planned if row["status"] == "ok"), ["environment_id"])
        for ok in by_environment.values() or [[]]:
            sound = [row for row in ok if row["verdict"] in SOUND_VERDICTS]
            cell = (ok or planned)[0]
            parts: dict[Role, slice] = {"cell": slice(None)}
            if cell["neighbour"] is not None:
                parts = {"cell": slice(1), "neighbour": slice(1, None)}
            repeats = [
                (row, tenants.get((row["cell_id"], row["repeat"]), [row]), collection.steps.read_timed(row["place"]))
                for row in sound or ok
            ]
            counts = map(len, (by_environment, planned, ok, sound, sound or ok))
            groups.append(
                CellGroup(
                    row=cell | dict(zip(COUNTS, counts, strict=True)),
                    ok=ok,
                    sound=sound,
                    counted=sound or ok,
                    ends=count_values(row["status"] for row in planned if row["status"] != "ok"),
                    figures={
                        role: [_measure(row, records[part], steps[part]) for row, records, steps in repeats]
                        for role, part in parts.items()
                    },
                )
            )
    return groups


def _measure(row: Row, tenants: Sequence[Row], series: Sequence[FloatArray]) -> Row:
    """Return what tenants did in a repeat: rates in samples per second, memory in bytes, percentiles in seconds."""
    rates = [one["window_samples_per_s"] for one in tenants]
    peaks = [int(one[name]) for name in [MEMORY_COLUMN[row["device"]]] for one in tenants if one[name] is not None]
    steps = np.concatenate(series)
    percentiles = {
        f"p{percent}": float(np.quantile(steps, percent / 100)) if len(steps) >= least else None
        for percent, least in MIN_STEPS.items()
    }
    return percentiles | {
        "rates": rates,
        "rate": sum(rates),
        "mean": compute_geometric_mean(rates) if min(rates) > 0 else None,
        "slowest": min(rates),
        "peak": max(peaks, default=None),
        "sum of peaks": sum(peaks) or None,
        "energy": row[ENERGY_COLUMNS[row["device"]]],
    }


Alone = Mapping[Role, CellGroup | str]
"""What the tenants with each role are held against, or why against nothing."""


def find_alone(shared: CellGroup, cells: Mapping[str, Cell], alone: Mapping[tuple[Any, ...], list[CellGroup]]) -> Alone:
    """Return what the tenants of a cell are held against, of the cells `alone` of a run by their MATCH_FIELDS.

    `cells`: those of the run by their ids. docs/statistics.md, "Sharing", says which one is chosen, and why.
    """
    if not shared.sound:
        why = "no repeat was measured under sound conditions" if shared.ok else f"no ok repeat ({shared.ends})"
        return dict.fromkeys(shared.figures, why)
    found: dict[Role, CellGroup | str] = {}
    for number, (role, who) in enumerate(zip(shared.figures, ("the cell", "its neighbour"), strict=False)):
        wanted = describe_cell(cells[shared.row["cell_id"]].as_tenant(number))
        found[role] = _choose_alone(
            shared.row, wanted, alone.get(tuple(wanted[name] for name in MATCH_FIELDS), []), who
        )
    return found


def _choose_alone(shared: Row, wanted: Row, candidates: Sequence[CellGroup], who: str) -> CellGroup | str:
    if not candidates:
        return f"the run has no cell that is {who} alone (tenants 1, the whole device)"
    if not (ok := [group for group in candidates if group.ok]):
        return f"no ok repeat of {who} alone"
    is_slice = shared["sharing"] == "mig"
    hardware = ("cpu_model", "num_threads", "driver_version") if is_slice else ("hardware_id",)
    if not (found := [group for group in ok if _has(group.row, shared, hardware)]):
        return f"the hardware of {who} alone differs"
    version = drop_build(shared["framework_version"])
    if not (current := [group for group in found if drop_build(group.row["framework_version"]) == version]):
        others = ", ".join(sorted({str(drop_build(group.row["framework_version"])) for group in found}))
        return f"the framework's versions differ, {version} and {others} alone"
    if not (usable := [group for group in current if group.sound]):
        return f"no repeat of {who} alone was measured under sound conditions"
    near = [group for group in usable if _has(group.row, shared, ["environment_id"])] or usable
    return next((group for group in near if _has(group.row, wanted, PROTOCOL_FIELDS)), near[0])


def _has(row: Row, wanted: Row, names: Sequence[str]) -> bool:
    return all(row[name] == wanted[name] for name in names)


def describe_role(shared: CellGroup, role: Role, alone: CellGroup | None) -> Row:
    """Return the columns of the tenants with one role: speed and latency, and both against the same work alone."""
    alone_rate = alone.take("rate") if alone else None
    mean = shared.take("mean", role)
    figures = shared.figures[role]
    row = {
        **spread("role_samples_per_s", shared.take("rate", role)),
        **spread("tenant_samples_per_s", mean),
        **spread("alone_samples_per_s", alone_rate),
        **spread("slowdown", _divide(alone_rate, mean)),
        **spread("slowest_slowdown", _divide(alone_rate, shared.take("slowest", role))),
        "tenant_peak_bytes": max(filter(None, (one["peak"] for one in figures)), default=None),
        "role_peak_bytes": max(filter(None, (one["sum of peaks"] for one in figures)), default=None),
    }
    for name in (f"p{percent}" for percent in MIN_STEPS):
        own, before = shared.take(name, role), alone.take(name) if alone else None
        row |= spread(f"{name}_step_seconds", own) | spread(f"{name}_ratio", _divide(own, before))
        row[f"alone_{name}_step_seconds"] = before.measured.estimate.center if before else None
    return row


def describe_device(shared: CellGroup, alone: Sequence[CellGroup | None]) -> Row:
    """Return the columns of the device: what all tenants get together, how evenly, and for what energy.

    `alone`: what the tenants of each role are held against.
    """
    if not shared.ok:
        return {}
    rates = [shared.take("rate", role) for role in shared.figures]
    alone_rates = [one.take("rate") if one else None for one in alone]
    row = _describe_fairness(shared, alone_rates) | _describe_energy(shared, rates, alone)
    peaks = (one["gpu_memory_peak_bytes"] for one in shared.counted)
    row["device_peak_bytes"] = max(filter(None, peaks), default=None)
    total = _total(rates, alone_rates)
    if total is None:
        return row
    row |= spread("aggregate_ratio", total) | {
        f"aggregate_{name}": getattr(total, name) for name in ("log_standard_error", "degrees_of_freedom")
    }
    return row | ({"estimate": total} if total.interval else {})


def _describe_fairness(shared: CellGroup, alone: Sequence[Series | None]) -> Row:
    """Return Jain's index over the tenants' rates, each as a share of what its work does alone.

    Where all tenants run the same, that divisor is the same for all and cancels.
    """
    divisors = [series.measured.estimate.center if series else None for series in alone] if len(alone) > 1 else [1.0]
    if shared.row["tenants"] < 2 or None in divisors:
        return {}
    indices = [
        compute_jain_index([rate / by for one, by in zip(roles, divisors, strict=True) if by for rate in one["rates"]])
        for roles in zip(*shared.figures.values(), strict=True)
    ]
    row = spread("jain_index", shared.make_series(tuple(indices)))
    if row["jain_index_high"] is not None:
        row["jain_index_high"] = min(1.0, row["jain_index_high"])  # the index is no larger
    return row | {"lowest_jain_index": min(indices)}


def _describe_energy(shared: CellGroup, rates: Sequence[Series | None], alone: Sequence[CellGroup | None]) -> Row:
    joules, known = shared.take("energy"), [series for series in rates if series]
    if joules is None or len(known) < len(rates):
        return {}
    totals = [sum(parts) for parts in zip(*(series.values for series in known), strict=True)]
    watts = [energy * total for energy, total in zip(joules.values, totals, strict=True)]
    per_joule = [series.over(watts) for series in known]
    energies = [one.take("energy") if one else None for one in alone]
    gain = _total(per_joule, [one and one._replace(values=tuple(1 / each for each in one.values)) for one in energies])
    return spread("joules_per_sample", joules) | spread("energy_ratio", invert_estimate(gain) if gain else None)


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
        of_all = count_things(int(numbers[cell_id]), "tenant")
        text = f"{span} of {of_all} in {count_things(len(counts), 'repeat')}"
        found[str(cell_id)] = {"num_fallen_repeats": len(counts), "fallen": text}
    return found


def _with_interval(*names: str) -> Columns:
    return {f"{name}{end}": "float64" for name in names for end in ("", "_low", "_high")}


SHARING_COLUMNS: Columns = {
    **{"run_id": "str", "cell_id": "str"},
    **CELL_COLUMNS,
    **{name: ENVIRONMENT_COLUMNS[name] for name in ("environment_id", "hardware_id", "gpu_name")},
    **dict.fromkeys(COUNTS, "int64"),
    **{"role": "str", "num_role_tenants": "int64", "alone_cell_id": "str"},
    **_with_interval("tenant_samples_per_s", "role_samples_per_s", "alone_samples_per_s"),
    **_with_interval("slowdown", "slowest_slowdown"),
    **{
        name: "float64"
        for percent in MIN_STEPS
        for name in (
            *_with_interval(f"p{percent}_step_seconds"),
            f"alone_p{percent}_step_seconds",
            *_with_interval(f"p{percent}_ratio"),
        )
    },
    **_with_interval("aggregate_ratio"),
    **dict.fromkeys(("aggregate_log_standard_error", "aggregate_degrees_of_freedom"), "float64"),
    **dict.fromkeys(("joint_low", "joint_high", "p_value", "p_adjusted"), "float64"),
    "decision": "str",
    **_with_interval("jain_index"),
    "lowest_jain_index": "float64",
    **_with_interval("joules_per_sample", "energy_ratio"),
    **dict.fromkeys(("tenant_peak_bytes", "role_peak_bytes", "device_peak_bytes"), "Int64"),
    "num_fallen_repeats": "int64",
    **dict.fromkeys(("fallen", "not_compared", "note"), "str"),
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
    cells = {planned.cell.cell_id: planned.cell for planned in collection.run.cells}
    shared = [group for group in groups if is_shared(group.row)]
    alone: defaultdict[tuple[Any, ...], list[CellGroup]] = defaultdict(list)
    for group in groups:
        if not is_shared(group.row):
            alone[tuple(group.row[name] for name in MATCH_FIELDS)].append(group)
    held = [find_alone(group, cells, alone) for group in shared]
    devices = [
        describe_device(group, [one if isinstance(one, CellGroup) else None for one in found.values()])
        for group, found in zip(shared, held, strict=True)
    ]
    fallen = count_fallen(collection.tenants)
    rows = [
        _describe(group, role, own) | fallen.get(group.row["cell_id"], {"num_fallen_repeats": 0}) | device
        for group, found, device in zip(shared, held, judge_rows(devices, "more", "less"), strict=True)
        for role, own in found.items()
    ]
    return make_frame(rows, SHARING_COLUMNS)


def _describe(group: CellGroup, role: Role, found: CellGroup | str) -> Row:
    names = ("run_id", "cell_id", *CELL_COLUMNS, *ENVIRONMENT_COLUMNS, *COUNTS)
    alone, number = found if isinstance(found, CellGroup) else None, int(group.row["tenants"])
    of_role = number if len(group.figures) == 1 else 1 if role == "cell" else number - 1
    return {name: group.row[name] for name in names} | {
        "role": role,
        "num_role_tenants": of_role,
        "alone_cell_id": alone.row["cell_id"] if alone else None,
        "not_compared": None if alone else found,
        "note": _note(group, alone),
        **(describe_role(group, role, alone) if group.ok else {}),
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
