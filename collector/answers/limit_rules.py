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
MAX_PROGRAMS = 4
"""Programs of which a sentence says the memory."""
WORK_COLUMNS = ["model", "phase", "batch_size", "input_size", "num_classes", "precision", "data_dir", "hardware_id"]
"""What is equal in cells that did the same work on one kind of card."""


def find_memory(analysis: Analysis) -> list[Said]:
    """Return of the work on one GPU with the largest tensors what each program held for them, and had in use.

    Tensors are what frameworks can be compared in: what is in use on the device holds what each keeps for later.
    """
    summary = analysis.summary
    alone = (summary["num_sound"] > 0) & (summary["num_gpus"] == 1) & (summary["tenants"] == 1)
    known = summary[alone & summary["peak_memory_allocated_bytes"].notna()]
    if known.empty:
        return []
    tensors = known["peak_memory_allocated_bytes"].astype("float64")
    works = known.groupby(WORK_COLUMNS, dropna=False, sort=False).ngroup()
    rows = list_rows(known[works == works.iloc[int(tensors.argmax())]])
    names = find_short_names(analysis)
    work = names.shorten(str(rows[0]["workload"]))
    text = (
        f"{work} has the largest tensors on the GPU: {_list_programs(rows)}.{_say_in_use(rows)} Whether a "
        "smaller card or a larger batch would do was not measured: benchmatrix probe MODEL."
    )
    return [Said(text=text, anchor=name_anchor(MEMORY_CAPTION))]


def _list_programs(rows: Sequence[Row]) -> str:
    """Return what each program held for tensors, in the order of the plan."""
    more = [f"{len(rows) - MAX_PROGRAMS} more programs"] if len(rows) > MAX_PROGRAMS else []
    return join_words([*(_say_tensors(row) for row in rows[:MAX_PROGRAMS]), *more])


def _say_tensors(row: Row) -> str:
    plan = ", by XLA's plan" if row["framework"] == "jax" else ""
    return f"{_say_bytes(float(row['peak_memory_allocated_bytes']))} ({row['variant']}{plan})"


def _say_in_use(rows: Sequence[Row]) -> str:
    """Return what was in use on the device in the same order; empty where it was not seen of every program."""
    shown = [row["gpu_memory_peak_bytes"] for row in rows[:MAX_PROGRAMS]]
    if any(pd.isna(value) for value in shown):
        return ""
    listed = join_words(_say_bytes(float(value)) for value in shown)
    return f" With the driver, the libraries and what each framework keeps for later, {listed} were in use."


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
    text = (
        f"{len(near):,} of {count_things(len(known), 'cell')} reach at least {100 * NEAR_SHARE:.0f} % of "
        f"what their nearest roof allows{_name_roofs(near)}, operations counted as direct convolutions. "
    )
    if len(near) < len(known):
        share = format_number(float(lowest["share_of_roofline"]), PERCENT)
        others = "the others" if len(near) else "them"
        label = find_short_names(analysis).shorten(str(lowest["label"]))
        text += f"What limits {others} is not known; {label} reaches {share} %."
    return [Said(text=text.strip(), anchor=name_anchor(ROOFLINE_CAPTION))]


def _name_roofs(near: pd.DataFrame) -> str:
    roofs = sorted(near["bound"].dropna().unique())
    return f" ({' or '.join(roofs)})" if roofs else ""


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
