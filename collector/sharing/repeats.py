"""Read what the tenants of each repeat did: their rates, latencies, memory, and the energy of all of them together."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pandas as pd

from collector.results.cell_repeats import SOUND_VERDICTS, Repeats
from collector.results.cells import find_shared
from collector.results.collection import Collection
from collector.results.frames import CELL_COLUMNS, ENVIRONMENT_COLUMNS, Row
from collector.sharing.series import Series
from collector.statistics import MIN_SAMPLES, FloatArray

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
        """Return how many tenants have the role."""
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
        """Return the rates of the tenants with the role, a list for each repeat."""
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
        """Return a row for each tenant of a repeat; of a cell without tenants one, made of its result."""
        found = self._tenants.get((group.row["cell_id"], self._repeats.values("repeat")[index]))
        if found:
            return sorted(found, key=lambda row: row["tenant"])
        names = ("window_samples_per_s", *MEMORY_COLUMN.values())
        return [{name: self._repeats.values(name)[index] for name in names}]


def find_role(group: CellGroup, tenant: int) -> Role:
    """Return the role of a tenant, counted from 0."""
    return group.roles[min(tenant, len(group.roles) - 1)]


def _add_latencies(latencies: dict[int, list[float]], series: Sequence[FloatArray]) -> None:
    """Add the percentiles of one repeat, those that it has steps enough for."""
    pooled = np.concatenate(series)
    for percent in PERCENTILES:
        if len(pooled) >= MIN_STEPS[percent]:
            latencies[percent].append(float(np.quantile(pooled, percent / 100)))
