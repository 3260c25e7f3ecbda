"""List what speaks against trusting a run: each doubt is found by one rule, and named by a code.

The page, the terminal and the files show the same list. A doubt is `beware` if its rule found something against the
run and `unknown` if the data do not say.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from collector.analysis import Analysis
from collector.comparisons import FRAMEWORKS
from collector.facts import count_values, state_resumption
from collector.labels import FRAMEWORK_NAMES
from collector.results.cell_repeats import NO, YES, judge_counting
from collector.results.frames import find_shared, list_rows, select_alone
from collector.results.hosts import MAX_DRIFT, describe_drift, describe_environment, list_drifted, measure_drift
from collector.tables.environments import describe_libraries
from collector.units import PERCENT, choose_memory_unit, count_things, format_number, join_words, list_some

Severity = Literal["beware", "unknown"]
SIGNS: dict[Severity, str] = {"beware": "!", "unknown": "?"}
MAX_NAMED = 3
"""Things that a sentence names."""
MAX_APART = 0.1
"""The share from which on repeats of one cell are far apart, however much their steps spread."""


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """One thing to know before trusting the figures."""

    code: str
    severity: Severity
    title: str
    """What it is in a few words, which can stand alone."""
    text: str
    """The same in one sentence or two, with what it leaves open."""
    count: int = 1
    """How many things (repeats, cells, machines, documents) it is of."""
    cells: tuple[str, ...] = ()
    """The labels of the cells that it concerns; empty where it concerns the run."""

    @property
    def sign(self) -> str:
        return SIGNS[self.severity]


def _beware(code: str, title: str, text: str, *, count: int = 1, cells: tuple[str, ...] = ()) -> Doubt:
    return Doubt(code=code, severity="beware", title=title, text=text, count=count, cells=cells)


def _unknown(code: str, title: str, text: str, *, count: int = 1) -> Doubt:
    return Doubt(code=code, severity="unknown", title=title, text=text, count=count)


def list_doubts(analysis: Analysis) -> list[Doubt]:
    """Return the doubts of a run, those to beware of first; within a severity in the order of the rules."""
    found = [doubt for rule in RULES for doubt in rule(analysis)]
    return sorted(found, key=lambda doubt: doubt.severity == "unknown")


def _find_bad_repeats(analysis: Analysis) -> Iterator[Doubt]:
    """Yield a doubt for each way in which planned repeats did not end ok."""
    results = analysis.collection.results
    bad = results[results["status"] != "ok"]
    for status, rows in bad.groupby("status", sort=False):
        number, cells = len(rows), _name_cells(analysis, rows["cell_id"])
        more = f" {state_resumption(analysis.collection)}".rstrip() if status in ("missing", "unreadable") else ""
        yield _beware(
            f"repeats-{status}",
            f"{count_things(number, 'repeat')} {status}",
            f"{number:,} of {len(results):,} planned repeats: {status}, in {_list(cells)}.{more}",
            count=number,
            cells=cells,
        )


def _find_not_valid(analysis: Analysis) -> Iterator[Doubt]:
    """Yield what ended ok and is not valid: left out, counted although uneven, used for lack of sound ones."""
    results, measured = analysis.collection.results, analysis.measured
    is_ok, counting = results["status"] == "ok", judge_counting(results)
    for code, is_in, words in (
        ("repeats-left-out", is_ok & (counting == NO), "left out for the conditions of their measurement"),
        ("repeats-uneven", (counting == YES) & (results["verdict"] != "valid"), "counted although uneven"),
    ):
        rows = results[is_in]
        if len(rows):
            cells, verdicts = _name_cells(analysis, rows["cell_id"]), count_values(rows["verdict"])
            text = f"{count_things(len(rows), 'repeat')} that ended ok {words}: {verdicts}, in {_list(cells)}."
            title = f"{verdicts}, {'left out' if code == 'repeats-left-out' else 'counted'}"
            yield _beware(code, title, text, count=len(rows), cells=cells)
    unsound = measured.loc[measured["num_sound"] == 0, "label"].tolist()
    if unsound:
        title = f"{count_things(len(unsound), 'cell')} without a sound repeat"
        text = f"{title}: the figures are of repeats whose conditions were at fault, and nothing is compared with them."
        yield _beware("unsound", title, text, count=len(unsound), cells=tuple(unsound))


def _find_unsure(analysis: Analysis) -> Iterator[Doubt]:
    """Yield cells without an interval, and those whose repeats do not agree or lie far apart."""
    measured = analysis.measured
    single = measured.loc[measured["num_counted"] == 1, "label"].tolist()
    if single:
        title = f"{count_things(len(single), 'cell')} of one repeat"
        text = f"{title}: nothing is known of the spread between repeats, so there is no interval and no verdict."
        yield _beware("one-repeat", title, text, count=len(single), cells=tuple(single))
    judged = measured[(measured["num_machines"] == 1) & (measured["num_counted"] > 1)]
    apart = (judged["most_repeat_seconds"] / judged["least_repeat_seconds"] - 1).astype("float64").fillna(0.0)
    differ = (judged["disagreement"].fillna("") != "") | (apart > MAX_APART)
    if differ.any():
        rows = judged[differ].assign(apart=apart[differ]).sort_values("apart", ascending=False, kind="stable")
        names, most = rows["label"].tolist(), float(rows["apart"].iloc[0])
        named = [
            f"{label}: {words or f'{format_number(share, PERCENT, 2)} % apart'}"
            for label, words, share in zip(names, rows["disagreement"].fillna(""), rows["apart"], strict=True)
        ]
        text = (
            f"The repeats of {count_things(len(names), 'cell')} disagree or lie more than {100 * MAX_APART:.0f} % apart"
        )
        yield _beware(
            "repeats-apart",
            f"repeats up to {format_number(most, PERCENT, 2)} % apart",
            f"{text}: {'; '.join(list_some(named, MAX_NAMED))}. More repeats would tell which speed is usual.",
            count=len(names),
            cells=tuple(names),
        )


def _find_others_on_machine(analysis: Analysis) -> Iterator[Doubt]:
    ok = _select_ok(analysis)
    alone = ok[~find_shared(ok)]
    gpu = alone[alone["device"] == "gpu"]
    contaminated = _find_faulty(alone, "contaminated")
    foreign = gpu["num_foreign_processes"] > 0
    if contaminated.any() or foreign.any():
        rows = alone[contaminated | foreign.reindex(alone.index, fill_value=False)]
        cells = _name_cells(analysis, rows["cell_id"])
        text = f"Others used the machine during {count_things(len(rows), 'repeat')}, in {_list(cells)}."
        yield _beware(
            "contaminated",
            f"others on the machine in {count_things(len(rows), 'repeat')}",
            f"{text} {_describe_others(alone)}",
            count=len(rows),
            cells=cells,
        )
    machines = [environment.machine for environment in analysis.collection.environments.values()]
    is_virtual = any(one is not None and one.is_virtual for one in machines)
    hidden = int(gpu["num_foreign_processes"].isna().sum())
    parts = [
        f"other processes on the GPU in {hidden:,} of {len(gpu):,} repeats" if hidden else "",
        "other virtual machines of the same host" if is_virtual else "",
        "the use of the CPU by others" if len(alone) and alone["cpu_other_cores"].isna().all() else "",
    ]
    unseen = [part for part in parts if part]
    if unseen and len(alone):
        text = f"Not visible here: {join_words(unseen)}. {_describe_others(alone)}"
        yield _unknown("others-unseen", "others may be unseen", text)
    beside = ok["other_containers"].dropna()
    if len(beside):
        names = sorted({name for text in beside.unique() for name in text.split(", ")})
        text = f"Containers that do not measure ran in the pods of {count_things(len(beside), 'repeat')}"
        title = f"{count_things(len(names), 'other container')} in the pod"
        yield _beware(
            "other-containers",
            title,
            f"{text} ({join_words(list_some(names, MAX_NAMED))}), with a share of cores and memory.",
            count=len(beside),
        )


def _describe_others(rows: pd.DataFrame) -> str:
    """Return the most that was seen of others: cores in use, and memory of the GPU before frameworks started."""
    parts = []
    known = rows["cpu_other_cores"].dropna()
    if len(known):
        (most,) = list_rows(rows.nlargest(1, "cpu_other_cores")[["num_machine_cores"]])
        of_all: str = "" if pd.isna(most["num_machine_cores"]) else f" of {most['num_machine_cores']}"
        parts.append(f"{known.max():.2g}{of_all} cores in a timed window")
    before = rows["gpu_memory_before_bytes"].max()
    if not pd.isna(before) and before:
        unit = choose_memory_unit([float(before)])
        parts.append(f"{format_number(float(before), unit)} {unit.label} of a GPU's memory before frameworks started")
    return f"Others used at most {' and '.join(parts)}." if parts else ""


def _find_clocks(analysis: Analysis) -> Iterator[Doubt]:
    """Yield throttled repeats, whatever graver verdict they have, and clocks that could not be read."""
    ok = _select_ok(analysis)
    gpu = ok[ok["device"] == "gpu"]
    throttled = _find_faulty(ok, "throttled")
    if throttled.any():
        cells = _name_cells(analysis, ok.loc[throttled, "cell_id"])
        number = int(throttled.sum())
        title = f"{count_things(number, 'repeat')} throttled"
        yield _beware(
            "throttled", title, f"{title}: clocks were held down, in {_list(cells)}.", count=number, cells=cells
        )
    unread = int((gpu["gpu_throttle_reasons"].isna() | gpu["gpu_sm_clock_share"].isna()).sum())
    if unread:
        text = f"Whether clocks were held down is not recorded of {unread:,} of {len(gpu):,} repeats on a GPU."
        yield _unknown("clocks-unread", "clocks not read", text, count=unread)


def _find_host_drift(analysis: Analysis) -> Iterator[Doubt]:
    """Yield that products of one framework differed by more than MAX_DRIFT between results of one host."""
    drifted = list_drifted(analysis.collection.host_products)
    if drifted:
        named = "; ".join(list_some([f"on {one.host}, {describe_drift(one)}" for one in drifted], MAX_NAMED))
        text = (
            f"The host's speed changed by more than {100 * MAX_DRIFT:.0f} %: {named}. Intervals show it only as far as "
            "a cell's repeats met different speeds."
        )
        title = f"host CPU speed changed by {measure_drift(drifted[0])}"
        yield _beware("host-speed", title, text, count=len(drifted))


def _find_unchecked(analysis: Analysis) -> Iterator[Doubt]:
    texts = Counter(name for text in _select_ok(analysis)["unchecked"].dropna() for name in text.split("; ") if name)
    if texts:
        named = "; ".join(list_some([f"{name} ({number:,})" for name, number in texts.most_common()], MAX_NAMED))
        text = f"Repeats name conditions that they could not check: {named}."
        title = f"{count_things(len(texts), 'condition')} not checked"
        yield _unknown("unchecked", title, text, count=texts.total())


def _find_environments(analysis: Analysis) -> Iterator[Doubt]:
    """Yield what differs within the run: drivers, versions, environments of one cell."""
    ok, measured = _select_ok(analysis), analysis.measured
    drivers = sorted(ok["driver_version"].dropna().unique())
    if len(drivers) > 1:
        text = f"GPUs ran with {count_things(len(drivers), 'driver')}: {join_words(list_some(drivers, MAX_NAMED))}."
        yield _beware("drivers", f"{len(drivers)} drivers", text, count=len(drivers))
    for framework, rows in ok.groupby("framework", sort=True):
        versions, name = sorted(rows["framework_version"].dropna().unique()), FRAMEWORK_NAMES.get(str(framework))
        if len(versions) > 1:
            title = f"{len(versions)} versions of {name}"
            text = f"{title} ran: {join_words(list_some(versions, MAX_NAMED))}."
            yield _beware("versions", title, text, count=len(versions))
        elif not versions:
            title = f"version of {name} not known"
            yield _unknown("versions", title, f"The {title}.")
    mixed = measured[measured["num_environments"] > 1]
    if len(mixed):
        found = [analysis.collection.environments[name] for name in dict.fromkeys(mixed["environment_id"])]
        described = [describe_environment(one) for one in found]
        names = dict.fromkeys(name for texts in described for name in texts)
        fields = [name for name in names if len({texts.get(name) for texts in described}) > 1]
        number = int(mixed["cell_id"].nunique())
        title = f"{count_things(number, 'cell')} in several environments"
        text = f"{title}, one row each; they differ in {join_words(list_some(fields, 2 * MAX_NAMED))}."
        cells = tuple(dict.fromkeys(mixed["label"]))
        yield _beware("environments", title, text, count=number, cells=cells)


def _find_lone_machines(analysis: Analysis) -> Iterator[Doubt]:
    sound = analysis.measured[analysis.measured["num_sound"] > 0]
    found = []
    for device, column in (("gpu", "gpu_name"), ("cpu", "cpu_model")):
        rows = sound[sound["device"] == device]
        for (number, kind), machines in rows.groupby(["num_gpus", column])["machines"]:
            if len({one for names in machines for one in names.split("; ")}) == 1:
                noun = "host" if device == "cpu" else "card" if number == 1 else f"set of {number} cards"
                found.append((noun, str(kind)))
    if found:
        named = join_words(list_some([f"one {noun} ({kind})" for noun, kind in found], MAX_NAMED))
        text = f"Measured on {named}: by how much others of the kind differ is not known."
        title = join_words(f"one {noun}" for noun in dict.fromkeys(noun for noun, _ in found))
        yield _unknown("one-machine", title, text, count=len(found))


def _find_libraries(analysis: Analysis) -> Iterator[Doubt]:
    """Yield that frameworks whose times were compared differ in libraries and settings, too."""
    pairs = analysis.comparisons[FRAMEWORKS.name]
    text = describe_libraries(select_alone(pairs[pairs["p_value"].notna()]), analysis.collection)
    if text:
        text = f"{text} How much of a ratio that explains is not known."
        yield _unknown("libraries", "libraries of frameworks differ", text)


def _find_documents(analysis: Analysis) -> Iterator[Doubt]:
    """Yield documents that do not count, retried repeats, and a tool that no revision has."""
    collection, run = analysis.collection, analysis.collection.run
    if collection.skipped:
        title = f"{count_things(len(collection.skipped), 'document')} skipped"
        reasons = Counter(document.reason for document in collection.skipped).most_common()
        named = "; ".join(list_some([f"{reason} ({number:,})" for reason, number in reasons], MAX_NAMED))
        text = f"{title}: what they say is in no figure ({named})."
        yield _beware("skipped", title, text, count=len(collection.skipped))
    retried = int((collection.results["num_attempts"] > 1).sum())
    if retried:
        title = f"{count_things(retried, 'repeat')} retried"
        text = f"{title}: figures come from the earliest attempt that ended ok and undisturbed."
        yield _unknown("retried", title, text, count=retried)
    commit, dirty, _ = (run.git_revision or "").partition("-dirty")
    if dirty or not commit:
        title = "changed code of the tool" if dirty else "revision of the tool not known"
        what = f"revision {commit[:12]} with changes that no revision has" if dirty else "of a revision not recorded"
        text = f"Planned by benchmatrix {run.tool_version}, {what}."
        yield _unknown("tool", title, text)


def _find_left_out(analysis: Analysis) -> Iterator[Doubt]:
    left_out = analysis.collection.run.left_out
    if left_out:
        reasons = Counter(one.reason for one in left_out).most_common()
        named = "; ".join(list_some([f"{reason} ({number:,})" for reason, number in reasons], MAX_NAMED))
        title = f"{count_things(len(left_out), 'cell')} left out"
        text = f"{title}, as they cannot run here: {named}."
        yield _unknown("left-out", title, text, count=len(left_out))


def _select_ok(analysis: Analysis) -> pd.DataFrame:
    results = analysis.collection.results
    return results[results["status"] == "ok"]


def _find_faulty(rows: pd.DataFrame, verdict: str) -> "pd.Series[bool]":
    faults = " " + rows["fault_verdicts"].fillna("") + " "
    return ((rows["verdict"] == verdict) | faults.str.contains(f" {verdict} ", regex=False)).astype(bool)


def _name_cells(analysis: Analysis, cell_ids: Iterable[str]) -> tuple[str, ...]:
    labels = analysis.summary.drop_duplicates("cell_id").set_index("cell_id")["label"]
    return tuple(str(labels[one]) for one in dict.fromkeys(cell_ids))


def _list(names: Sequence[str]) -> str:
    return "; ".join(list_some(names, MAX_NAMED))


Rule = Callable[[Analysis], Iterator[Doubt]]
RULES: tuple[Rule, ...] = (
    _find_bad_repeats,
    _find_not_valid,
    _find_unsure,
    _find_others_on_machine,
    _find_clocks,
    _find_host_drift,
    _find_environments,
    _find_documents,
    _find_lone_machines,
    _find_libraries,
    _find_unchecked,
    _find_left_out,
)
