"""Read what the tenants of each repeat did, find the same work alone, and estimate quotients and sums of both."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd

from bench.schema import Cell
from collector.results.cell_repeats import SOUND_VERDICTS, Repeats
from collector.results.collection import Collection
from collector.results.frames import (
    CELL_COLUMNS,
    ENVIRONMENT_COLUMNS,
    PROTOCOL_FIELDS,
    SHARING_FIELDS,
    Row,
    describe_cell,
    find_shared,
)
from collector.results.hosts import drop_build
from collector.statistics import (
    MIN_SAMPLES,
    Estimate,
    FloatArray,
    average_by_machine,
    estimate_cell,
    estimate_center,
    estimate_paired_ratio,
    estimate_ratio,
)


@dataclass(frozen=True, kw_only=True)
class Series:
    """One figure (> 0) of each repeat that counts, and the machine that the repeat ran on; at least one."""

    values: tuple[float, ...]
    machines: tuple[str, ...]

    def estimate(self) -> Estimate:
        """Return the geometric mean with its interval."""
        return estimate_cell(self.values, self.machines)

    def average(self) -> dict[str, float]:
        """Return the geometric mean of each machine."""
        return average_by_machine(self.values, self.machines)


def estimate_quotient(numerator: Series, denominator: Series) -> Estimate:
    """Return numerator over denominator: on each machine where both ran on the same several, else by Welch."""
    if _is_paired([numerator, denominator]):
        return estimate_paired_ratio(numerator.average(), denominator.average())
    return estimate_ratio(numerator.estimate(), denominator.estimate())


def estimate_total(numerators: Sequence[Series], denominators: Sequence[Series]) -> Estimate:
    """Return the sum of the quotients, one for each kind of tenant; of one kind it is `estimate_quotient`.

    The numerators are of the same repeats, place by place, and are added repeat by repeat, so what a repeat does to all
    of them is in the spread of the sums. The denominators are independent of them and of each other: each adds the
    square of its log standard error, weighted by the square of its share of the sum (the delta method), with Welch and
    Satterthwaite's degrees of freedom.
    """
    machines = numerators[0].machines
    if _is_paired([*numerators, *denominators]):
        means = [denominator.average() for denominator in denominators]
        totals = _add(numerators, [[mean[machine] for machine in machines] for mean in means])
        return estimate_center(list(average_by_machine(totals, machines).values()))
    known = [denominator.estimate() for denominator in denominators]
    totals = _add(numerators, [[estimate.center] * len(machines) for estimate in known])
    weights = [
        sum(value / estimate.center / total for value, total in zip(numerator.values, totals, strict=True))
        / len(totals)
        for numerator, estimate in zip(numerators, known, strict=True)
    ]
    return estimate_ratio(estimate_cell(totals, machines), _combine(known, weights))


def compute_jain_index(shares: Sequence[float]) -> float:
    """Return Jain's index (sum x)^2 / (n sum x^2) of normalised shares: 1 where all are equal, 1/n where one has all.

    R. Jain, D. Chiu, W. Hawe, A Quantitative Measure of Fairness and Discrimination for Resource Allocation in Shared
    Computer Systems, DEC Research Report TR-301, 1984.
    """
    return sum(shares) ** 2 / (len(shares) * sum(share**2 for share in shares))


def _is_paired(series: Sequence[Series]) -> bool:
    machines = [set(one.machines) for one in series]
    return len(machines[0]) > 1 and all(found == machines[0] for found in machines)


def _add(numerators: Sequence[Series], denominators: Sequence[Sequence[float]]) -> list[float]:
    quotients = (
        [value / by for value, by in zip(numerator.values, divisors, strict=True)]
        for numerator, divisors in zip(numerators, denominators, strict=True)
    )
    return [sum(parts) for parts in zip(*quotients, strict=True)]


def _combine(estimates: Sequence[Estimate], weights: Sequence[float]) -> Estimate:
    parts = [
        ((weight * estimate.log_standard_error) ** 2, estimate.degrees_of_freedom)
        for estimate, weight in zip(estimates, weights, strict=True)
        if estimate.log_standard_error is not None and estimate.degrees_of_freedom is not None
    ]
    if len(parts) < len(estimates):
        return Estimate(center=1.0, log_standard_error=None, degrees_of_freedom=None)
    variance = sum(squared for squared, _ in parts)
    freedom = 1 / sum((squared / variance) ** 2 / freedom for squared, freedom in parts)
    return Estimate(center=1.0, log_standard_error=math.sqrt(variance), degrees_of_freedom=freedom)


def spread(name: str, estimate: Estimate | None) -> Mapping[str, float | None]:
    """Return the columns `name`, `name_low` and `name_high` of an estimate; missing where it, or its interval, is."""
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


@dataclass(frozen=True, kw_only=True)
class CellGroup:
    """The repeats of one cell that ended ok in one environment; a cell without any has one group without rows."""

    row: Row
    """The columns CELL_COLUMNS and ENVIRONMENT_COLUMNS, `run_id` and `cell_id`."""
    is_shared: bool
    num_planned: int
    num_environments: int
    statuses: Mapping[str, int]
    """How the cell's planned repeats ended, in any environment, but for those that ended ok."""
    ok: Sequence[int]
    """Rows of the results that ended ok in this environment."""
    sound: Sequence[int]
    """Those of them whose conditions were not at fault."""

    @property
    def counted(self) -> Sequence[int]:
        """The rows that figures come from, as in the summary: the sound ones, or all ok ones where there are none."""
        return self.sound or self.ok

    @property
    def roles(self) -> tuple[Role, ...]:
        """The kinds of tenants that the cell has."""
        return ("cell",) if pd.isna(self.row["neighbour"]) else ("cell", "neighbour")

    def count_tenants(self, role: Role) -> int:
        if len(self.roles) == 1:
            return int(self.row["tenants"])
        return 1 if role == "cell" else int(self.row["tenants"]) - 1


@dataclass(kw_only=True)
class GroupFigures:
    """Holds what the tenants of a cell did: a value for each repeat that counts."""

    machines: tuple[str, ...]
    rates: dict[Role, list[tuple[float, ...]]] = field(default_factory=lambda: defaultdict(list))
    """Samples per second of each tenant with the role."""
    latencies: dict[Role, dict[int, list[float]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )
    """Percentile to seconds: of the steps of all tenants with the role; repeats with too few steps are left out."""
    memory_bytes: dict[Role, list[tuple[int, ...]]] = field(default_factory=lambda: defaultdict(list))
    """Peak of each tenant whose peak is known."""
    joules_per_sample: tuple[float, ...] = ()
    """Energy over the samples of all tenants; empty where a repeat does not say it, or says 0."""
    device_peak_bytes: int | None = None
    """The most memory in use on the GPU in any of the repeats; None: not readable, or a CPU."""

    def take_rates(self, role: Role) -> list[list[float]]:
        return [list(rates) for rates in self.rates[role]]

    def make_series(self, values: Sequence[float]) -> Series | None:
        """Return a value of each repeat as a series; None where there is none, or where a repeat lacks one."""
        if not values or len(values) < len(self.machines) or min(values) <= 0:
            return None
        return Series(values=tuple(values), machines=self.machines)


def list_groups(results: pd.DataFrame) -> list[CellGroup]:
    """Return the groups of a run in the order of the plan, of cells that shared their device and of those alone."""
    repeats = Repeats(results)
    shared = find_shared(results).to_list()
    verdicts, status = repeats.values("verdict"), repeats.values("status")
    names = ("run_id", "cell_id", *CELL_COLUMNS, *ENVIRONMENT_COLUMNS)
    groups = []
    for cell in repeats.group_by_cell():
        planned = range(cell.first, cell.first + cell.num_planned)
        ended = [status[index] for index in planned if status[index] != "ok"]
        for ok in cell.ok or [[]]:
            first = ok[0] if ok else cell.first
            groups.append(
                CellGroup(
                    row={name: repeats.values(name)[first] for name in names},
                    is_shared=shared[cell.first],
                    num_planned=cell.num_planned,
                    num_environments=len(cell.ok),
                    statuses={name: ended.count(name) for name in dict.fromkeys(ended)},
                    ok=ok,
                    sound=[index for index in ok if verdicts[index] in SOUND_VERDICTS],
                )
            )
    return groups


def measure_groups(collection: Collection, groups: Sequence[CellGroup]) -> Iterator[GroupFigures]:
    """Yield the figures of each group, of the repeats that count; step times are read piece by piece."""
    reader = _Reader(collection)
    places = [place for group in groups for place in reader.find_places(group)]
    steps = collection.steps.read_timed([collection.steps.find_tenants(place) for place in places])
    for group in groups:
        yield reader.read(group, steps)


class _Reader:
    """Reads the figures of groups from one collection."""

    def __init__(self, collection: Collection) -> None:
        self._repeats = Repeats(collection.results)
        self._tenants: dict[tuple[str, int], list[Row]] = {}
        for row in collection.tenants.to_dict("records"):
            self._tenants.setdefault((row["cell_id"], row["repeat"]), []).append(
                {str(name): value for name, value in row.items()}
            )

    def find_places(self, group: CellGroup) -> list[int]:
        """Return which of the run's series of steps are those of the group's repeats, of tenant 0."""
        return self._repeats.find_places(group.counted)

    def read(self, group: CellGroup, steps: Iterator[list[FloatArray]]) -> GroupFigures:
        """Return the figures of a group; `steps`: from which those of its repeats come next, a series per tenant."""
        values = self._repeats.values
        energies = [values(ENERGY_COLUMNS[group.row["device"]])[index] for index in group.counted]
        figures = GroupFigures(
            machines=tuple(values("machine")[index] for index in group.counted),
            joules_per_sample=tuple(energies) if all(energies) else (),
            device_peak_bytes=max(
                filter(None, (values("gpu_memory_peak_bytes")[row] for row in group.counted)), default=None
            ),
        )
        for index in group.counted:
            tenants, series = self._list_tenants(group, index), next(steps)
            for role in group.roles:
                own = [number for number in range(len(tenants)) if find_role(group, number) == role]
                figures.rates[role].append(tuple(tenants[number]["window_samples_per_s"] for number in own))
                peaks = [tenants[number][MEMORY_COLUMN[group.row["device"]]] for number in own]
                figures.memory_bytes[role].append(tuple(int(peak) for peak in peaks if pd.notna(peak)))
                _add_latencies(figures.latencies[role], [series[number] for number in own])
        return figures

    def _list_tenants(self, group: CellGroup, index: int) -> list[Row]:
        found = self._tenants.get((group.row["cell_id"], self._repeats.values("repeat")[index]))
        if found:
            return sorted(found, key=lambda row: row["tenant"])
        names = ("window_samples_per_s", *MEMORY_COLUMN.values())
        return [{name: self._repeats.values(name)[index] for name in names}]


def find_role(group: CellGroup, tenant: int) -> Role:
    """Return the role of a tenant, counted from 0."""
    return group.roles[min(tenant, len(group.roles) - 1)]


def _add_latencies(latencies: dict[int, list[float]], series: Sequence[FloatArray]) -> None:
    pooled = np.concatenate(series)
    for percent in PERCENTILES:
        if len(pooled) >= MIN_STEPS[percent]:
            latencies[percent].append(float(np.quantile(pooled, percent / 100)))


MATCH_FIELDS = tuple(name for name in CELL_COLUMNS if name not in (*SHARING_FIELDS, *PROTOCOL_FIELDS))
"""What is equal in a tenant's cell and in the cell alone: all but with whom it ran, and how long was measured."""


@dataclass(frozen=True, kw_only=True)
class Alone:
    """The cell alone that tenants with one role are held against, or why there is none."""

    group: CellGroup | None = None
    reason: str = ""


AloneByWork = Mapping[tuple[Any, ...], Sequence[CellGroup]]
"""The cells alone of a run by their MATCH_FIELDS, so that each with tenants is not held against each of them."""


def index_alone(groups: Iterable[CellGroup]) -> AloneByWork:
    """Return those of a run's groups that had the device to themselves, by their work."""
    found: defaultdict[tuple[Any, ...], list[CellGroup]] = defaultdict(list)
    for group in groups:
        if not group.is_shared:
            found[_get_work(group.row)].append(group)
    return found


def find_alone(shared: CellGroup, role: Role, cell: Cell, alone: AloneByWork) -> Alone:
    """Return what the tenants of `shared` that have the `role` are held against, of the cells `alone` of a run.

    `cell`: that of `shared`. Of several candidates one in the same environment is preferred, then one that was measured
    as long. A slice of a GPU in MIG mode is another device to CUDA than the whole GPU: it is held against the whole one
    in a host with the same CPU and driver.
    """
    wanted = describe_cell(cell.as_tenant(0 if role == "cell" else 1))
    same = alone.get(_get_work(wanted), ())
    ok = [group for group in same if group.ok]
    found = [group for group in ok if _is_same_hardware(shared.row, group.row)]
    current = [group for group in found if _read_version(group) == _read_version(shared)]
    usable = [group for group in current if group.sound]
    if usable:
        return Alone(group=min(usable, key=lambda group: _rank(shared, group, wanted)))
    return Alone(reason=_explain(role, [same, ok, found, current], shared))


def _explain(role: Role, stages: Sequence[Sequence[CellGroup]], shared: CellGroup) -> str:
    who = "the cell" if role == "cell" else "its neighbour"
    same, ok, found, current = stages
    if not same:
        return f"the run has no cell that is {who} alone (tenants 1, the whole device)"
    if not ok:
        return f"no ok repeat of {who} alone"
    if not found:
        return f"the hardware of {who} alone differs"
    if not current:
        versions = ", ".join(sorted({str(_read_version(group)) for group in found}))
        return f"the framework's versions differ, {_read_version(shared)} and {versions} alone"
    return f"no repeat of {who} alone was measured under sound conditions"


def _rank(shared: CellGroup, group: CellGroup, wanted: Row) -> tuple[bool, bool]:
    is_elsewhere = group.row["environment_id"] != shared.row["environment_id"]
    return is_elsewhere, not _has(group.row, wanted, PROTOCOL_FIELDS)


def _get_work(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in MATCH_FIELDS)


def _has(row: Row, wanted: Row, names: Sequence[str]) -> bool:
    return all(row[name] == wanted[name] for name in names)


def _is_same_hardware(shared: Row, alone: Row) -> bool:
    is_slice = shared["sharing"] == "mig"
    return _has(alone, shared, ["cpu_model", "num_threads", "driver_version"] if is_slice else ["hardware_id"])


def _read_version(group: CellGroup) -> str | None:
    return drop_build(group.row["framework_version"])
