"""Flatten cells into columns, and tell those that had their device to themselves from those that shared it."""

from typing import Any

import pandas as pd

from bench.schema import WHOLE_DEVICE as WHOLE_DEVICE  # for packages that read rows, not documents
from bench.schema import Cell, is_device_shared
from collector.cell_words import describe_neighbour
from collector.results.frames import CELL_COLUMNS

Row = dict[str, Any]

SHARING_FIELDS = ("tenants", "sharing", "neighbour")
"""The fields of a cell that say with whom it shared its device, and how; at their defaults it had it to itself."""
PROTOCOL_FIELDS = (
    "num_warmup_steps",
    "max_warmup_seconds",
    "num_steps",
    "min_seconds",
    "sampling_seconds",
    "pipelined_seconds",
    "sustain_seconds",
    "num_profiled_steps",
)
"""The fields of a cell that say how long is measured, not what."""


def describe_cell(cell: Cell) -> Row:
    """Return the columns CELL_COLUMNS of a cell."""
    return {name: take_field(cell, name) for name in CELL_COLUMNS}


def take_field(cell: Cell, name: str) -> Any:
    """Return one of CELL_COLUMNS of a cell; its neighbour in words, as `describe_neighbour` writes it."""
    return describe_neighbour(cell) if name == "neighbour" else getattr(cell, name)


def find_shared(rows: pd.DataFrame) -> "pd.Series[bool]":
    """Return which rows (with CELL_COLUMNS) are of cells that shared their device, as `Cell.is_shared` says it."""
    kinds = zip(rows["tenants"], rows["sharing"], strict=True)
    return pd.Series([is_device_shared(*kind) for kind in kinds], rows.index, "bool")


def is_shared(row: Row) -> bool:
    return is_device_shared(row["tenants"], row["sharing"])


def select_alone(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows (with CELL_COLUMNS) of cells that had their whole device to themselves."""
    return rows[~find_shared(rows)]
