"""Say how much memory cells took, how near they came to the roofs of their devices, and which repeats disagree."""

import pandas as pd

from collector.analysis import Analysis
from collector.answers.anchors import name_anchor
from collector.answers.answer import Said
from collector.facts import count_things
from collector.results.cells import select_alone
from collector.results.frames import Row, list_rows
from collector.tables.memory import CAPTION as MEMORY_CAPTION
from collector.tables.roofline import CAPTION as ROOFLINE_CAPTION
from collector.tables.roofline import NEAR_SHARE
from collector.units import PERCENT, choose_memory_unit, format_number

MAX_CELLS = 2
"""Cells that a sentence names."""


def find_memory(analysis: Analysis) -> list[Said]:
    """Return which cell on one GPU had most memory of the device in use, and what of it its tensors were."""
    summary = analysis.summary
    is_known = (summary["num_sound"] > 0) & (summary["num_gpus"] == 1) & summary["gpu_memory_peak_bytes"].notna()
    known = summary[is_known & (summary["tenants"] == 1)]
    if known.empty:
        return []
    (row,) = list_rows(known.assign(peak=known["gpu_memory_peak_bytes"].astype(float)).nlargest(1, "peak"))
    text = (
        f"Most GPU memory: {row['label']} had {_say_bytes(row['peak'])} of the device in use{_say_tensors(row)}. "
        "Whether the run fits a smaller card was not measured, nor the largest batch that fits: benchmatrix probe "
        "MODEL searches for it."
    )
    return [Said(text=text, anchor=name_anchor(MEMORY_CAPTION))]


def _say_tensors(row: Row) -> str:
    tensors = row["peak_memory_allocated_bytes"]
    if pd.isna(tensors):
        return ""
    how = "by XLA's plan" if row["framework"] == "jax" else "by its allocator"
    return f", {_say_bytes(float(tensors))} of it for tensors {how}"


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
        text += f"What limits {others} is not known; {lowest['label']} reaches {share} %."
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
    named = "; ".join(f"{row['label']}: {row['disagreement']}" for row in rows[:MAX_CELLS])
    more = f"; {len(rows) - MAX_CELLS:,} more" if len(rows) > MAX_CELLS else ""
    text = (
        f"Repeats disagree by more than their steps spread in {count_things(len(rows), 'cell')} ({named}{more}): which "
        "speed is the usual one is not known, and takes more repeats."
    )
    return [Said(text=text, anchor="step-times")]
