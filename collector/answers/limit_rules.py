"""Say how much memory cells took, how near they came to the roofs of their devices, and which repeats disagree."""

from collections.abc import Sequence

import pandas as pd

from collector.analysis import Analysis
from collector.answers.anchors import name_anchor
from collector.answers.answer import Said
from collector.answers.measured import find_short_names
from collector.facts import count_things, join_words
from collector.results.cells import select_alone
from collector.results.frames import Row, list_rows
from collector.tables.memory import CAPTION as MEMORY_CAPTION
from collector.tables.roofline import CAPTION as ROOFLINE_CAPTION
from collector.tables.roofline import NEAR_SHARE
from collector.units import PERCENT, choose_memory_unit, format_number

MAX_CELLS = 2
"""Cells that a sentence names."""
IN_USE = " In use includes what driver, libraries and framework keep."
TENSORS = "peak_memory_allocated_bytes"
MAX_PROGRAMS = 4
"""Programs of which a sentence says the memory."""
WORK_COLUMNS = ["model", "phase", "batch_size", "input_size", "num_classes", "precision", "data_dir", "hardware_id"]
"""What is equal in cells that did the same work on one kind of card."""


def find_memory(analysis: Analysis) -> list[Said]:
    """Return of the work on one GPU of which a program had most in use what each had in use and held for tensors.

    Of the work with the largest tensors where of a cell it was not seen what was in use. Tensors are what frameworks
    can be compared in: what is in use on the device holds what each keeps for later.
    """
    summary = select_alone(analysis.summary)
    counts = (summary["num_sound"] > 0) & (summary["num_gpus"] == 1)
    known = summary[counts & summary["peak_memory_allocated_bytes"].notna()]
    if known.empty:
        return []
    is_seen = bool(known["gpu_memory_peak_bytes"].notna().all())
    sizes = known["gpu_memory_peak_bytes" if is_seen else TENSORS].astype("float64")
    works = known.groupby(WORK_COLUMNS, dropna=False, sort=False).ngroup()
    is_largest = works == works.iloc[int(sizes.argmax())]
    rows = list_rows(
        known[is_largest].assign(size=sizes[is_largest]).sort_values("size", ascending=False, kind="stable")
    )
    work = find_short_names(analysis).shorten(str(rows[0]["workload"]))
    opening = f"Most in use on the GPU: {work}" if is_seen else f"{work} has the largest tensors on the GPU"
    text = f"{opening}: {_list_programs(rows, is_seen)}.{IN_USE if is_seen else ''}"
    return [Said(text=text, anchor=name_anchor(MEMORY_CAPTION))]


def _list_programs(rows: Sequence[Row], is_seen: bool) -> str:
    """Return what each program had in use, if it was seen, and held for tensors, in the order of the rows."""
    more = [f"{len(rows) - MAX_PROGRAMS} more programs"] if len(rows) > MAX_PROGRAMS else []
    return join_words([*(_say_memory(row, is_seen) for row in rows[:MAX_PROGRAMS]), *more])


def _say_memory(row: Row, is_seen: bool) -> str:
    plan = "by XLA's plan" if row["framework"] == "jax" else ""
    tensors = _say_bytes(float(row[TENSORS]))
    if not is_seen:
        return f"{row['variant']} {tensors}{f' ({plan})' if plan else ''}"
    notes = ", ".join(filter(None, [f"tensors {tensors}", plan]))
    return f"{row['variant']} {_say_bytes(float(row['gpu_memory_peak_bytes']))} ({notes})"


def _say_bytes(value: float) -> str:
    unit = choose_memory_unit([value])
    return f"{format_number(value, unit)} {unit.label}"


def find_roofline(analysis: Analysis) -> list[Said]:
    """Return how many cells come near the nearest roof of their device, and which one stays furthest below.

    Those that had the device to themselves: what others took of it is no unknown limit.
    """
    summary = select_alone(analysis.summary)
    known = summary[(summary["num_sound"] > 0) & summary["share_of_roofline"].notna()]
    if known.empty:
        return []
    shares = known["share_of_roofline"]
    near = known[shares >= NEAR_SHARE]
    lowest = list_rows(known.nsmallest(1, "share_of_roofline"))[0]
    texts = []
    if len(near):
        reach = "reaches" if len(near) == 1 else "reach"
        texts.append(
            f"{len(near):,} of {count_things(len(known), 'cell')} {reach} {100 * NEAR_SHARE:.0f} % or more of the "
            f"roof that the device's peaks set, here {_name_roofs(near)} (operations counted as direct convolutions)."
        )
    if len(near) < len(known):
        share = format_number(float(lowest["share_of_roofline"]), PERCENT)
        number = len(known) - len(near)
        others = f"the {'other ' if len(near) else ''}{'cell' if number == 1 else count_things(number, 'cell')}"
        label = find_short_names(analysis).shorten(str(lowest["label"]))
        texts.append(f"What limits {others} is not known; the least, {label}, reaches {share} % of its roof.")
    return [Said(text=" ".join(texts), anchor=name_anchor(ROOFLINE_CAPTION))]


def _name_roofs(near: pd.DataFrame) -> str:
    """Return which roofs are the nearest of cells: `arithmetic`, `arithmetic or bandwidth`."""
    return " or ".join(sorted(near["bound"].dropna().unique())) or "one of the device's"


def find_disagreement(analysis: Analysis) -> list[Said]:
    """Return of which cells the repeats disagree by more than their steps spread."""
    measured = analysis.measured
    rows = list_rows(measured[measured["disagreement"].fillna("") != ""])
    if not rows:
        return []
    names = find_short_names(analysis)
    named = "; ".join(f"{names.shorten(row['label'])}: {row['disagreement']}" for row in rows[:MAX_CELLS])
    more = f"; {len(rows) - MAX_CELLS:,} more" if len(rows) > MAX_CELLS else ""
    text = (
        f"Repeats disagree by more than their steps spread in {count_things(len(rows), 'cell')} ({named}{more}): which "
        "speed is the usual one is not known, and takes more repeats."
    )
    return [Said(text=text, anchor="step-times")]
