"""Arrange the cells of a matrix over nights as arrays: a row per cell and hardware, a column per night."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bench.schema import Cell, Run

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

Facts = dict[str, str | None]
"""What is recorded of the environment of a cell in one night, by name; None: not recorded."""


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

    def until(self, num_nights: int) -> "Nights":
        """Return the first `num_nights` nights."""
        return Nights(
            runs=self.runs[:num_nights],
            keys=self.keys,
            logs=self.logs[:, :num_nights],
            num_repeats=self.num_repeats[:, :num_nights],
            sums_of_squares=self.sums_of_squares[:, :num_nights],
            facts=tuple(facts[:num_nights] for facts in self.facts),
        )

    def find_groups(self) -> dict[tuple[str, str], IntArray]:
        """Return the rows of the series that share a device and hardware."""
        rows: dict[tuple[str, str], list[int]] = {}
        for row, key in enumerate(self.keys):
            rows.setdefault(key.group, []).append(row)
        return {group: np.array(found) for group, found in rows.items()}
