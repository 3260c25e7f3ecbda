"""Read runs into series: a row per cell and hardware, a column per night, with the repeats and the environment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from bench.schema import Cell, Run
from collector.results.cell_repeats import CENTER_RATES, SOUND_VERDICTS
from collector.results.frames import group_rows, list_known
from collector.results.hosts import Place
from collector.results.load import unify_centers

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

Facts = Mapping[str, frozenset[str]]
"""What is recorded of the environment of a cell in one night, by name: the values of its repeats."""

UNSOUND_BUT_SLOW = "throttled"
"""A night in which every repeat was throttled is a slower night, with its cause: it counts. Repeats that others
disturbed, or that ran on the wrong device, say nothing of the cell: they do not."""
FACTS = {
    name: name
    for name in (
        *("instance_type", "driver_version", "framework_version", "python_version", "num_threads", "kubelet_version"),
        *("verdict", "image", "cpu_quota_cores", "kernel", "tool_revision"),
    )
} | {"hostname": "host", "git_revision": "revision"}
"""What is recorded of the environment, to the column of `join_results`."""
READ_COLUMNS = (
    *("run_id", "cell_id", "status", "verdict", "environment_id", "cpu_model", "gpu_name", "image_id"),
    *("instance_type", "driver_version", "framework_version", "python_version", "num_threads", "kubelet_version"),
    *("center_step_seconds", "mean_step_seconds", "summarized_by", "finished_at", *CENTER_RATES),
    *Place._fields,
)


@dataclass(frozen=True, kw_only=True)
class SeriesKey:
    """What a series is of: a cell on one kind of hardware. A night on other hardware is in another series."""

    cell: Cell
    cpu_model: str
    gpu_name: str | None

    @property
    def hardware(self) -> str:
        """CPU model and GPU name, for people."""
        return self.cpu_model if self.gpu_name is None else f"{self.cpu_model}, {self.gpu_name}"

    @property
    def group(self) -> tuple[str, str]:
        """What cells that share the noise of a night have in common: device and hardware."""
        return self.cell.device, self.hardware


@dataclass(frozen=True, kw_only=True)
class Nights:
    """The series of a matrix, the oldest night first. NaN stands for a night without a repeat that counts."""

    runs: tuple[Run, ...]
    keys: tuple[SeriesKey, ...]
    logs: FloatArray
    """Mean of the logs of the repeats' step times (seconds), shape (series, nights)."""
    num_repeats: IntArray
    """Repeats that count, shape (series, nights)."""
    sums_of_squares: FloatArray
    """Of the deviations of the repeats' logs from their mean, shape (series, nights)."""
    facts: tuple[tuple[Facts, ...], ...] = ()
    """The environment, by series and night; empty: not collected, as in simulations."""

    @property
    def variances(self) -> FloatArray:
        """Variance of each night's mean that comes from its repeats, shape (series, nights).

        The spread of repeats is that of all nights of the series. Where no night has two repeats it is unknown: 0 then,
        and the spread between nights, which includes it, stands for both.
        """
        freedom = np.maximum(self.num_repeats - 1, 0).sum(axis=1)
        squares = np.nansum(self.sums_of_squares, axis=1)
        single = np.divide(squares, freedom, out=np.zeros_like(squares), where=freedom > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            means = single[:, np.newaxis] / self.num_repeats
        return np.where(self.num_repeats > 0, means, np.nan)

    def find_groups(self) -> dict[tuple[str, str], IntArray]:
        """Return the rows of the series that share a device and hardware."""
        rows: dict[tuple[str, str], list[int]] = {}
        for row, key in enumerate(self.keys):
            rows.setdefault(key.group, []).append(row)
        return {group: np.array(found) for group, found in rows.items()}


@dataclass(frozen=True, kw_only=True)
class CellNight:
    """The repeats of a cell that count in one run."""

    logs: tuple[float, ...]
    """Of their step times in seconds."""
    facts: Facts

    @property
    def instance_types(self) -> frozenset[str]:
        """Machine types of the nodes; empty: not recorded."""
        return self.facts.get("instance_type", frozenset())

    def join(self, other: "CellNight") -> "CellNight":
        """Return both as one night; the environment is this one's."""
        return replace(self, logs=self.logs + other.logs)


CellNights = Mapping[SeriesKey, CellNight]


def read_nights(runs: Mapping[str, Run], results: pd.DataFrame) -> dict[str, CellNights]:
    """Return by run the repeats of each cell that count, by cell and hardware; cells without any are left out.

    `results`: of all runs (by `join_results`, with READ_COLUMNS), so that one statistic stands for all repeats of a
    cell and a host has one name. Sound repeats count; where a cell has none, throttled ones do.
    """
    found: dict[str, CellNights] = {run_id: {} for run_id in runs}
    ok = results[(results["status"] == "ok") & results["center_step_seconds"].notna() & results["cpu_model"].notna()]
    for run_id, frame in unify_centers(ok).groupby("run_id", sort=False):
        cells = {planned.cell.cell_id: planned.cell for planned in runs[str(run_id)].cells}
        night: dict[SeriesKey, CellNight] = {}
        for (cell_id,), repeats in group_rows(list_known(frame), ["cell_id"]).items():
            sound = [row for row in repeats if row["verdict"] in SOUND_VERDICTS]
            counted = sound or [row for row in repeats if row["verdict"] == UNSOUND_BUT_SLOW]
            for (cpu_model, gpu_name), own in group_rows(counted, ["cpu_model", "gpu_name"]).items():
                logs = np.log([row["center_step_seconds"] for row in own])
                facts = {
                    fact: frozenset(str(row[column]) for row in own if row[column] is not None)
                    for fact, column in FACTS.items()
                }
                key = SeriesKey(cell=cells[cell_id], cpu_model=cpu_model, gpu_name=gpu_name)
                night[key] = CellNight(logs=tuple(map(float, logs)), facts=facts)
        found[str(run_id)] = night
    return found


def tabulate_nights(runs: Sequence[Run], nights: Sequence[CellNights]) -> Nights:
    """Return the series of `nights`, the repeats of one run each, in the order of `runs`."""
    keys = tuple(dict.fromkeys(key for night in nights for key in night))
    shape = (len(keys), len(nights))
    logs, squares, counts = np.full(shape, np.nan), np.zeros(shape), np.zeros(shape, dtype=np.int64)
    for row, key in enumerate(keys):
        for column, night in enumerate(nights):
            if key in night:
                values = np.array(night[key].logs)
                logs[row, column], counts[row, column] = values.mean(), len(values)
                squares[row, column] = ((values - values.mean()) ** 2).sum()
    facts = tuple(tuple(night[key].facts if key in night else {} for night in nights) for key in keys)
    return Nights(runs=tuple(runs), keys=keys, logs=logs, num_repeats=counts, sums_of_squares=squares, facts=facts)
