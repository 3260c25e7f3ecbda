"""The summary of cells comes in, comparisons of pairs go out: TensorFlow over PyTorch, GPU over CPU.

A pair is matched on every field of the cell but the one compared and the protocol (how long was measured). A verdict
is given in words only where the interval of the ratio excludes 1; a pair that cannot be compared says why.
"""

import pandas as pd

from collector.frames import CELL_COLUMNS, Row, list_rows, make_frame
from collector.labels import DEVICE_NAMES, FRAMEWORK_NAMES
from collector.statistics import Estimate, estimate_ratio
from collector.tables import read_estimate
from collector.units import format_significant

PROTOCOL_FIELDS = ("num_warmup_steps", "max_warmup_seconds", "num_steps", "min_seconds")
FRAMEWORK_MATCH = [name for name in CELL_COLUMNS if name not in ("framework", "mode", *PROTOCOL_FIELDS)]
DEVICE_MATCH = [name for name in CELL_COLUMNS if name not in ("device", *PROTOCOL_FIELDS)]
SIDE_NAMES = FRAMEWORK_NAMES | DEVICE_NAMES


def _list_columns(match: list[str], sides: tuple[str, str], sided: tuple[str, ...]) -> dict[str, str]:
    """Return the columns (name to dtype) of a comparison of `sides`, whose own columns end in `_<side>`."""
    return (
        {name: CELL_COLUMNS[name] for name in match}
        | {f"{name}_{side}": "str" for side in sides for name in ("cell_id", "environment_id", *sided)}
        | {"cpu_model": "str", "num_threads": "Int64", "gpu_name": "str"}
        | {f"median_step_seconds_{side}": "float64" for side in sides}
        | {"ratio": "float64", "ratio_low": "float64", "ratio_high": "float64", "verdict": "str", "note": "str"}
    )


FRAMEWORK_COLUMNS = _list_columns(FRAMEWORK_MATCH, ("tensorflow", "pytorch"), ("mode", "framework_version"))
DEVICE_COLUMNS = _list_columns(DEVICE_MATCH, ("cpu", "gpu"), ("framework_version",))


def compare_frameworks(summary: pd.DataFrame) -> pd.DataFrame:
    """Return one row per matched pair of cells on the same hardware, with the columns FRAMEWORK_COLUMNS.

    `ratio`: TensorFlow's median step time over PyTorch's, below 1 where TensorFlow is faster. Every mode of the one is
    paired with every mode of the other. A pair that never ran on the same hardware has a row without a ratio.
    """
    pairs = _pair(summary, "framework", ("tensorflow", "pytorch"), FRAMEWORK_MATCH)
    same = pairs["hardware_id_tensorflow"] == pairs["hardware_id_pytorch"]
    cells = pd.MultiIndex.from_frame(pairs[["cell_id_tensorflow", "cell_id_pytorch"]])
    return make_frame(
        [_compare_frameworks(pair) for pair in list_rows(pairs[same | ~cells.isin(cells[same])])],
        FRAMEWORK_COLUMNS,
    )


def compare_devices(summary: pd.DataFrame) -> pd.DataFrame:
    """Return one row per matched pair of cells, with the columns DEVICE_COLUMNS.

    `ratio`: the speedup, the median step time on the CPU over that on the GPU. `cpu_model` and `num_threads` are those
    of the CPU cell, `gpu_name` is that of the GPU cell.
    """
    pairs = _pair(summary, "device", ("cpu", "gpu"), DEVICE_MATCH)
    return make_frame([_compare_devices(pair) for pair in list_rows(pairs)], DEVICE_COLUMNS)


def describe_ratio(ratio: Estimate, *, subject: str) -> str:
    """Return in words how `subject` compares, where `ratio` is its time over the other's."""
    if ratio.interval is None:
        return "no verdict: one repeat, no interval"
    low, high = ratio.interval
    if low <= 1 <= high:
        return "no difference shown"
    factors = (ratio.center, low, high) if low > 1 else (1 / ratio.center, 1 / high, 1 / low)
    factor, least, most = (format_significant(value) for value in factors)
    return f"{subject} is {factor}x {'slower' if low > 1 else 'faster'} ({least} to {most})"


def _pair(summary: pd.DataFrame, field: str, sides: tuple[str, str], match: list[str]) -> pd.DataFrame:
    first, second = (summary[summary[field] == side] for side in sides)
    return first.merge(second, on=match, suffixes=(f"_{sides[0]}", f"_{sides[1]}"))


def _compare_frameworks(pair: Row) -> Row:
    sides = ("tensorflow", "pytorch")
    row = pair | {name: pair[f"{name}_tensorflow"] for name in ("cpu_model", "num_threads", "gpu_name")}
    row["note"] = _join_notes(pair, sides)
    refusal = _refuse_pair(pair, sides)
    if refusal is None and pair["hardware_id_tensorflow"] != pair["hardware_id_pytorch"]:
        refusal = "not compared: the hardware differs"
    if refusal is not None:
        return row | {"verdict": refusal}
    ratio = estimate_ratio(read_estimate(pair, "_tensorflow"), read_estimate(pair, "_pytorch"))
    return row | _describe_estimate(ratio) | {"verdict": describe_ratio(ratio, subject="TensorFlow")}


def _compare_devices(pair: Row) -> Row:
    sides = ("cpu", "gpu")
    row = pair | {name: pair[f"{name}_cpu"] for name in ("cpu_model", "num_threads")}
    row |= {"gpu_name": pair["gpu_name_gpu"], "note": _join_notes(pair, sides)}
    refusal = _refuse_pair(pair, sides)
    if refusal is not None:
        return row | {"verdict": refusal}
    cpu, gpu = (read_estimate(pair, f"_{side}") for side in sides)
    verdict = describe_ratio(estimate_ratio(gpu, cpu), subject=pair["gpu_name_gpu"])
    return row | _describe_estimate(estimate_ratio(cpu, gpu)) | {"verdict": verdict}


def _describe_estimate(ratio: Estimate) -> Row:
    low, high = ratio.interval or (None, None)
    return {"ratio": ratio.center, "ratio_low": low, "ratio_high": high}


def _refuse_pair(pair: Row, sides: tuple[str, str]) -> str | None:
    empty = [SIDE_NAMES[side] for side in sides if not pair[f"num_ok_{side}"]]
    return f"not compared: no ok repeat of {' and '.join(empty)}" if empty else None


def _join_notes(pair: Row, sides: tuple[str, str]) -> str:
    return "; ".join(f"{SIDE_NAMES[side]}: {note}" for side in sides for note in _list_notes(pair, side))


def _list_notes(pair: Row, side: str) -> list[str]:
    ok, planned, note = (pair[f"{name}_{side}"] for name in ("num_ok", "num_planned", "note"))
    return ([f"{ok} ok of {planned} planned"] if ok < planned else []) + ([note] if note else [])
