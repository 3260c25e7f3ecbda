"""Name the rows of frames for people: what was done (workload) and with what (variant), pairs and hardware."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

import pandas as pd

from bench.registry import FRAMEWORKS, Mode
from bench.schema import Precision
from collector.cell_words import OPTIONAL_FIELDS, PHASE_NAMES, name_device, name_program, name_size, name_work
from collector.results.frames import PROTOCOL_FIELDS, SHARING_FIELDS, Row, list_rows

WORK_FIELDS = ("model", "phase", "device", "batch_size", "batch_per_gpu", "input_size", *SHARING_FIELDS)
"""What the name of a row always says of the work, as far as its frame has it."""


def label_workloads(frame: pd.DataFrame, *, in_panel: bool = False) -> list[str]:
    """Return a name per row for what was done on which device: `conv6 train, CPU, batch 64, 32 px`.

    Fields that `frame` lacks, and those of OPTIONAL_FIELDS that all rows of a model share, are left out; so is how long
    was measured, where all rows of a model that are otherwise the same work share it. `in_panel`: without what
    `label_panels` says.
    """
    if frame.empty:
        return []
    varying = find_varying(frame)
    columns = (*WORK_FIELDS, *OPTIONAL_FIELDS)
    names = []
    for row in _list_rows(frame, columns):
        optional = varying[row["model"]]
        known = {name: None if pd.isna(row[name]) else row[name] for name in ("neighbour", *optional) if name in row}
        names.append(name_work(row | known, optional, in_panel=in_panel))
    return names


def label_panels(frame: pd.DataFrame) -> list[str]:
    """Return the broad kind of work per row: `conv6 train, GPU, 32 px`, without the device where `frame` has none."""
    return [
        ", ".join([f"{row['model']} {row['phase']}", *name_device(row), name_size(row)]) for row in list_rows(frame)
    ]


def label_variants(frame: pd.DataFrame) -> list[str]:
    """Return a name per row for what did it: framework and mode, and the environment where a cell ran in several."""
    rows = _list_rows(frame, ("framework", "mode", "num_environments", "environment_id"))
    ids = (f" [{row['environment_id']}]" if row.get("num_environments", 1) > 1 else "" for row in rows)
    return [name_program(row) + environment for row, environment in zip(rows, ids, strict=True)]


def add_labels(frame: pd.DataFrame) -> pd.DataFrame:
    """Return `frame` with the columns workload, variant and label (both in one line), which tell its cells apart."""
    workloads, variants = label_workloads(frame), label_variants(frame)
    labels = [f"{workload}, {variant}" for workload, variant in zip(workloads, variants, strict=True)]
    return frame.assign(workload=workloads, variant=variants, label=labels)


def label_shared(pairs: pd.DataFrame, *, in_panel: bool = False) -> list[str]:
    """Return a name per row of a comparison for what both sides share; see `label_workloads`."""
    rows = zip(label_workloads(pairs, in_panel=in_panel), _list_rows(pairs, ("framework", "mode")), strict=True)
    return [", ".join(filter(None, [workload, name_program(row)])) for workload, row in rows]


def label_hardware(cpu_model: str | None, num_threads: int | None, gpu_name: str | None = None) -> str:
    """Return the GPU's name, or without one `CPU model, 2 threads`, without what is not known."""
    if not pd.isna(gpu_name):
        return str(gpu_name)
    threads = "" if pd.isna(num_threads) else f"{num_threads} thread{'s' if num_threads != 1 else ''}"
    return ", ".join(str(part) for part in (cpu_model, threads) if not pd.isna(part) and part)


def _list_rows(frame: pd.DataFrame, columns: Iterable[str]) -> list[Row]:
    """Return the rows with those of the columns that `frame` has: a row of all of them is expensive to make."""
    return list_rows(frame[[name for name in dict.fromkeys(columns) if name in frame]])


def find_varying(frame: pd.DataFrame) -> dict[str, list[str]]:
    """Return by model the OPTIONAL_FIELDS that the names of its rows need."""
    present = [name for name in OPTIONAL_FIELDS if name in frame]
    counts = frame.groupby("model")[present].nunique(dropna=False)
    # A CPU is measured for fewer steps than a GPU: nobody needs that in the name of either.
    work = [name for name in (*WORK_FIELDS, *OPTIONAL_FIELDS) if name in frame and name not in PROTOCOL_FIELDS]
    protocol = [name for name in present if name in PROTOCOL_FIELDS]
    counts[protocol] = frame.groupby(work, dropna=False)[protocol].nunique(dropna=False).groupby("model").max()
    return {model: [name for name in present if counts.loc[model, name] > 1] for model in counts.index}


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


def sort_cells(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the rows, which have the columns CELL_ORDER, in the order of this module; rows alike in these stay."""
    return cells.sort_values(list(CELL_ORDER), key=lambda own: rank(str(own.name), own), ignore_index=True)


def rank(name: str, values: "pd.Series[Any]") -> "pd.Series[int]":
    """Return the place of each value of the field `name` in the order of the tool, or by size; a missing one is last.

    Values of a field without an order of its own have that in which they come, as those of the plan.
    """
    found = list(dict.fromkeys(values.dropna().tolist()))
    by_size = sorted(found) if all(isinstance(value, int | float) for value in found) else []
    order = dict.fromkeys([*TOOL_ORDER.get(name, by_size), *found])
    return values.map({value: place for place, value in enumerate(order)}).fillna(len(order)).astype("int64")
