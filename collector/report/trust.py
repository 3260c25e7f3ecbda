"""Say in a few lines what speaks for and against trusting a run: each line is made from its data by one rule.

A line is `good` if its rule found nothing against the run, `beware` if it found something, `unknown` if the data do not
say, and a `fact` where there is nothing to judge.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import pandas as pd

from collector.analysis import Analysis
from collector.facts import count_things, describe_signatures
from collector.labels import FRAMEWORK_NAMES
from collector.results.cells import find_shared
from collector.results.frames import list_rows
from collector.units import GIB, PERCENT, format_number, format_significant

State = Literal["good", "beware", "unknown", "fact"]
MAX_NAMED = 2
"""Cells that a line names."""
GRAVER_THAN_CONTAMINATED = frozenset({"wrong-device", "over-peak"})
GRAVER_THAN_THROTTLED = GRAVER_THAN_CONTAMINATED | {"contaminated"}
"""The verdicts that name a repeat instead of the one that it has too; rows of older versions of the tool have only the
gravest."""
REASON_SEPARATOR = "; "
"""What stands between the reasons of a verdict in the results."""


@dataclass(frozen=True, kw_only=True)
class TrustLine:
    """One thing to know before trusting the figures."""

    title: str
    text: str
    state: State
    anchor: str = ""
    """The id of the part of the report that has more; empty: none has."""

    @property
    def sign(self) -> str:
        """The sign of its state."""
        return {"good": "✓", "beware": "!", "unknown": "?", "fact": "·"}[self.state]

    @property
    def meaning(self) -> str:
        """The state in words."""
        return {"good": "nothing against it", "beware": "beware", "unknown": "not known", "fact": "fact"}[self.state]


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
    is_good = num_ok == len(results) == verdicts["valid"] and bool((counts > 1).all())
    return TrustLine(
        title="Repeats",
        text=f"{ended}: {valid}{each}.",
        state="good" if is_good else "beware",
        anchor="not-known",
    )


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
    labels = judged.loc[judged["disagreement"].fillna("") != "", "label"].tolist()
    if not labels:
        cells = (
            f"{len(judged):,} of {count_things(len(measured), 'cell')}" if num_open else _all_of(len(judged), "cell")
        )
        text = f"repeats agree within the spread of their steps in {cells}{open_cells}."
        return line(text=text, state="unknown" if num_open else "good")
    more = f" and {len(labels) - MAX_NAMED:,} more" if len(labels) > MAX_NAMED else ""
    cells = f"{len(labels):,} of {count_things(len(measured), 'cell')}: {'; '.join(labels[:MAX_NAMED])}{more}"
    return line(text=f"repeats differ by more than their steps spread in {cells}{open_cells}.", state="beware")


def _judge_neighbours(analysis: Analysis) -> TrustLine | None:
    """Beware of contaminated repeats, whatever graver verdict they have; unknown where others could not be seen."""
    ok = _select_ok(analysis)
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
    ok = _select_ok(analysis)
    gpu = ok[ok["device"] == "gpu"]
    num_throttled = _count_faulty(ok, "throttled")
    num_masked = _count_masked(ok, GRAVER_THAN_THROTTLED)
    if gpu.empty and not num_throttled and not num_masked:
        return None
    shares = gpu["gpu_sm_clock_share"].dropna()
    parts = [f"{count_things(num_throttled, 'repeat')} throttled" if num_throttled else ""]
    if len(shares):
        lowest = format_number(float(shares.min()), PERCENT)
        parts.append(f"the GPU's clock was at {lowest} % of its maximum or more, by the median of each repeat")
    if len(shares) < len(gpu):
        parts.append(f"the clock is not known of {count_things(len(gpu) - len(shares), 'repeat')}")
    parts.append(_describe_masked(num_masked, "throttled"))
    is_open = num_masked or len(shares) < len(gpu)
    state: State = "beware" if num_throttled else "unknown" if is_open else "good"
    return TrustLine(title="Clocks", text=f"{'; '.join(filter(None, parts))}.", state=state, anchor="conditions")


def _judge_checks(analysis: Analysis) -> TrustLine | None:
    """Unknown: conditions that repeats say they could not check."""
    ok = _select_ok(analysis)
    texts = ok["unchecked"].dropna()
    counts = pd.Series([name for text in texts for name in text.split("; ") if name], dtype="str").value_counts()
    if counts.empty:
        return None
    named = "; ".join(f"{name} ({count:,})" for name, count in counts.head(MAX_NAMED).items())
    more = f"; {len(counts) - MAX_NAMED} more" if len(counts) > MAX_NAMED else ""
    text = f"repeats name conditions that they could not check: {named}{more}."
    return TrustLine(title="Not checked", text=text, state="unknown", anchor="step-times")


def _name_machines(analysis: Analysis) -> TrustLine | None:
    """Return what it ran on: hosts, GPUs and the driver; beware of several drivers."""
    ok = _select_ok(analysis)
    if ok.empty:
        return None
    hosts = sorted(ok["host"].dropna().unique())
    drivers = sorted(ok["driver_version"].dropna().unique())
    parts = [f"{count_things(len(hosts), 'host')} ({_join(hosts)})" if hosts else "the host is not known"]
    gpu = ok[ok["device"] == "gpu"]
    if len(gpu):
        names = _join(sorted(gpu["gpu_name"].dropna().unique())) or "of a kind that is not known"
        number = gpu.loc[gpu["gpu_uuid"].notna(), "gpu_uuid"].str.split(", ").explode().nunique()
        parts.append(f"{count_things(number, 'GPU')} ({names})" if number else f"GPU: {names}")
        parts.append(f"driver {_join(drivers)}" if drivers else "the driver is not known")
    parts.append(f"CPU: {_join(sorted(ok['cpu_model'].dropna().unique())) or 'not known'}")
    state: State = "beware" if len(drivers) > 1 else "fact"
    return TrustLine(title="Machine", text=f"{'; '.join(parts)}.", state=state, anchor="environments")


def _name_versions(analysis: Analysis) -> TrustLine | None:
    """Return the versions of frameworks and Python; beware of several, unknown where one is missing."""
    ok = _select_ok(analysis)
    if ok.empty:
        return None
    parts, states = [], set()
    for name, rows in ok.groupby("framework", sort=True):
        versions = sorted(rows["framework_version"].dropna().unique())
        is_open = bool(rows["framework_version"].isna().any())
        parts.append(
            f"{FRAMEWORK_NAMES.get(str(name), name)} {_join([*versions, *(['not known'] if is_open else [])])}"
        )
        states |= {"beware"} if len(versions) > 1 else {"unknown"} if is_open else set()
    python = _join(sorted(ok["python_version"].dropna().unique()))
    parts.append(f"Python {python}" if python else "Python: not known")
    state: State = "beware" if "beware" in states else "unknown" if states else "fact"
    return TrustLine(title="Versions", text=f"{', '.join(parts)}.", state=state, anchor="environments")


def _judge_signatures(analysis: Analysis) -> TrustLine:
    """Unknown where signatures were not checked; beware of wrong ones."""
    found = analysis.collection.signatures
    state: State = "unknown" if found is None else "beware" if found.problems else "good"
    return TrustLine(title="Signatures", text=f"{describe_signatures(analysis.collection)}.", state=state)


def _name_tool(analysis: Analysis) -> TrustLine:
    """Return the version of this tool that planned the run; beware of one with changes that no revision has."""
    run = analysis.collection.run
    commit, dirty, _ = (run.git_revision or "").partition("-dirty")
    revision = f"revision {commit[:12]}" if commit else "its revision is not known"
    changed = ", with changes that no revision has" if dirty else ""
    text = f"benchmatrix {run.tool_version}, {revision}{changed}."
    return TrustLine(title="Tool", text=text, state="beware" if dirty else "fact" if commit else "unknown")


def _count_skipped(analysis: Analysis) -> TrustLine | None:
    """Beware of documents that do not count."""
    count = len(analysis.collection.skipped)
    if not count:
        return None
    text = f"{count_things(count, 'document')} in the store did not count."
    return TrustLine(title="Skipped", text=text, state="beware", anchor="not-known")


def _select_ok(analysis: Analysis) -> pd.DataFrame:
    results = analysis.collection.results
    return results[results["status"] == "ok"]


def _all_of(count: int, thing: str) -> str:
    return f"the {thing}" if count == 1 else f"all {count_things(count, thing)}"


def _span(counts: "pd.Series[int]") -> str:
    low, high = int(counts.min()), int(counts.max())
    return f"{low}" if low == high else f"{low} to {high}"


def _join(texts: list[str]) -> str:
    shown = ", ".join(texts[:MAX_NAMED])
    return f"{shown} and {len(texts) - MAX_NAMED:,} more" if len(texts) > MAX_NAMED else shown


RULES: tuple[Callable[[Analysis], TrustLine | None], ...] = (
    _judge_repeats,
    _judge_agreement,
    _judge_neighbours,
    _judge_clocks,
    _judge_checks,
    _name_machines,
    _name_versions,
    _judge_signatures,
    _name_tool,
    _count_skipped,
)
