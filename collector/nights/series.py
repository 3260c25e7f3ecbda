"""Read runs into series: a row per cell and hardware, a column per night, with the repeats and the environment."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from bench.schema import Cell, Environment, Run
from collector.results.cell_repeats import SOUND_VERDICTS
from collector.results.collection import Collection
from collector.results.hosts import Place, list_places, name_hosts

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

Facts = dict[str, str | None]
"""What is recorded of the environment of a cell in one night, by name; None: not recorded."""

UNSOUND_BUT_SLOW = "throttled"
"""A night in which every repeat was throttled is a slower night, with its cause: it counts. Repeats that others
disturbed, or that ran on the wrong device, say nothing of the cell: they do not."""
COLUMN_FACTS = (
    *("instance_type", "driver_version", "framework_version", "python_version", "num_threads", "kubelet_version"),
    *("hostname", "verdict"),
)
READ_COLUMNS = [
    *("cell_id", "cpu_model", "gpu_name", "environment_id", "image_id"),
    *("center_step_seconds", "mean_step_seconds", "summarized_by"),
    *COLUMN_FACTS,
    *(name for name in Place._fields if name not in COLUMN_FACTS),
]
"""A sixth of the columns of a run's results: whatever selects rows copies every column."""


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
    mean_logs: tuple[float, ...] = ()
    """Of the means of their steps; where their step times are these means already, `is_mean`."""
    is_mean: bool = False
    places: tuple[Place, ...] = ()
    """Where they were measured, as each says by itself; `facts` has the host names until `unify`."""

    @property
    def instance_types(self) -> tuple[str, ...]:
        """Machine types of the nodes, sorted; empty: not recorded."""
        found = self.facts.get("instance_type")
        return () if found is None else tuple(found.split(", "))

    def join(self, other: "CellNight") -> "CellNight":
        """Return both as one night; the environment is this one's."""
        return replace(self, logs=self.logs + other.logs, mean_logs=self.mean_logs + other.mean_logs)


CellNights = Mapping[SeriesKey, CellNight]


def read_cell_nights(collection: Collection) -> dict[SeriesKey, CellNight]:
    """Return the repeats of each cell that count, by cell and hardware; cells without any are left out.

    Sound repeats count; where a cell has none, throttled ones do.
    """
    counted = _select_counted(collection.results)
    cells = {planned.cell.cell_id: planned.cell for planned in collection.run.cells}
    found: dict[SeriesKey, CellNight] = {}
    for (cell_id, cpu_model, gpu_name), own in counted.groupby(["cell_id", "cpu_model", "gpu_name"], sort=False):
        key = SeriesKey(cell=cells[str(cell_id)], cpu_model=str(cpu_model), gpu_name=str(gpu_name) or None)
        found[key] = CellNight(
            logs=_take_logs(own["center_step_seconds"]),
            facts=_describe_environment(own, collection),
            mean_logs=_take_logs(own["mean_step_seconds"].fillna(own["center_step_seconds"])),
            is_mean=bool((own["summarized_by"] == "mean").any()),
            places=tuple(list_places(own)),
        )
    return found


def unify(nights: Sequence[CellNights]) -> list[CellNights]:
    """Return the nights with one statistic of all repeats of a series, and with one name of each host.

    The mean stands for all repeats of a series of which one was on two levels. Within a run it is so already
    (collector.results.attempts); a night of medians beside one of means would differ. Which names are of one host,
    whatever its boots, all nights together tell.
    """
    by_mean = {key for night in nights for key, found in night.items() if found.is_mean}
    hosts = name_hosts({place for night in nights for found in night.values() for place in found.places})

    def change(key: SeriesKey, found: CellNight) -> CellNight:
        if found.places:
            names = _join(host for place in found.places if (host := hosts[place]) is not None)
            found = replace(found, facts=found.facts | {"hostname": names})
        return replace(found, logs=found.mean_logs, is_mean=True) if key in by_mean else found

    return [{key: change(key, found) for key, found in night.items()} for night in nights]


def _select_counted(results: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the repeats that count, with READ_COLUMNS; `gpu_name` is empty where there is none."""
    is_ok = (results["status"] == "ok") & results["center_step_seconds"].notna() & results["cpu_model"].notna()
    ok = results.loc[is_ok, READ_COLUMNS].fillna({"gpu_name": ""})
    is_sound = ok["verdict"].isin(SOUND_VERDICTS)
    has_sound = ok["cell_id"].isin(ok.loc[is_sound, "cell_id"])
    return ok[is_sound | (~has_sound & (ok["verdict"] == UNSOUND_BUT_SLOW))]


def _take_logs(seconds: "pd.Series[float]") -> tuple[float, ...]:
    return tuple(float(log) for log in np.log(seconds.to_numpy(dtype=np.float64)))


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


def _describe_environment(repeats: pd.DataFrame, collection: Collection) -> Facts:
    """Return what is recorded of where the repeats ran.

    What `environment_id` leaves out (kernel, revision of the image's code) is that of the first repeat of the run with
    this id.
    """
    known = collection.environments
    environments = [known[name] for name in repeats["environment_id"].dropna().unique() if name in known]
    facts: Facts = {name: _join(repeats[name].dropna()) for name in COLUMN_FACTS}
    facts["image"] = _join(repeats["image_id"].dropna()) or _join_of(environments, "image")
    for name in ("cpu_quota_cores", "kernel", "git_revision"):
        facts[name] = _join_of(environments, name)
    facts["tool_revision"] = collection.run.git_revision
    return facts


def _join_of(environments: Sequence[Environment], name: str) -> str | None:
    return _join(value for environment in environments if (value := getattr(environment, name)) is not None)


def _join(values: Iterable[object]) -> str | None:
    texts = sorted({str(value) for value in values})
    return ", ".join(texts) or None
