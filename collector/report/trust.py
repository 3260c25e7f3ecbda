"""Say in a few lines what speaks for and against trusting a run: each line is made from its data by one rule.

A line is `good` if its rule found nothing against the run, `beware` if it found something and `unknown` if the data do
not say. On which machine and with which versions it ran stands above them, and is a line here only where it is a reason
for doubt.
"""

from collections.abc import Callable
from functools import partial

import pandas as pd

from collector.analysis import Analysis
from collector.answers.measured import find_short_names
from collector.facts import count_things, describe_windows
from collector.report.trust_host import judge_host_speed
from collector.report.trust_line import MAX_NAMED, State, TrustLine, select_ok
from collector.report.trust_origin import (
    count_skipped,
    judge_signatures,
    name_machines,
    name_tool,
    name_versions,
)
from collector.results.cells import find_shared
from collector.results.frames import list_rows
from collector.units import GIB, PERCENT, format_number, format_significant

GRAVER_THAN_CONTAMINATED = frozenset({"wrong-device", "over-peak"})
GRAVER_THAN_THROTTLED = GRAVER_THAN_CONTAMINATED | {"contaminated"}
"""The verdicts that name a repeat instead of the one that it has too; rows of older versions of the tool have only the
gravest."""
VALID = (
    "Valid: on the device asked for, within its peak, long and steady; no throttling, no wait for data and no "
    "disturbance seen"
)
REASON_SEPARATOR = "; "
"""What stands between the reasons of a verdict in the results."""


def list_trust_lines(analysis: Analysis) -> list[TrustLine]:
    """Return the lines of all rules that have something to say of the run."""
    return [line for rule in RULES if (line := rule(analysis)) is not None]


def _judge_repeats(analysis: Analysis) -> TrustLine:
    """Beware of repeats that did not end ok or are not valid, and of cells of which one repeat counts."""
    results, measured = analysis.collection.results, analysis.measured
    num_ok, verdicts = int((results["status"] == "ok").sum()), analysis.collection.count_verdicts()
    faults = ", ".join(f"{count:,} {verdict}" for verdict, count in verdicts.most_common() if verdict != "valid")
    ended = f"{num_ok:,} of {len(results):,} planned ended ok"
    valid = f"{verdicts['valid']:,} valid{f', {faults}' if faults else ''}"
    counts = measured["num_counted"]
    each = f"; {_span(counts)} {'count' if counts.max() > 1 else 'counts'} in each cell" if len(counts) else ""
    timed = describe_windows(analysis.collection)
    each += f", of {timed}" if timed else ""
    is_good = num_ok == len(results) == verdicts["valid"] and bool((counts > 1).all())
    return TrustLine(
        title="Repeats",
        text=" ".join(filter(None, [f"{ended}: {valid}{each}.", _explain_valid(analysis)])),
        state="good" if is_good else "beware",
        anchor="not-known",
    )


def _explain_valid(analysis: Analysis) -> str:
    """Return what the verdict of valid repeats says and what it leaves open; empty where none is valid."""
    ok = select_ok(analysis)
    valid = ok[ok["verdict"] == "valid"]
    if valid.empty:
        return ""
    seen = valid.loc[(valid["device"] == "gpu") & ~find_shared(valid), "num_foreign_processes"]
    others = "that nobody else used the GPU, which was not visible, or "
    if not seen.isna().any():
        others = "that nobody came and went on the GPU, or " if len(seen) else ""
    return f"{VALID}; it does not say {others}that the time is typical."


def _judge_agreement(analysis: Analysis) -> TrustLine | None:
    """Beware of cells whose repeats differ by more than their steps spread; unknown if any has not two on one machine.

    How repeats on several machines differ is not judged by their steps.
    """
    measured = analysis.measured
    if measured.empty:
        return None
    line = partial(TrustLine, title="Agreement", anchor="step-times")
    judged = measured[(measured["num_machines"] == 1) & (measured["num_counted"] > 1)]
    num_open = len(measured) - len(judged)
    if judged.empty:
        why = "one counts in each" if (measured["num_counted"] < 2).all() else "no cell has two on one machine"
        return line(text=f"whether repeats of a cell agree is not known: {why}.", state="unknown")
    open_cells = f"; of {num_open:,} it is not known" if num_open else ""
    differing = list_rows(judged.loc[judged["disagreement"].fillna("") != "", ["label", "disagreement"]])
    if not differing:
        cells = (
            f"{len(judged):,} of {count_things(len(measured), 'cell')}" if num_open else _all_of(len(judged), "cell")
        )
        text = f"repeats agree within the spread of their steps in {cells}{open_cells}."
        return line(text=text, state="unknown" if num_open else "good")
    names = find_short_names(analysis)
    named = [f"{names.shorten(row['label'])}, {row['disagreement']}" for row in differing[:MAX_NAMED]]
    more = f" and {len(differing) - MAX_NAMED:,} more" if len(differing) > MAX_NAMED else ""
    cells = f"{len(differing):,} of {count_things(len(measured), 'cell')} ({'; '.join(named)}{more})"
    text = (
        f"repeats differ by more than their steps spread in {cells}{open_cells}. Which speed is the usual one takes "
        "more repeats to know."
    )
    return line(text=text, state="beware")


def _judge_neighbours(analysis: Analysis) -> TrustLine | None:
    """Beware of contaminated repeats, whatever graver verdict they have; unknown where others could not be seen."""
    ok = select_ok(analysis)
    alone = ok[~find_shared(ok)]
    if alone.empty:
        return None
    gpu = alone[alone["device"] == "gpu"]
    seen = gpu["num_foreign_processes"]
    num_hidden, num_foreign = int(seen.isna().sum()), int((seen > 0).sum())
    num_contaminated = _count_faulty(alone, "contaminated")
    num_masked = _count_masked(alone, GRAVER_THAN_CONTAMINATED)
    parts = [f"{count_things(num_contaminated, 'repeat')} contaminated by others" if num_contaminated else ""]
    if num_foreign:
        parts.append(f"other processes on the GPU in {count_things(num_foreign, 'repeat')}")
    elif len(gpu) > num_hidden:
        parts.append(f"no other process seen on the GPU in {count_things(len(gpu) - num_hidden, 'repeat')}")
    if num_hidden:
        parts.append(f"whether others used the GPU was not visible in {num_hidden:,} of {len(gpu):,} repeats")
    parts += [_describe_masked(num_masked, "contaminated"), _describe_memory_before(gpu), _describe_other_cores(alone)]
    is_bad = num_contaminated or num_foreign
    is_open = num_hidden or num_masked or alone["cpu_other_cores"].isna().any()
    return TrustLine(
        title="Was it idle",
        text=f"{'; '.join(filter(None, parts))}.",
        state="beware" if is_bad else "unknown" if is_open else "good",
        anchor="conditions",
    )


def _count_faulty(rows: pd.DataFrame, verdict: str) -> int:
    """Count the repeats that have a fault of this verdict, whichever verdict is their gravest."""
    faults = " " + rows["fault_verdicts"].fillna("") + " "
    return int(((rows["verdict"] == verdict) | faults.str.contains(f" {verdict} ", regex=False)).sum())


def _count_masked(rows: pd.DataFrame, graver: frozenset[str]) -> int:
    """Count the repeats named by one of the `graver` verdicts of whose further reasons the verdicts are not known."""
    has_more = rows["verdict_reasons"].fillna("").str.contains(REASON_SEPARATOR, regex=False)
    return int((rows["verdict"].isin(graver) & has_more & rows["fault_verdicts"].isna()).sum())


def _describe_masked(number: int, verdict: str) -> str:
    if not number:
        return ""
    was = "was" if number == 1 else "were"
    return f"whether {count_things(number, 'repeat')} that a graver verdict names {was} {verdict} too is not known here"


def _describe_memory_before(gpu: pd.DataFrame) -> str:
    """Return how much of a GPU was in use before a framework started: most of what others hold shows there."""
    most = gpu["gpu_memory_before_bytes"].max()
    if pd.isna(most):
        return ""
    amount = f"at most {format_number(float(most), GIB)} GiB" if most else "nothing"
    return f"{amount} of its memory in use before a framework started"


def _describe_other_cores(rows: pd.DataFrame) -> str:
    known = rows[rows["cpu_other_cores"].notna()]
    if known.empty:
        return "the use of the CPU by others is not known"
    (most,) = list_rows(known.nlargest(1, "cpu_other_cores"))
    cores = most["num_machine_cores"]
    of_all = "" if cores is None else f" of {cores}"
    return f"others used at most {format_significant(most['cpu_other_cores'])}{of_all} cores in a timed window"


def _judge_clocks(analysis: Analysis) -> TrustLine | None:
    """Beware of throttled repeats, whatever graver verdict they have; unknown where a clock could not be read."""
    ok = select_ok(analysis)
    gpu = ok[ok["device"] == "gpu"]
    num_throttled = _count_faulty(ok, "throttled")
    num_masked = _count_masked(ok, GRAVER_THAN_THROTTLED)
    if gpu.empty and not num_throttled and not num_masked:
        return None
    shares = gpu["gpu_sm_clock_share"].dropna()
    parts = [f"{count_things(num_throttled, 'repeat')} throttled" if num_throttled else ""]
    if len(shares):
        lowest, highest = (format_number(float(share), PERCENT) for share in (shares.min(), shares.max()))
        more = " or more" if highest != lowest else ""
        parts.append(f"the GPU's clock was at {lowest} % of its maximum{more}, by the median of each repeat")
    if len(shares) < len(gpu):
        parts.append(f"the clock is not known of {count_things(len(gpu) - len(shares), 'repeat')}")
    parts.append(_describe_masked(num_masked, "throttled"))
    is_open = num_masked or len(shares) < len(gpu)
    state: State = "beware" if num_throttled else "unknown" if is_open else "good"
    return TrustLine(title="Clocks", text=f"{'; '.join(filter(None, parts))}.", state=state, anchor="conditions")


def _judge_checks(analysis: Analysis) -> TrustLine | None:
    """Unknown: conditions that repeats say they could not check."""
    ok = select_ok(analysis)
    texts = ok["unchecked"].dropna()
    counts = pd.Series([name for text in texts for name in text.split("; ") if name], dtype="str").value_counts()
    if counts.empty:
        return None
    named = "; ".join(f"{name} ({count:,})" for name, count in counts.head(MAX_NAMED).items())
    more = f"; {len(counts) - MAX_NAMED} more" if len(counts) > MAX_NAMED else ""
    text = f"repeats name conditions that they could not check: {named}{more}."
    return TrustLine(title="Not checked", text=text, state="unknown", anchor="step-times")


def _all_of(count: int, thing: str) -> str:
    return f"the {thing}" if count == 1 else f"all {count_things(count, thing)}"


def _span(counts: "pd.Series[int]") -> str:
    low, high = int(counts.min()), int(counts.max())
    return f"{low}" if low == high else f"{low} to {high}"


RULES: tuple[Callable[[Analysis], TrustLine | None], ...] = (
    _judge_repeats,
    _judge_agreement,
    _judge_neighbours,
    _judge_clocks,
    judge_host_speed,
    _judge_checks,
    name_machines,
    name_versions,
    judge_signatures,
    name_tool,
    count_skipped,
)
