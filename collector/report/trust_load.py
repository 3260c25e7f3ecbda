"""Say what else used the machines of a run while it measured, and whether clocks were held down."""

import pandas as pd

from collector.analysis import Analysis
from collector.facts import count_things
from collector.report.trust_line import MAX_NAMED, State, TrustLine, join_sentences, select_ok
from collector.results.cells import find_shared
from collector.results.frames import list_rows
from collector.units import PERCENT, choose_memory_unit, format_number
from collector.word_lists import join_some

GRAVER_THAN_CONTAMINATED = frozenset({"wrong-device", "over-peak"})
GRAVER_THAN_THROTTLED = GRAVER_THAN_CONTAMINATED | {"contaminated"}
"""The verdicts that name a repeat instead of the one that it has too; rows of older versions of the tool have only the
gravest."""
REASON_SEPARATOR = "; "
"""What stands between the reasons of a verdict in the results."""


def judge_neighbours(analysis: Analysis) -> TrustLine | None:
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
    found = [f"{count_things(num_contaminated, 'repeat')} contaminated by others" if num_contaminated else ""]
    if num_foreign:
        found.append(f"other processes on the GPU in {count_things(num_foreign, 'repeat')}")
    elif len(gpu) > num_hidden:
        seen_in = count_things(len(gpu) - num_hidden, "repeat")
        found.append(f"no other process seen on the GPU before or after {seen_in}; one in between would not be")
    if num_hidden:
        found.append(f"whether others used the GPU was not visible in {num_hidden:,} of {len(gpu):,} repeats")
    found.append(_describe_masked(num_masked, "contaminated"))
    beside = [_describe_memory_before(gpu), _describe_other_cores(alone)]
    guests = _describe_other_guests(analysis)
    is_open = guests or num_hidden or num_masked or alone["cpu_other_cores"].isna().any()
    return TrustLine(
        title="Idle machine",
        text=join_sentences(*("; ".join(filter(None, texts)) for texts in (found, beside)), guests),
        state="beware" if num_contaminated or num_foreign else "unknown" if is_open else "good",
        doubt="others on the machine" if num_contaminated or num_foreign else "whether others used the machine",
        anchor="conditions",
    )


def judge_containers(analysis: Analysis) -> TrustLine | None:
    """Beware of repeats whose pod had containers that do not measure: they take cores, memory and bandwidth."""
    ok = select_ok(analysis)
    beside = ok["other_containers"].dropna()
    if beside.empty:
        return None
    names = sorted({name for text in beside.unique() for name in text.split(", ")})
    what = "another container" if len(names) == 1 else "other containers"
    where = f"beside {count_things(len(beside), 'repeat')} ({join_some(names, MAX_NAMED)})"
    return TrustLine(
        title="In the pod",
        text=join_sentences(f"{what} ran in the same pod {where}, with a share of its node's cores and memory"),
        state="beware",
        doubt=f"{what} in the pod",
        anchor="environments",
    )


def judge_clocks(analysis: Analysis) -> TrustLine | None:
    """Beware of throttled repeats, whatever graver verdict they have.

    Unknown where a clock could not be read, or whether the driver held it down.
    """
    ok = select_ok(analysis)
    gpu = ok[ok["device"] == "gpu"]
    num_throttled, num_masked = _count_faulty(ok, "throttled"), _count_masked(ok, GRAVER_THAN_THROTTLED)
    if gpu.empty and not num_throttled and not num_masked:
        return None
    shares = gpu["gpu_sm_clock_share"].dropna()
    found = [f"{count_things(num_throttled, 'repeat')} throttled" if num_throttled else ""]
    if len(shares):
        lowest, highest = (format_number(float(share), PERCENT) for share in (shares.min(), shares.max()))
        more = " or more" if highest != lowest else ""
        found.append(f"the GPU's clock was at {lowest} % of its maximum{more}, right after timed steps")
    if len(shares) < len(gpu):
        found.append(f"the clock is not known of {count_things(len(gpu) - len(shares), 'repeat')}")
    found.append(_describe_masked(num_masked, "throttled"))
    num_unread = int(gpu["gpu_throttle_reasons"].isna().sum())
    caveat = f"whether the driver held it down at times is not recorded ({num_unread:,} of {len(gpu):,} repeats)"
    is_open = num_masked or num_unread or len(shares) < len(gpu)
    state: State = "beware" if num_throttled else "unknown" if is_open else "good"
    text = join_sentences("; ".join(filter(None, found)), caveat if num_unread else "")
    doubt = f"{count_things(num_throttled, 'repeat')} throttled" if num_throttled else "whether clocks were held down"
    return TrustLine(title="Clocks", text=text, state=state, doubt=doubt, anchor="conditions")


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
    """Return how much of a GPU was in use before frameworks started: most of what others hold shows there."""
    most = gpu["gpu_memory_before_bytes"].max()
    if pd.isna(most):
        return ""
    unit = choose_memory_unit([float(most)])
    amount = f"at most {format_number(float(most), unit)} {unit.label}" if most else "nothing"
    return f"{amount} of its memory was in use before frameworks started"


def _describe_other_guests(analysis: Analysis) -> str:
    """Return whether a machine of the run is a virtual one: what others use of the same host cannot be seen there."""
    machines = [environment.machine for environment in analysis.collection.environments.values()]
    is_virtual = any(machine is not None and machine.is_virtual for machine in machines)
    return "other virtual machines are never seen" if is_virtual else ""


def _describe_other_cores(rows: pd.DataFrame) -> str:
    known = rows[rows["cpu_other_cores"].notna()]
    if known.empty:
        return "the use of the CPU by others is not known"
    (most,) = list_rows(known.nlargest(1, "cpu_other_cores"))
    cores = most["num_machine_cores"]
    of_all = "" if cores is None else f" of {cores}"
    return f"others used at most {most['cpu_other_cores']:.2g}{of_all} cores in a timed window"
