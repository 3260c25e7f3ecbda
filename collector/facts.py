"""State in words what was run where and when, and how it ended."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime

import pandas as pd

from bench.registry import FRAMEWORKS
from bench.schema import Environment, NodeFault, RawRemoval
from collector.labels import FRAMEWORK_NAMES, label_hardware
from collector.results.cell_repeats import FOR_LACK, NO, YES, count_values, judge_counting
from collector.results.collection import Collection
from collector.results.frames import MISSING, UNREADABLE
from collector.units import count_things, format_duration


def state_outcome(collection: Collection) -> str:
    """Return in a few sentences how many repeats ended ok and count, and how the others ended."""
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
    if FRAMEWORKS[name].dialect != "keras":  # type: ignore[index]
        return text
    keras = environment.versions.get("keras") if environment else None
    return f"{text} (Keras{f' {keras}' if keras else ''})"
