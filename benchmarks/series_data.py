"""Reads public series of real benchmarks and cuts them into stretches of nights, for benchmarks/watch_series.py.

A folder holds SOURCE.csv.gz (source, series, machine, time, value, unit, direction; a series' rows in the order of
time) and known_changes.csv. Logs are such that more is worse: rates and their like are turned.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from bench.schema import hash_text  # noqa: E402
from collector.nights.detection import EFFECT_FLOOR, BoolArray, FloatArray, Nights, SeriesKey  # noqa: E402
from factories import make_cell  # noqa: E402
from night_scenarios import make_nights  # noqa: E402

SEED = 20261128
NUM_NIGHTS = 60
CHANGE_AT = 40
"""Nights before a planted or a known change."""
PLANTED_EVERY = 10
"""One stretch in so many gets a step in a round, of those with the same nights: what these share stays known."""
WINDOW, NUM_ERRORS = 15, 3
KNOWN_WINDOW, KNOWN_SHIFT = 8, np.log(1.1)
"""A known change counts where the medians of eight nights on its sides differ by a tenth, as it says."""
Series = tuple[str, str, pd.DataFrame]
"""Name, machine and points."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Stretches of one source, as the cells of one matrix; of the logs, more is worse, shape (stretches, nights)."""

    source: str
    logs: FloatArray
    groups: tuple[str, ...]
    """Machine and nights of each stretch: those that agree in both are freed of what they share."""
    chosen: BoolArray
    """Those whose alarms count, and that get the step."""

    def take(self, rows: BoolArray) -> "Table":
        groups = tuple(group for group, taken in zip(self.groups, rows, strict=True) if taken)
        return replace(self, logs=self.logs[rows], groups=groups, chosen=self.chosen[rows])

    def choose(self, rounds: Sequence[int]) -> "Table":
        return replace(self, chosen=np.isin(np.arange(len(self.groups)) % PLANTED_EVERY, rounds))

    def separate(self) -> "Table":
        return replace(self, groups=tuple(map(str, range(len(self.groups)))))

    def plant(self, step: float) -> "Table":
        is_slower = self.chosen[:, np.newaxis] & (np.arange(NUM_NIGHTS) >= CHANGE_AT)
        return replace(self, logs=self.logs + np.log1p(step) * is_slower)

    def permute(self, size: int) -> "Table":
        """Return it with blocks of `size` nights in another order, one for all stretches of a group."""
        rng, blocks = np.random.default_rng(SEED), np.arange(NUM_NIGHTS).reshape(-1, size)
        orders = {group: rng.permutation(blocks).ravel() for group in dict.fromkeys(self.groups)}
        return replace(self, logs=np.take_along_axis(self.logs, np.array([orders[g] for g in self.groups]), axis=1))

    def make_nights(self) -> Nights:
        cells = (make_cell(seed=row) for row in range(len(self.groups)))
        keys = (SeriesKey(cell=c, cpu_model=g, gpu_name=None) for c, g in zip(cells, self.groups, strict=True))
        return replace(make_nights(self.logs[:, :, np.newaxis]), keys=tuple(keys))


def read_series(folder: Path) -> dict[str, list[Series]]:
    """Return the series of each source, with a column of the logs of which more is worse."""
    found = defaultdict(list)
    for path in sorted(folder.glob("*.csv.gz")):
        points = pd.read_csv(path, keep_default_na=False)
        points["log"] = np.log(points["value"]) * np.where(points["direction"] == "lower", 1, -1)
        for (source, name, machine, _), own in points.groupby(["source", "series", "machine", "unit"], sort=False):
            found[str(source)].append((str(name), str(machine), own))
    return dict(found)


def cut_stretches(source: str, series: Sequence[Series]) -> Table:
    """Return the stretches of NUM_NIGHTS points of each series, from its beginning on."""
    cut = []
    for _, machine, points in series:
        for start in range(0, len(points) - NUM_NIGHTS + 1, NUM_NIGHTS):
            part = points.iloc[start : start + NUM_NIGHTS]
            cut.append((hash_text("/".join((machine, *part["time"]))), part["log"].to_numpy()))
    cut.sort(key=lambda stretch: stretch[0])  # one in ten of all is one in ten of a group
    logs = np.array([stretch[1] for stretch in cut])
    return Table(source=source, logs=logs, groups=tuple(group for group, _ in cut), chosen=np.ones(len(cut), bool))


def is_stationary(logs: FloatArray) -> BoolArray:
    """Return whether, at every night, the medians of WINDOW nights before and from it on agree.

    They agree within EFFECT_FLOOR, or within NUM_ERRORS standard errors of their difference.
    """
    places = range(WINDOW, NUM_NIGHTS - WINDOW + 1)
    windows = {place: np.median(logs[:, place : place + WINDOW], axis=1) for place in range(places.stop)}
    largest = np.max([np.abs(windows[place] - windows[place - WINDOW]) for place in places], axis=0)
    errors = measure_noise(logs) * np.sqrt(np.pi / WINDOW)
    return np.asarray(largest <= np.maximum(EFFECT_FLOOR, NUM_ERRORS * errors))


def measure_noise(logs: FloatArray) -> FloatArray:
    """Return the median step between neighbouring nights, 0.95 times the standard deviation of normal ones."""
    return np.asarray(np.median(np.abs(np.diff(logs, axis=1)), axis=1))


def cut_known(series: Mapping[str, list[Series]], folder: Path) -> Table:
    """Return the series with a documented change that shows in them, so turned that it is one for the worse."""
    known, cut = pd.read_csv(folder / "known_changes.csv").to_dict("records"), []
    for change in known:
        same = [other for other in known if other["series_regex"] == change["series_regex"]]
        for name, _, points in series[change["source"]]:
            if not re.search(change["series_regex"], name):
                continue
            times, logs = points["time"].to_numpy(), points["log"].to_numpy()
            places = [int(np.argmax(times >= at)) for at in (other["first_at_or_after"] for other in same)]
            place = int(np.argmax(times >= change["first_at_or_after"]))
            logs = logs if change["direction"] == "regression" else -logs
            begin = max([place - KNOWN_WINDOW, *(other for other in places if other < place)])
            end = min([place + KNOWN_WINDOW, *(other for other in places if other > place)])
            first, last = place - CHANGE_AT, place - CHANGE_AT + NUM_NIGHTS
            if first < 0 or last > len(logs):
                continue
            if np.median(logs[place:end]) - np.median(logs[begin:place]) >= KNOWN_SHIFT:
                cut.append(logs[first:last])
    return Table(source="", logs=np.array(cut), groups=("",) * len(cut), chosen=np.ones(len(cut), bool)).separate()
