"""How well a run's figures are known, and which changes over the nights were confirmed."""

from collector.analysis import Analysis
from collector.answers.anchors import name_anchor
from collector.answers.answer import Said
from collector.answers.measured import find_short_names
from collector.facts import count_things
from collector.nights.records import RecordedChange
from collector.ratio_words import format_percent
from collector.results.frames import list_rows
from collector.tables.nights import CAPTION as NIGHTS_CAPTION

FEW_REPEATS = 3
"""Up to here the spread that an interval is made of is itself hardly known.

Of 3 repeats it has 2 degrees of freedom, so its relative standard error is about 1 / sqrt(2 * 2), a half (that of the
standard deviation of n normal values is about 1 / sqrt(2 (n - 1))). A moderated interval knows it from other cells.
"""


def find_certainty(analysis: Analysis) -> list[Said]:
    """Return how wide the intervals of the step times are."""
    summary = analysis.summary
    known = summary[(summary["num_sound"] > 0) & summary["interval_high_seconds"].notna()]
    if known.empty:
        return []
    widths = known["interval_high_seconds"] / known["center_step_seconds"] - 1
    widest = list_rows(known.assign(width=widths).nlargest(1, "width"))[0]
    moderated = ", moderated by the spread of the run's other cells" if analysis.moderated else ""
    label = f"{find_short_names(analysis).shorten(str(widest['label']))}, of {widest['num_counted']} repeats"
    most = f"{format_percent(widths.max())} %"
    text = f"The 95 % interval of the step time{moderated} reaches {most} above it ({label})."
    if len(known) > 1:
        text = (
            f"Half of the 95 % intervals of {len(known):,} step times{moderated} reach at most "
            f"{format_percent(widths.median())} % above them, the widest {most} ({label})."
        )
    few = f" How wide one of {FEW_REPEATS} repeats or fewer is, is partly chance."
    has_few = bool((known["num_counted"] <= FEW_REPEATS).any()) and not analysis.moderated
    return [Said(text=f"{text}{few if has_few else ''}", anchor="step-times")]


def find_changes(analysis: Analysis) -> list[Said]:
    """Return the changes over the nights that were confirmed by measuring again, the newest first."""
    confirmed = [change for change in analysis.history.changes if change.is_confirmed and change.decision is not None]
    anchor = name_anchor(NIGHTS_CAPTION)
    return [Said(text=text, anchor=anchor) for text in map(_describe_change, reversed(confirmed)) if text]


def _describe_change(change: RecordedChange) -> str:
    """Return a confirmed change in words; empty where it has no interval of its own, or one that holds 1."""
    suspicion, decision = change.suspicion, change.decision
    if decision is None or decision.shift is None or decision.shift.low <= 1 <= decision.shift.high:
        return ""
    shift = decision.shift
    what = suspicion.cell_ids[0] if suspicion.num_cells == 1 else f"{suspicion.num_cells} cells"
    shares = [f"{100 * (value - 1):+.1f}" for value in (shift.ratio, shift.low, shift.high)]
    return (
        f"Since run {suspicion.first_run_id}, {what} on {suspicion.hardware}: step time {shares[0]} % "
        f"({shares[1]} to {shares[2]}), confirmed by {count_things(decision.num_repeats, 'more repeat')}."
    )
