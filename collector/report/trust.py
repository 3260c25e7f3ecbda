"""Say in a few lines what speaks for and against trusting a run: each line is made from its data by one rule.

A line is `good` if its rule found nothing against the run, `beware` if it found something and `unknown` if the data do
not say. It has two sentences at most: what was found, then what that leaves open. On which machine and with which
versions it ran stands above them, and is a line here only where it is a reason for doubt.
"""

from collections.abc import Callable
from functools import partial

import pandas as pd

from collector.analysis import Analysis
from collector.answers.measured import ShortNames, find_short_names
from collector.facts import count_things, describe_windows, list_some
from collector.ratio_words import format_percent
from collector.report.trust_host import judge_host_speed
from collector.report.trust_line import MAX_NAMED, MEANINGS, State, TrustLine, join_sentences, select_ok
from collector.report.trust_load import judge_clocks, judge_containers, judge_neighbours
from collector.report.trust_origin import (
    count_skipped,
    judge_dates,
    judge_signatures,
    name_machines,
    name_tool,
    name_versions,
)
from collector.report.trust_scope import name_differing_libraries, name_single_machines
from collector.results.frames import list_rows
from collector.word_lists import join_some

MAX_APART = 0.1
"""The share from which on repeats of one cell are far apart, however much their steps spread."""
WHAT_VALID_LEAVES_OPEN = "Valid says that no fault was seen, not that the time is typical"


def list_trust_lines(analysis: Analysis) -> list[TrustLine]:
    """Return the lines of all rules that have something to say of the run."""
    return [line for rule in RULES if (line := rule(analysis)) is not None]


def sum_up_trust(analysis: Analysis) -> str:
    """Return the doubts of the lines and the titles of the good ones, by state: `Beware: one card. Not known: ...`"""
    parts: dict[State, list[str]] = {}
    for line in analysis.derive(list_trust_lines):
        parts.setdefault(line.state, []).append(line.title.lower() if line.state == "good" else line.doubt)
    return join_sentences(*(f"{MEANINGS[state]}: {'; '.join(parts[state])}" for state in MEANINGS if state in parts))


def _judge_repeats(analysis: Analysis) -> TrustLine:
    """Beware of repeats that did not end ok or are not valid, and of cells of which one repeat counts."""
    results, counts = analysis.collection.results, analysis.measured["num_counted"]
    num_ok, verdicts = int((results["status"] == "ok").sum()), analysis.collection.count_verdicts()
    num_valid, is_sound = verdicts["valid"], num_ok == len(results) == verdicts["valid"]
    faults = "".join(f", {count:,} {verdict}" for verdict, count in verdicts.most_common() if verdict != "valid")
    ended = f"{num_ok:,} of {len(results):,} planned ended ok" + (f": {num_valid:,} valid{faults}" if num_ok else "")
    found = f"{num_valid:,} of {num_valid:,} are valid" if is_sound else ended
    counted = f"; {_span(counts)} {'count' if counts.max() > 1 else 'counts'} in each cell" if len(counts) else ""
    timed = describe_windows(analysis.collection)
    return TrustLine(
        title="Repeats",
        text=join_sentences(
            f"{found}{counted}{f', of {timed}' if timed else ''}", WHAT_VALID_LEAVES_OPEN if num_valid else ""
        ),
        state="good" if is_sound and bool((counts > 1).all()) else "beware",
        doubt=_doubt_repeats(len(results), num_ok, num_valid),
        anchor="method" if is_sound else "not-known",
    )


def _doubt_repeats(num_planned: int, num_ok: int, num_valid: int) -> str:
    """Return how many repeats did not end ok, and how many of the others are not valid; or that cells have one."""
    not_ok = f"{count_things(num_planned - num_ok, 'repeat')} did not end ok" if num_ok < num_planned else ""
    number = num_ok - num_valid
    not_valid = f"{number:,} {'other is' if number == 1 else 'others are'} not valid" if number else ""
    return ", ".join(filter(None, (not_ok, not_valid))) or "cells of one repeat"


def _judge_agreement(analysis: Analysis) -> TrustLine | None:
    """Beware of cells whose repeats differ by more than their steps spread, or lie more than MAX_APART apart.

    It is unknown if any cell has not two on one machine.

    How repeats on several machines differ is not judged by their steps.
    """
    measured = analysis.measured
    if measured.empty:
        return None
    line = partial(TrustLine, title="Agreement", anchor="step-times")
    judged = measured[(measured["num_machines"] == 1) & (measured["num_counted"] > 1)]
    num_open, cells = len(measured) - len(judged), count_things(len(measured), "cell")
    whether = "whether repeats agree"
    if judged.empty:
        why = "one counts in each" if (measured["num_counted"] < 2).all() else "no cell has two on one machine"
        return line(
            text=join_sentences(f"Whether repeats of a cell agree is not known: {why}"), state="unknown", doubt=whether
        )
    caveat = f"Of {num_open:,} of {cells} it is not known" if num_open else ""
    differing = list_rows(judged.loc[judged["disagreement"].fillna("") != "", ["label", "disagreement"]])
    names = find_short_names(analysis)
    if not differing:
        state, found = _describe_agreeing(judged, len(measured), names)
        far = f"repeats of a cell lie up to {format_percent(_find_farthest(judged)[0])} % apart"
        return line(text=join_sentences(found, caveat), state=state, doubt=far if state == "beware" else whether)
    described = [f"{names.shorten(row['label'])}, {row['disagreement']}" for row in differing]
    named = join_some(described, MAX_NAMED, separator="; ")
    found = f"The repeats of {len(differing):,} of {cells} disagree ({named})"
    others = "other" if num_open == 1 else "others"
    open_too = f"; of {num_open:,} {others} it is not known whether they agree" if num_open else ""
    return line(
        text=join_sentences(found, f"More repeats would tell which speed is usual{open_too}"),
        state="beware",
        doubt=f"repeats of {count_things(len(differing), 'cell')} disagree",
    )


def _describe_agreeing(judged: pd.DataFrame, num_cells: int, names: ShortNames) -> tuple[State, str]:
    """Return the state and the sentence of cells whose repeats agree; `judged`: those of `num_cells` that were judged.

    Repeats far apart are named first: that their steps spread as much does not make the cell better known.
    """
    num_open = num_cells - len(judged)
    cells = count_things(num_cells, "cell")
    which = f"{len(judged):,} of {cells}" if num_open else _all_of(len(judged), "cell")
    apart, label = _find_farthest(judged)
    farthest = f"{format_percent(apart)} % apart ({names.shorten(label)})"
    if apart > MAX_APART:
        return "beware", f"Repeats of one cell lie up to {farthest}; in {which} no farther than their steps spread"
    found = f"The repeats of {which} agree within the spread of their steps"
    return ("unknown" if num_open else "good"), f"{found}; the farthest lie {farthest}" if apart > 0 else found


def _find_farthest(judged: pd.DataFrame) -> tuple[float, str]:
    """Return how much longer the slowest repeat of a cell takes than its fastest, as a share, and the cell's label.

    Of the cell where that is most; 0 where no cell has the times of its repeats.
    """
    apart = (judged["most_repeat_seconds"] / judged["least_repeat_seconds"] - 1).astype("float64").fillna(0.0)
    farthest = int(apart.argmax())
    return float(apart.iloc[farthest]), str(judged["label"].iloc[farthest])


def _judge_checks(analysis: Analysis) -> TrustLine | None:
    """Name the conditions that repeats say they could not check: whether they were sound is unknown."""
    ok = select_ok(analysis)
    texts = ok["unchecked"].dropna()
    counts = pd.Series([name for text in texts for name in text.split("; ") if name], dtype="str").value_counts()
    if counts.empty:
        return None
    named = "; ".join(list_some([f"{name} ({count:,})" for name, count in counts.items()], MAX_NAMED))
    text = join_sentences(f"Repeats name conditions that they could not check: {named}")
    doubt = "conditions that repeats could not check"
    return TrustLine(title="Not checked", text=text, state="unknown", doubt=doubt, anchor="step-times")


def _all_of(count: int, thing: str) -> str:
    return f"the {thing}" if count == 1 else f"all {count_things(count, thing)}"


def _span(counts: "pd.Series[int]") -> str:
    low, high = int(counts.min()), int(counts.max())
    return f"{low}" if low == high else f"{low} to {high}"


RULES: tuple[Callable[[Analysis], TrustLine | None], ...] = (
    _judge_repeats,
    _judge_agreement,
    name_single_machines,
    name_differing_libraries,
    judge_neighbours,
    judge_containers,
    judge_clocks,
    judge_host_speed,
    _judge_checks,
    name_machines,
    name_versions,
    judge_signatures,
    name_tool,
    judge_dates,
    count_skipped,
)
