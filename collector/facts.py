"""State in words what was run where and when, how it ended, and what speaks against trusting it.

Each doubt is found by one rule, and named by a code; the page, the terminal and the files show the same list. A doubt
is `beware` if its rule found something against the run and `unknown` if the data do not say.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

import pandas as pd

from bench.registry import FRAMEWORKS as KNOWN_FRAMEWORKS
from bench.schema import Environment, NodeFault, RawRemoval
from collector.analysis import Analysis
from collector.cell_words import FRAMEWORK_NAMES
from collector.comparisons import FRAMEWORKS
from collector.labels import label_hardware
from collector.results.collection import Collection
from collector.results.frames import MISSING, UNREADABLE, find_shared, list_rows, select_alone
from collector.results.hosts import describe_drift, describe_environment, list_drifted, measure_drift
from collector.results.summary import FOR_LACK, NO, YES, count_values, judge_counting
from collector.tables.environments import describe_libraries
from collector.units import (
    PERCENT,
    choose_memory_unit,
    count_things,
    format_duration,
    format_number,
    join_words,
    list_some,
)

Severity = Literal["beware", "unknown"]
SIGNS: dict[Severity, str] = {"beware": "!", "unknown": "?"}
MAX_NAMED = 3
"""Things that a sentence names."""
MAX_APART = 0.1
"""The share from which on repeats of one cell are far apart, however much their steps spread."""


@dataclass(frozen=True)
class Doubt:
    """One thing to know before trusting the figures."""

    code: str
    severity: Severity
    title: str
    """What it is in a few words, which can stand alone."""
    text: str
    """What the title leaves out, in one sentence or two, with what stays open."""
    count: int = 1
    """How many things (repeats, cells, machines, documents) it is of."""
    cells: tuple[str, ...] = ()
    """The labels of the cells that it concerns; empty where it concerns the run."""

    @property
    def sign(self) -> str:
        return SIGNS[self.severity]


def list_doubts(analysis: Analysis) -> list[Doubt]:
    """Return the doubts of a run, those to beware of first; within a severity in the order of the rules."""
    found = [doubt for rule in RULES for doubt in rule(analysis)]
    return sorted(found, key=lambda doubt: doubt.severity == "unknown")


def _find_bad_repeats(analysis: Analysis) -> Iterator[Doubt]:
    results = analysis.collection.results
    for status, rows in results[results["status"] != "ok"].groupby("status", sort=False):
        cells, more = _name_cells(analysis, rows), ""
        if status in ("missing", "unreadable"):
            more = f" {state_resumption(analysis.collection)}".rstrip()
        title = f"{count_things(len(rows), 'repeat')} {status}"
        text = f"Of {count_things(len(results), 'planned repeat')}, in {_list(cells)}.{more}"
        yield Doubt(f"repeats-{status}", "beware", title, text, len(rows), cells)


def _find_not_valid(analysis: Analysis) -> Iterator[Doubt]:
    """Yield repeats that ended ok but are not valid: left out, counted although uneven, or used for lack of others."""
    results, measured = analysis.collection.results, analysis.measured
    is_ok, counting = results["status"] == "ok", judge_counting(results)
    for code, is_in, verb, words in (
        ("repeats-left-out", is_ok & (counting == NO), "left out", "left out for the conditions of their measurement"),
        ("repeats-uneven", (counting == YES) & (results["verdict"] != "valid"), "counted", "counted although uneven"),
    ):
        rows = results[is_in]
        if len(rows):
            cells, title = _name_cells(analysis, rows), f"{count_values(rows['verdict'])}, {verb}"
            text = f"{count_things(len(rows), 'repeat')} that ended ok {words}, in {_list(cells)}."
            yield Doubt(code, "beware", title, text, len(rows), cells)
    unsound = measured.loc[measured["num_sound"] == 0, "label"].tolist()
    if unsound:
        title = f"{count_things(len(unsound), 'cell')} without a sound repeat"
        text = "The figures are of repeats whose conditions were at fault, and nothing is compared with them."
        yield Doubt("unsound", "beware", title, text, len(unsound), tuple(unsound))


def _find_unsure(analysis: Analysis) -> Iterator[Doubt]:
    """Yield cells without an interval, and those whose repeats do not agree or lie far apart."""
    measured = analysis.measured
    single = measured.loc[measured["num_counted"] == 1, "label"].tolist()
    if single:
        title = f"{count_things(len(single), 'cell')} of one repeat"
        text = "Nothing is known of the spread between repeats, so there is no interval and no verdict."
        yield Doubt("one-repeat", "beware", title, text, len(single), tuple(single))
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
            f"The repeats of {count_things(len(names), 'cell')} disagree or lie more than {100 * MAX_APART:.0f} % "
            f"apart: {_list(named)}. More repeats would tell which speed is usual."
        )
        title = f"repeats up to {format_number(most, PERCENT, 2)} % apart"
        yield Doubt("repeats-apart", "beware", title, text, len(names), tuple(names))


def _find_others_on_machine(analysis: Analysis) -> Iterator[Doubt]:
    ok = _select_ok(analysis)
    alone = ok[~find_shared(ok)]
    gpu = alone[alone["device"] == "gpu"]
    contaminated = _find_faulty(alone, "contaminated")
    foreign = (gpu["num_foreign_processes"] > 0).reindex(alone.index, fill_value=False)
    rows = alone[contaminated | foreign]
    if len(rows):
        cells, title = _name_cells(analysis, rows), f"others on the machine in {count_things(len(rows), 'repeat')}"
        text = f"In {_list(cells)}. {_describe_others(alone)}".rstrip()
        yield Doubt("contaminated", "beware", title, text, len(rows), cells)
    machines = [environment.machine for environment in analysis.collection.environments.values()]
    is_virtual = any(one is not None and one.is_virtual for one in machines)
    hidden = int(gpu["num_foreign_processes"].isna().sum())
    parts = [
        f"other processes on the GPU in {hidden:,} of {len(gpu):,} repeats" if hidden else "",
        "other virtual machines of the same host" if is_virtual else "",
        "the use of the CPU by others" if len(alone) and alone["cpu_other_cores"].isna().all() else "",
    ]
    if any(parts) and len(alone):
        text = f"Not visible here: {join_words(filter(None, parts))}. {_describe_others(alone)}".rstrip()
        yield Doubt("others-unseen", "unknown", "others may be unseen", text)
    beside = ok["other_containers"].dropna()
    if len(beside):
        names = sorted({name for text in beside.unique() for name in text.split(", ")})
        text = (
            f"Beside the measurement of {count_things(len(beside), 'repeat')} "
            f"({join_words(list_some(names, MAX_NAMED))}), with a share of cores and memory."
        )
        title = f"{count_things(len(names), 'other container')} in the pod"
        yield Doubt("other-containers", "beware", title, text, len(beside))


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
    gpu, throttled = ok[ok["device"] == "gpu"], ok[_find_faulty(ok, "throttled")]
    if len(throttled):
        cells, title = _name_cells(analysis, throttled), f"{count_things(len(throttled), 'repeat')} throttled"
        text = f"Clocks were held down, in {_list(cells)}."
        yield Doubt("throttled", "beware", title, text, len(throttled), cells)
    unread = int((gpu["gpu_throttle_reasons"].isna() | gpu["gpu_sm_clock_share"].isna()).sum())
    if unread:
        text = f"Whether clocks were held down is not recorded of {unread:,} of {len(gpu):,} repeats on a GPU."
        yield Doubt("clocks-unread", "unknown", "clocks not read", text, unread)


def _find_host_drift(analysis: Analysis) -> Iterator[Doubt]:
    """Yield that products of one framework differed by more than MAX_DRIFT between results of one host."""
    drifted = list_drifted(analysis.collection.host_products)
    if drifted:
        named = _list([f"on {one.host}, {describe_drift(one)}" for one in drifted])
        text = f"{named}. Intervals show it only as far as a cell's repeats met different speeds."
        title = f"host CPU speed changed by {measure_drift(drifted[0])}"
        yield Doubt("host-speed", "beware", title, text, len(drifted))


def _find_unchecked(analysis: Analysis) -> Iterator[Doubt]:
    texts = Counter(name for text in _select_ok(analysis)["unchecked"].dropna() for name in text.split("; ") if name)
    if texts:
        title = f"{count_things(len(texts), 'condition')} not checked"
        text = f"Repeats could not check: {_list_counts(texts)}."
        yield Doubt("unchecked", "unknown", title, text, texts.total())


def _find_environments(analysis: Analysis) -> Iterator[Doubt]:
    ok, measured = _select_ok(analysis), analysis.measured
    named = [("drivers", "drivers", ok["driver_version"])]
    for framework, rows in ok.groupby("framework", sort=True):
        name = FRAMEWORK_NAMES.get(str(framework))
        named.append(("versions", f"versions of {name}", rows["framework_version"]))
        if rows["framework_version"].isna().all():
            text = "Its results do not record it."
            yield Doubt("versions", "unknown", f"version of {name} not known", text)
    for code, words, values in named:
        found = sorted(values.dropna().unique())
        if len(found) > 1:
            text = f"Repeats ran with {join_words(list_some(found, MAX_NAMED))}."
            yield Doubt(code, "beware", f"{len(found)} {words}", text, len(found))
    mixed = measured[measured["num_environments"] > 1]
    if len(mixed):
        environments = [analysis.collection.environments[name] for name in mixed["environment_id"].unique()]
        described = [describe_environment(one) for one in environments]
        names = dict.fromkeys(name for texts in described for name in texts)
        fields = [name for name in names if len({texts.get(name) for texts in described}) > 1]
        cells = tuple(mixed["label"].unique())
        number = int(mixed["cell_id"].nunique())
        text = f"Each has a row; they differ in {join_words(list_some(fields, 2 * MAX_NAMED))}."
        title = f"{count_things(number, 'cell')} in several environments"
        yield Doubt("environments", "beware", title, text, number, cells)


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
        yield Doubt("one-machine", "unknown", title, text, len(found))


def _find_libraries(analysis: Analysis) -> Iterator[Doubt]:
    pairs = analysis.comparisons[FRAMEWORKS.name]
    if text := describe_libraries(select_alone(pairs[pairs["p_value"].notna()]), analysis.collection):
        text = f"{text} How much of a ratio that explains is not known."
        yield Doubt("libraries", "unknown", "libraries of frameworks differ", text)


def _find_documents(analysis: Analysis) -> Iterator[Doubt]:
    collection, run = analysis.collection, analysis.collection.run
    if collection.skipped:
        title = f"{count_things(len(collection.skipped), 'document')} skipped"
        text = f"What they say is in no figure: {_list_counts(Counter(one.reason for one in collection.skipped))}."
        yield Doubt("skipped", "beware", title, text, len(collection.skipped))
    retried = int((collection.results["num_attempts"] > 1).sum())
    if retried:
        text = "Figures come from the earliest attempt that ended ok and undisturbed."
        yield Doubt("retried", "unknown", f"{count_things(retried, 'repeat')} retried", text, retried)
    commit, dirty, _ = (run.git_revision or "").partition("-dirty")
    if dirty or not commit:
        title = "changed code of the tool" if dirty else "revision of the tool not known"
        what = f", revision {commit[:12]} with changes that no revision has" if dirty else ""
        yield Doubt("tool", "unknown", title, f"Planned by benchmatrix {run.tool_version}{what}.")
    if run.left_out:
        text = f"They cannot run here: {_list_counts(Counter(one.reason for one in run.left_out))}."
        yield Doubt(
            "left-out", "unknown", f"{count_things(len(run.left_out), 'cell')} left out", text, len(run.left_out)
        )


def _select_ok(analysis: Analysis) -> pd.DataFrame:
    results = analysis.collection.results
    return results[results["status"] == "ok"]


def _find_faulty(rows: pd.DataFrame, verdict: str) -> "pd.Series[bool]":
    faults = " " + rows["fault_verdicts"].fillna("") + " "
    return ((rows["verdict"] == verdict) | faults.str.contains(f" {verdict} ", regex=False)).astype(bool)


def _name_cells(analysis: Analysis, rows: pd.DataFrame) -> tuple[str, ...]:
    labels = analysis.summary.drop_duplicates("cell_id").set_index("cell_id")["label"]
    return tuple(str(labels[one]) for one in dict.fromkeys(rows["cell_id"]))


def _list(names: Sequence[str]) -> str:
    return "; ".join(list_some(names, MAX_NAMED))


def _list_counts(reasons: "Counter[str]") -> str:
    return _list([f"{reason} ({number:,})" for reason, number in reasons.most_common()])


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
)


def state_outcome(collection: Collection) -> str:
    results = collection.results
    num_ok = int((results["status"] == "ok").sum())
    planned = count_things(len(results), "planned repeat")
    outcome = f"{num_ok:,} of {planned} ended ok, in {count_things(len(collection.run.cells), 'cell')}."
    others = count_values(results.loc[results["status"] != "ok", "status"])
    return " ".join([outcome, *([f"The others: {others}."] if others else []), *_state_verdicts(results)])


def state_resumption(collection: Collection) -> str:
    """Return in words how repeats without a result are measured, and what is of those whose result cannot be read.

    Empty where there are none.
    """
    statuses = collection.results["status"]
    num_unreadable = int((statuses == UNREADABLE).sum())
    sentences = []
    if (statuses == MISSING).any():
        how = f"if it is given again, with --run-id {collection.run.run_id}"
        sentences.append(f"The command of the run measures what is missing {how}.")
    if num_unreadable:
        repeats = count_things(num_unreadable, "repeat")
        sentences.append(f"The store has a result of {repeats} and does not give it: how it ended is not known.")
    return " ".join(sentences)


def _state_verdicts(results: pd.DataFrame) -> list[str]:
    """Return a sentence on how many of the repeats that ended ok count, and why; none where all of them are valid."""
    is_faulty = (results["status"] == "ok") & (results["verdict"] != "valid")
    if not is_faulty.any():
        return []
    counting = judge_counting(results)
    words = {YES: ("counts", "count"), NO: ("does not", "do not"), FOR_LACK: ("is used", "are used")}
    parts = []
    for value, (one, several) in words.items():
        chosen = (results["status"] == "ok") & (counting == value)
        number, faults = int(chosen.sum()), count_values(results.loc[chosen & is_faulty, "verdict"])
        if number:
            why = f" {FOR_LACK}" if value == FOR_LACK else ""
            named = f" ({faults})" if faults else ""
            parts.append(f"{number:,} {one if number == 1 else several}{why}{named}")
    return [f"{', '.join(parts)}."]


def list_facts(collection: Collection) -> list[tuple[str, str]]:
    run, results = collection.run, collection.results
    ok = results[results["status"] == "ok"]
    commit, dirty, _ = (run.git_revision or "").partition("-dirty")
    revision = f", revision {commit[:12]}{dirty}" if commit else ""
    facts = [
        ("matrix", run.matrix),
        ("run", run.run_id),
        ("measured", _describe_span(results)),
        ("host", ", ".join(sorted(results["host"].dropna().unique())) or run.hostname),
        ("CPU", _list_hardware(ok, collection)),
        ("GPU", _list_gpus(ok)),
        ("driver", ", ".join(sorted(ok["driver_version"].dropna().unique()))),
        ("frameworks", _list_frameworks(ok, collection)),
        ("left out", count_things(len(run.left_out), "cell") if run.left_out else ""),
        ("nodes at fault", "; ".join(describe_node_faults(collection.node_faults))),
        ("skipped", count_things(len(collection.skipped), "document") if collection.skipped else ""),
        ("planned", f"{_format_time(run.created_at)} by {run.user} on {run.hostname}"),
        ("tool", f"benchmatrix {run.tool_version}{revision}"),
    ]
    return [(name, text) for name, text in facts if text]


def describe_windows(collection: Collection) -> str:
    """Return how many steps were timed a repeat, and how long; empty where none was."""
    results = collection.results
    rows = results[(results["status"] == "ok") & (results["window_samples_per_s"] > 0)]
    if rows.empty:
        return ""
    steps = rows["num_steps_taken"].astype("float64")
    seconds = steps * rows["batch_size"] / rows["window_samples_per_s"]
    return f"{_describe_range(steps, '{:,.0f}')} steps a repeat, {_describe_range(seconds, '{:,.2g}')} s"


def _describe_range(values: "pd.Series[float]", form: str) -> str:
    ends = dict.fromkeys(form.format(value) for value in (values.min(), values.max()))
    return " to ".join(ends)


def describe_node_faults(faults: Sequence[NodeFault]) -> list[str]:
    """Return what is to be said of each node that could not measure attempts, the most faults first."""
    by_node: dict[str, list[NodeFault]] = defaultdict(list)
    for fault in faults:
        by_node[fault.node_name or "a node of unknown name"].append(fault)
    return [
        f"{node}: {count_things(len(found), 'attempt')} could not begin, the last at {_format_time(found[-1].at)}: "
        f"{found[-1].reason}{'; left out of later Jobs for an hour' if found[-1].is_left_out else ''}"
        for node, found in sorted(by_node.items(), key=lambda item: (-len(item[1]), item[0]))
    ]


def describe_raw_removals(removals: Sequence[RawRemoval]) -> list[str]:
    """Return one line for each day and policy by which raw results of the run were removed, the oldest first."""
    by_day: defaultdict[tuple[str, str], set[tuple[str, int, str]]] = defaultdict(set)
    for removal in removals:
        names = {(result.cell_id, result.repeat, result.attempt) for result in removal.results}
        by_day[f"{removal.at:%Y-%m-%d}", removal.policy] |= names
    return [
        f"{count_things(len(names), 'raw result')} removed on {day} ({policy}): they are not measured again; "
        "their rows were in the data set then"
        for (day, policy), names in by_day.items()
    ]


def _describe_span(results: pd.DataFrame) -> str:
    times = results[["started_at", "finished_at"]].dropna()
    if times.empty:
        return ""
    start, end = times["started_at"].min(), times["finished_at"].max()
    return f"{_format_time(start)}, for {format_duration((end - start).total_seconds())}"


def _format_time(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def _list_hardware(ok: pd.DataFrame, collection: Collection) -> str:
    machines = ok[["cpu_model", "num_threads", "environment_id"]].drop_duplicates().itertuples(index=False, name=None)
    known = {name: environment.machine for name, environment in collection.environments.items()}
    virtual = {name for name, machine in known.items() if machine is not None and machine.is_virtual}
    named = {
        f"{label_hardware(cpu, threads)}{' of a virtual machine' if environment_id in virtual else ''}"
        for cpu, threads, environment_id in machines
    }
    return "; ".join(sorted(named))


def _list_gpus(ok: pd.DataFrame) -> str:
    """Return the GPUs, or that no repeat ran on one, in words that stand by themselves; empty without any repeat."""
    if ok.empty:
        return ""
    rows = ok[ok["device"] == "gpu"]
    named = ", ".join(sorted(rows["gpu_name"].dropna().unique()))
    return named or ("GPU of unknown name" if len(rows) else "no GPU used")


def _list_frameworks(ok: pd.DataFrame, collection: Collection) -> str:
    columns = (ok[name].fillna("") for name in ("framework", "framework_version", "environment_id"))
    named = {
        _name_framework(name, version, collection.environments.get(environment_id))
        for name, version, environment_id in dict.fromkeys(zip(*columns, strict=True))
    }
    return ", ".join(sorted(named))


def _name_framework(name: str, version: str, environment: Environment | None) -> str:
    text = f"{FRAMEWORK_NAMES[name]} {version or '(version not known)'}"
    if KNOWN_FRAMEWORKS[name].dialect != "keras":  # type: ignore[index]
        return text
    keras = environment.versions.get("keras") if environment else None
    return f"{text} (Keras{f' {keras}' if keras else ''})"
