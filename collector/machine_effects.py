"""Estimate how much faster or slower each machine of a run is than the others that measured the same cells."""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from collector.statistics import ROUNDING_SECONDS, Estimate

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def estimate_machine_effects(
    values: Sequence[float], cells: Sequence[Hashable], machines: Sequence[str]
) -> dict[str, Estimate]:
    """Return each machine's factor on the `values` (> 0); 1 is the geometric mean of those that it is held against.

    Of each value, its cell and its machine stand at its place. The model is log(value) = cell + machine + error, fitted
    by least squares with one variance for all errors, so a machine may be known from other cells than its neighbour.
    Machines are held against those that are connected with them by cells on both; one that shares no cell is left out.
    Where a machine favours some cells, that is in the errors and widens the intervals.
    """
    found: dict[str, Estimate] = {}
    for indices in _find_connected(cells, machines):
        names = sorted({machines[index] for index in indices})
        logs = np.log(np.array([values[index] for index in indices]))
        own_cells = _number([cells[index] for index in indices])
        own_machines = np.array([names.index(machines[index]) for index in indices])
        found |= zip(names, _fit(logs, own_cells, own_machines), strict=True)
    return found


def _find_connected(cells: Sequence[Hashable], machines: Sequence[str]) -> Iterator[list[int]]:
    """Return the places of the values of each group of machines that cells connect, cells on one machine left out."""
    by_cell: defaultdict[Hashable, set[str]] = defaultdict(set)
    for cell, machine in zip(cells, machines, strict=True):
        by_cell[cell].add(machine)
    groups: list[set[str]] = []
    for shared in (found for found in by_cell.values() if len(found) > 1):
        joined = shared.union(*(group for group in groups if group & shared))
        groups = [group for group in groups if not group & shared] + [joined]
    for group in groups:
        yield [
            index
            for index, (cell, machine) in enumerate(zip(cells, machines, strict=True))
            if machine in group and len(by_cell[cell]) > 1
        ]


def _number(items: Sequence[Hashable]) -> IntArray:
    """Return a number for each item, equal for equal ones."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(item, len(numbers)) for item in items])


def _fit(logs: FloatArray, cells: IntArray, machines: IntArray) -> list[Estimate]:
    """Return the factor of each machine of one connected group, in the order of their numbers.

    The cells' effects are removed by taking the mean of each cell from both sides (Frisch, Waugh and Lovell).
    """
    num_cells, num_machines = int(cells.max()) + 1, int(machines.max()) + 1
    design = _center(np.eye(num_machines)[machines], cells)
    centered = _center(logs[:, np.newaxis], cells)[:, 0]
    inverse = np.linalg.pinv(design.T @ design)
    effects = inverse @ design.T @ centered
    contrasts = np.eye(num_machines) - 1 / num_machines
    freedom = len(logs) - num_cells - (num_machines - 1)
    residuals = centered - design @ effects
    floor = ROUNDING_SECONDS / float(np.exp(logs.mean()))
    deviation = None if freedom < 1 else max(float(np.sqrt(residuals @ residuals / freedom)), floor)
    errors = np.sqrt(np.diag(contrasts @ inverse @ contrasts.T))
    return [
        Estimate(
            center=float(np.exp(effect)),
            log_standard_error=None if deviation is None else deviation * float(error),
            degrees_of_freedom=None if deviation is None else freedom,
        )
        for effect, error in zip(contrasts @ effects, errors, strict=True)
    ]


def _center(columns: FloatArray, cells: IntArray) -> FloatArray:
    """Return the columns less the mean of their cell."""
    sums = np.zeros((int(cells.max()) + 1, columns.shape[1]))
    np.add.at(sums, cells, columns)
    means: FloatArray = sums / np.bincount(cells)[:, np.newaxis]
    centered: FloatArray = columns - means[cells]
    return centered
