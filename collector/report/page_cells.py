"""Gather the cells of a run for the overview: the fields to filter by, their figures, and how each of them ended."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import pandas as pd

from bench.registry import MODELS
from collector.analysis import Analysis
from collector.labels import (
    ABSENT_FIELDS,
    DEVICE_NAMES,
    FRAMEWORK_NAMES,
    OPTIONAL_FIELDS,
    SHARING_NAMES,
    SIZE_UNITS,
    add_labels,
    count_gpus,
    count_tenants,
)
from collector.order import list_in_order
from collector.report.packing import Packed, pack_column, pack_frame
from collector.results.cells import PROTOCOL_FIELDS, describe_cell
from collector.results.frames import CELL_COLUMNS, list_rows, make_frame
from collector.results.identity import drop_build
from collector.results.statuses import WITHOUT_RECORD
from collector.tables.step_times import describe_validity

FIELD_TITLES: Mapping[str, str] = {
    "model": "model",
    "phase": "phase",
    "framework": "framework",
    "mode": "mode",
    "device": "device",
    "precision": "precision",
    "batch_size": "batch",
    "input_size": "input size",
    "num_gpus": "GPUs",
    "num_classes": "classes",
    "data_dir": "data",
    "tenants": "tenants",
    "sharing": "sharing",
    "neighbour": "neighbour",
    "environment_id": "environment",
    "seed": "seed",
    **{name: name.replace("_", " ").removeprefix("num ") for name in PROTOCOL_FIELDS},
}
"""The fields that the reader can filter by, in their order, with their names for people."""
PROGRAM_FIELDS = ("framework", "mode", "device", "precision", "environment_id")
"""The fields that are columns of the heat map at first, as far as cells differ in them; the others are its rows."""
SHARING_COLUMNS = ("tenants", "sharing", "neighbour")
"""The fields that are columns besides, where that leaves no more than MAX_COLUMNS of them."""
OTHER_COLUMNS = ("num_gpus", "batch_size", "input_size", "num_classes", "data_dir", *PROTOCOL_FIELDS, "seed")
"""The fields of which the first that varies is columns if nothing else is: work last, as its times are not compared."""
MAX_COLUMNS = 16
"""Columns that a reader takes in beside each other; the reader can choose more."""
ALWAYS_NAMED = ("model", "phase", "framework", "mode", "device", "batch_size")
"""Fields that the heat map names even where all cells agree."""
ABSENT_WORDS = {"environment_id": "one environment", "neighbour": "no neighbour"}
"""What is said of a cell without a value of these fields."""
WORK_FIELDS = ("model", "phase", "input_size", "num_classes", "data_dir")
"""Fields that decide what a step is: the times of steps that differ in one of them are times of different work."""
FIGURE_COLUMNS = (
    *("center_step_seconds", "interval_low_seconds", "interval_high_seconds"),
    *("least_repeat_seconds", "most_repeat_seconds", "disagreement"),
    *("log_standard_error", "degrees_of_freedom", "num_machines", "num_planned", "num_ok", "num_sound", "num_counted"),
    *("batch_size", "throughput_samples_per_s", "p95_step_seconds", "p99_step_seconds"),
    *("peak_rss_bytes", "peak_memory_allocated_bytes", "gpu_sm_clock_mhz", "gpu_max_temperature_celsius"),
    *("share_of_peak", "gpu_energy_per_sample_joules", "cpu_energy_per_sample_joules"),
    *("environment_id", "hardware_id", "gpu_name", "cpu_model", "machines", "hostnames", "faults", "note"),
)
"""What the page knows of every cell at once; base units."""
ROW_KEYS = ("cell_id", "environment_id")
MEASURED, INVALID, FAILED, MISSING, LEFT_OUT = "measured", "invalid", "failed", "missing", "left out"
"""How a cell ended: with figures from sound repeats; with figures that no sound repeat gave; without a repeat that
ended ok; without any result that can be read; not run here."""


def list_page_cells(analysis: Analysis) -> pd.DataFrame:
    """Return the rows of the summary, then the cells that were left out, with how each ended as `state` and `ending`.

    `ending`: the verdict, or how the repeats ended, in words.
    """
    summary = analysis.summary
    statuses = _count_statuses(analysis.collection.results)
    endings = [_describe_ending(row, statuses[str(row["cell_id"])]) for row in list_rows(summary)]
    cells = summary.assign(state=[state for state, _ in endings], ending=[words for _, words in endings])
    left_out = analysis.collection.run.left_out
    if not left_out:
        return cells
    others = add_labels(make_frame([describe_cell(entry.cell) for entry in left_out], CELL_COLUMNS))
    others = others.assign(
        cell_id=[entry.cell.cell_id for entry in left_out],
        state=LEFT_OUT,
        ending=[f"left out: {entry.reason}" for entry in left_out],
        num_environments=1,
        **dict.fromkeys(("num_planned", "num_ok", "num_sound", "num_counted"), 0),
    )
    return pd.concat([cells, others.astype({"num_environments": "int64"})], ignore_index=True)


def pack_cells(cells: pd.DataFrame) -> Packed:
    """Return what the page needs of `list_page_cells` to filter, compare and show them."""
    packed = pack_frame(cells[["cell_id", "label", "precision", "state", "ending", *FIGURE_COLUMNS]])
    versions = [None if pd.isna(version) else drop_build(version) for version in cells["framework_version"]]
    several = [
        means if number > 1 else None
        for means, number in zip(cells["machine_step_seconds"], cells["num_machines"].fillna(0), strict=True)
    ]
    packed["columns"] |= {"version": pack_column(versions), "machine_means": pack_column(several)}
    return packed | {"fields": list_fields(cells)}


def list_fields(cells: pd.DataFrame) -> list[dict[str, Any]]:
    """Return ALWAYS_NAMED and the fields that tell cells apart: their place in the heat map, and each cell's value.

    The values are words (`texts`) in the order that they have everywhere (`collector.order`).
    `absent`: the words for a cell that has none, which the heat map's columns leave out. `is_work`: whether it decides
    what a step is.
    """
    several = cells["num_environments"] > 1
    frame = cells.assign(environment_id=cells["environment_id"].where(several, None))
    varying = find_varying(frame)
    columns = choose_columns(frame, varying)
    return [
        {
            "name": name,
            "title": title,
            "place": "column" if name in columns else "row",
            "absent": ABSENT_WORDS.get(name, ""),
            "is_work": name in WORK_FIELDS,
            "is_protocol": name in (*PROTOCOL_FIELDS, "seed"),
            **_code_values(frame, name),
        }
        for name, title in FIELD_TITLES.items()
        if name in ALWAYS_NAMED or name in varying
    ]


def choose_columns(frame: pd.DataFrame, varying: Sequence[str]) -> tuple[str, ...]:
    """Return the fields that are columns of the heat map at first, of those that vary in the run (`find_varying`).

    A map of one column compares nothing: so programs and devices are columns where there are several, tenants and ways
    of sharing beside them, and otherwise whatever varies.
    """
    columns = tuple(name for name in varying if name in PROGRAM_FIELDS)
    shared = (*columns, *(name for name in varying if name in SHARING_COLUMNS))
    if shared and _count_columns(frame, shared) <= MAX_COLUMNS:
        columns = shared
    others = (name for name in OTHER_COLUMNS if name in varying and _count_columns(frame, (name,)) <= MAX_COLUMNS)
    return columns or tuple(islice(others, 1))


def find_varying(frame: pd.DataFrame) -> list[str]:
    """Return the fields in which cells differ.

    How long was measured counts only where cells are otherwise the same: a CPU that is measured for fewer steps than a
    GPU stands in the same row of the heat map. A model without classes does not differ in them from others.
    """
    varying = [name for name in FIELD_TITLES if frame[name].nunique(dropna=name == "num_classes") > 1]
    others = [name for name in FIELD_TITLES if name not in PROTOCOL_FIELDS]
    within = frame.groupby(others, dropna=False)[list(PROTOCOL_FIELDS)].nunique(dropna=False)
    return [name for name in varying if name not in PROTOCOL_FIELDS or (within[name] > 1).any()]


def _count_columns(frame: pd.DataFrame, names: tuple[str, ...]) -> int:
    return len(frame[list(names)].drop_duplicates())


def _code_values(frame: pd.DataFrame, name: str) -> dict[str, Any]:
    """Return the values of a field in words, each once, and which of them each cell has."""
    values = frame[name].tolist()
    models = frame["model"].tolist()
    words = [name_value(name, value, model) for value, model in zip(values, models, strict=True)]
    places = {value: place for place, value in enumerate(list_in_order(name, values)) if not pd.isna(value)}
    by_word = dict(zip(words, values, strict=True))
    texts = sorted(by_word, key=lambda word: places.get(by_word[word], len(places)))
    codes = {text: code for code, text in enumerate(texts)}
    return {"texts": texts, "codes": [codes[word] for word in words]}


def name_value(name: str, value: Any, model: str) -> str:
    """Return a value of a field as a label says it."""
    if name == "num_gpus":
        return count_gpus(value)
    if pd.isna(value):
        return ABSENT_WORDS.get(name, ABSENT_FIELDS.get(name, "–"))
    names: Mapping[str, Mapping[str, str]] = {
        "framework": FRAMEWORK_NAMES,
        "device": DEVICE_NAMES,
        "sharing": SHARING_NAMES,
    }
    if name in names:
        return names[name][value]
    if name == "batch_size":
        return f"batch {value}"
    if name == "input_size":
        return f"{value} {SIZE_UNITS[MODELS[model].task]}"
    if name == "tenants":
        return count_tenants(value)
    formats = {**OPTIONAL_FIELDS, "environment_id": "environment {}", "neighbour": "beside {}", "precision": "{}"}
    return formats.get(name, "{}").format(value)


def _count_statuses(results: pd.DataFrame) -> Mapping[str, Counter[str]]:
    """Return how many planned repeats of each cell ended how."""
    counts: dict[str, Counter[str]] = {}
    for cell_id, status in zip(results["cell_id"], results["status"], strict=True):
        counts.setdefault(cell_id, Counter())[status] += 1
    return counts


def _describe_ending(row: Mapping[str, Any], statuses: Counter[str]) -> tuple[str, str]:
    """Return how a cell of the summary ended, and the same in words."""
    if row["num_ok"]:
        others = [f"{count} {status}" for status, count in statuses.items() if status != "ok"]
        words = describe_validity(row["num_ok"], row["num_sound"], row["faults"], num_planned=statuses.total())
        return (MEASURED if row["num_sound"] else INVALID), "; ".join([words, *others])
    words = ", ".join(f"{count} {status}" for status, count in statuses.items())
    return (MISSING if statuses.keys() <= set(WITHOUT_RECORD) else FAILED), words
