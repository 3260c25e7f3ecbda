"""Put the cells of a run into one order, which every table, sentence and plot of it has.

Cells of one work (model, phase, device, batch, size) stand together, with the programs in the order of the registry.
Models and devices come as the matrix names them first, phases, frameworks, modes and precisions as this tool lists
them, numbers by size.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

import pandas as pd

from bench.registry import FRAMEWORKS, Mode
from bench.schema import Precision
from collector.labels import PHASE_NAMES

TOOL_ORDER: Mapping[str, Sequence[str]] = {
    "phase": tuple(PHASE_NAMES),
    "framework": tuple(FRAMEWORKS),
    "mode": get_args(Mode),
    "precision": get_args(Precision),
}
"""Of these fields the values in the order of the tool, whatever a matrix names first."""
CELL_ORDER = (
    *("model", "phase", "device", "batch_size", "input_size", "num_gpus", "num_classes", "data_dir"),
    *("tenants", "sharing", "neighbour", "framework", "mode", "precision"),
)
"""The fields that cells are sorted by, the first one first: those of the work, then those of the program."""


def list_in_order(name: str, values: Iterable[Any]) -> list[Any]:
    """Return the values of the field `name`, each once, in the order in which they stand everywhere; none of them last.

    Values of a field without an order of its own stay in the order in which they come, as those of the plan.
    """
    found = list(dict.fromkeys(values))
    known = [value for value in found if not pd.isna(value)]
    absent = [value for value in found if pd.isna(value)]
    if name in TOOL_ORDER:
        order = TOOL_ORDER[name]
        known.sort(key=lambda value: order.index(value) if value in order else len(order))
    elif all(isinstance(value, int | float) for value in known):
        known.sort()
    return [*known, *absent[:1]]


def sort_cells(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the rows, which have the columns CELL_ORDER, in the order of this module; rows alike in these stay."""
    ranks = {name: _rank(name, cells[name]) for name in CELL_ORDER}
    return cells.loc[pd.DataFrame(ranks).sort_values(list(CELL_ORDER), kind="stable").index].reset_index(drop=True)


def _rank(name: str, values: "pd.Series[Any]") -> "pd.Series[int]":
    order = list_in_order(name, values.tolist())
    places = {value: place for place, value in enumerate(order) if not pd.isna(value)}
    return values.map(places).fillna(len(places)).astype("int64")
