"""Compare cells in pairs that differ in one thing: framework, device, mode, precision, number of GPUs.

A pair is matched on every field of the cell but the one compared, those that the comparison leaves free, and the
protocol (how long was measured). Machines of one kind are not equally fast: a ratio between two machines holds their
difference too, and only where several ran both sides does its interval hold it. Where a function takes sides, these
are rows of `summarize_cells`, or rows that say as much of a cell.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from bench import registry
from collector.cell_words import DEVICE_NAMES, FRAMEWORK_NAMES
from collector.ratio_words import judge_rows
from collector.results.frames import CELL_COLUMNS, PROTOCOL_FIELDS, Columns, Row, group_rows, list_rows, make_frame
from collector.results.hosts import drop_build
from collector.results.summary import read_measured
from collector.statistics import Estimate, divide, invert_estimate, scale_estimate
from collector.units import count_things, join_some
from collector.versus.question import describe_value

FP32, WITHOUT_TF32 = "fp32", "without TF32"
"""The precision that others are compared with: true float32, as `bench.schema.Cell.precision` says."""
SIDE_COLUMNS: Columns = {
    **dict.fromkeys(("run_id", "cell_id", "environment_id", "framework_version", "cpu_model"), "str"),
    **{"num_threads": "Int64", "gpu_name": "str", "cuda_graph": "boolean"},
    **dict.fromkeys(("num_sound", "num_counted", "num_machines"), "int64"),
    **{"machines": "str", "instance_types": "str", "center_step_seconds": "float64"},
}
READ_COLUMNS = (
    *("hardware_id", "num_planned", "num_ok", "note", "hostnames"),
    *("log_standard_error", "degrees_of_freedom", "is_staged", "machine_step_seconds", "machine_deviations"),
)
"""What is read of both sides beside SIDE_COLUMNS: a run of 20,000 cells has columns enough to fill the memory."""
MAX_GPUS = 64


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Says which cells are paired, and what is computed of each pair."""

    name: str
    field: str
    """The field of the cell in which subject and reference differ."""
    pairs: tuple[tuple[str | int, str | int], ...]
    """(subject, reference): values of `field`."""
    measure: Literal["time ratio", "speedup", "efficiency"]
    """`time ratio`: the subject's step time over the reference's, below 1 where the subject is faster.
    `speedup`: the reference's over the subject's. `efficiency`: throughput of n GPUs over n times that of one."""
    free: tuple[str, ...] = ()
    """Further fields that may differ; where the batch may, that of one GPU (`batch_per_gpu`) must be equal."""
    same_hardware: bool = True
    same_version: bool = True
    """Whether the framework's version must be equal; `+cpu` and the like, which name its build, may differ."""

    @property
    def match(self) -> list[str]:
        fields = [name for name in CELL_COLUMNS if name not in (self.field, *self.free, *PROTOCOL_FIELDS)]
        return fields + ["batch_per_gpu"] * ("batch_size" in self.free)

    @property
    def sided(self) -> list[str]:
        return [self.field, *self.free, *SIDE_COLUMNS]

    @property
    def needed(self) -> list[str]:
        return list(dict.fromkeys([*self.match, *self.sided, *READ_COLUMNS]))

    @property
    def columns(self) -> Columns:
        dtypes = {**CELL_COLUMNS, "batch_per_gpu": "int64", **SIDE_COLUMNS}
        return (
            {name: dtypes[name] for name in self.match}
            | {"subject": "str", "reference": "str"}
            | {f"{name}_{side}": dtypes[name] for name in self.sided for side in SIDES}
            | dict.fromkeys(("ratio", "ratio_low", "ratio_high", "joint_low", "joint_high"), "float64")
            | {"log_standard_error": "float64", "degrees_of_freedom": "float64"}
            | {"scope": "str", "p_value": "float64", "p_adjusted": "float64"}
            | {"decision": "str", "reason": "str", "note": "str"}
        )


FRAMEWORKS = Comparison(
    name="frameworks",
    field="framework",
    pairs=tuple((name, spec.reference) for name, spec in registry.FRAMEWORKS.items() if spec.reference is not None),
    measure="time ratio",
    free=("mode",),
    same_version=False,
)
DEVICES = Comparison(name="devices", field="device", pairs=(("gpu", "cpu"),), measure="speedup", same_hardware=False)
MODES = Comparison(
    name="modes",
    field="mode",
    pairs=(
        ("compiled", "eager"),
        ("compiled", "graph"),
        ("graph", "eager"),
        ("graph", "unfused"),
        ("fused-norm", "graph"),
    ),
    measure="speedup",
)
PRECISIONS = Comparison(
    name="precisions",
    field="precision",
    pairs=(("tf32", FP32), ("fp16", FP32), ("bf16", FP32), ("fp8", "bf16"), ("int8-weights", "bf16")),
    measure="speedup",
)
WEAK_SCALING = Comparison(
    name="weak-scaling",
    field="num_gpus",
    pairs=tuple((number, 1) for number in range(2, MAX_GPUS + 1)),
    measure="efficiency",
    free=("batch_size",),
)
STRONG_SCALING = Comparison(name="strong-scaling", field="num_gpus", pairs=WEAK_SCALING.pairs, measure="efficiency")
COMPARISONS = (FRAMEWORKS, DEVICES, MODES, PRECISIONS, WEAK_SCALING, STRONG_SCALING)


def compare_all(summary: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return {one.name: compare_cells(summary, one) for one in COMPARISONS}


def compare_cells(summary: pd.DataFrame, comparison: Comparison) -> pd.DataFrame:
    """Return one row per matched pair of rows of `summary`, with the columns `comparison.columns`.

    `summary`: of one run or of several. A pair that ran on the same hardware, or in the same run, is preferred to the
    same pair of cells across them. `decision`: whether the subject is `slower` or `faster`, or why that is not judged.
    A pair that is not compared, or left out as a side has no sound repeat, has no ratio, and `reason` says why.
    Efficiencies, which nobody expects to be 1, are not tested. `scope`: on how many machines the ratio rests.
    `log_standard_error` and `degrees_of_freedom` are those of the ratio's log.
    """
    rows = summary.assign(batch_per_gpu=summary["batch_size"] // summary["num_gpus"])[comparison.needed]
    name = comparison.field
    subjects, references = (list_rows(rows[rows[name].isin(own)]) for own in zip(*comparison.pairs, strict=True))
    partners = group_rows(references, comparison.match)
    pairs = [
        (subject, reference)
        for subject in subjects
        for reference in partners.get(tuple(subject[column] for column in comparison.match), ())
        if (subject[name], reference[name]) in comparison.pairs
    ]
    if comparison.same_hardware:
        pairs = _prefer_equal(pairs, "hardware_id")
    compared = [_compare(pair, comparison) for pair in _prefer_equal(pairs, "run_id")]
    words = ("faster", "slower") if comparison.measure == "speedup" else ("slower", "faster")
    return make_frame(judge_rows(compared, *words), comparison.columns)


def _prefer_equal(pairs: Sequence[tuple[Row, Row]], name: str) -> list[tuple[Row, Row]]:
    """Return the pairs without those for which the same two cells have one that is equal in `name`."""
    equal = {(one["cell_id"], other["cell_id"]) for one, other in pairs if one[name] == other[name]}
    return [
        (one, other)
        for one, other in pairs
        if one[name] == other[name] or (one["cell_id"], other["cell_id"]) not in equal
    ]


def _compare(sides: Sequence[Row], comparison: Comparison) -> Row:
    subject, reference = sides
    names = name_sides(subject, reference)
    row = {name: subject[name] for name in comparison.match} | dict(zip(SIDES, names, strict=True))
    for key, side in zip(SIDES, sides, strict=True):
        row |= {f"{name}_{key}": side[name] for name in comparison.sided}
    notes = [*_list_notes(sides, names), *(_list_other_programs(sides) if comparison.measure == "efficiency" else ())]
    obstacle = find_obstacle(*sides, same_hardware=comparison.same_hardware, same_version=comparison.same_version)
    if reason := _explain(obstacle, sides, names):
        decision = "left out" if obstacle == "unsound" else "not compared"
        return row | {"decision": decision, "reason": reason, "note": "; ".join(notes)}
    notes += list_machine_notes(sides, names)
    row |= {"scope": describe_scope(*sides), "note": "; ".join(notes)}
    time_ratio = estimate_pair(subject, reference)
    ratio = time_ratio if comparison.measure == "time ratio" else invert_estimate(time_ratio)
    if comparison.measure == "efficiency":
        batches = subject["batch_size"] / (reference["batch_size"] * subject["num_gpus"])
        ratio = scale_estimate(ratio, batches)
    low, high = ratio.interval or (None, None)
    row |= {"ratio": ratio.center, "ratio_low": low, "ratio_high": high}
    row |= {name: getattr(ratio, name) for name in ("log_standard_error", "degrees_of_freedom")}
    if obstacle or comparison.measure == "efficiency":
        untested = {"machines": "machines differ", "one-repeat": "one repeat"}
        return row | {"decision": untested.get(obstacle, "not tested")}
    return row | {"estimate": ratio}


def _explain(obstacle: str, sides: Sequence[Row], names: Sequence[str]) -> str:
    failed, unsound = (
        " and of ".join(name for name, side in zip(names, sides, strict=True) if not side[column])
        for column in ("num_ok", "num_sound")
    )
    versions = " and ".join(str(drop_build(side["framework_version"])) for side in sides)
    return {
        "failed": f"no ok repeat of {failed}",
        "hardware": "the hardware differs",
        "version": f"the framework's versions differ, {versions}",
        "unsound": f"no repeat of {unsound} was measured under sound conditions",
    }.get(obstacle, "")


def name_sides(one: Row, other: Row) -> tuple[str, str]:
    """Return the names of two cells by what differs: `PyTorch eager`, `JAX compiled`; `A`, `B` where nothing does."""
    differing = [name for name in CELL_COLUMNS if name not in PROTOCOL_FIELDS and one[name] != other[name]]
    if "framework" in differing:
        differing = [name for name in differing if name != "mode"]

    def name_value(cell: Row, name: str) -> str:
        value = describe_value(cell[name])
        if name == "framework":
            return f"{FRAMEWORK_NAMES.get(value, value)} {cell['mode']}"
        if name in ("precision", "phase", "model", "mode"):
            return value
        if name == "num_gpus":
            return count_things(cell[name], "GPU")
        return DEVICE_NAMES[value] if name == "device" else f"{'batch' if name == 'batch_size' else name} {value}"

    first, second = (", ".join(name_value(cell, name) for name in differing) for cell in (one, other))
    return (first, second) if differing else ("A", "B")


def _list_notes(sides: Sequence[Row], names: Sequence[str]) -> list[str]:
    notes = []
    for side, name in zip(sides, names, strict=True):
        ok, planned = side["num_ok"], side["num_planned"]
        notes += [f"{name}: {ok} ok of {planned} planned"] if ok < planned else []
        notes += [f"{name}: {side['note']}"] if side["note"] else []
    (run, other_run), (cpu, other_cpu) = ([side[name] for side in sides] for name in ("run_id", "cpu_model"))
    if run != other_run:
        notes.append(f"of two runs, {run} and {other_run}")
    if cpu != other_cpu and all(side["num_ok"] for side in sides):
        notes.append(f"the host of {names[0]} has another CPU, {cpu}")
    return notes


def _list_other_programs(sides: Sequence[Row]) -> list[str]:
    """Return in what way one GPU and several run different programs: their efficiency is not that of scaling alone."""
    names = [count_things(side["num_gpus"], "GPU") for side in sides]
    graphs = [side["cuda_graph"] for side in sides]
    if None not in graphs and graphs[0] != graphs[1]:
        with_graph, without = names if graphs[0] else reversed(names)
        return [f"other programs: one CUDA graph on {with_graph}, none on {without}"]
    if sides[0]["framework"] == "tensorflow" and sides[0]["mode"] == "compiled":
        compiled = "only losses and gradients" if sides[0]["phase"] == "train" else "each GPU's part"
        return [f"other programs: XLA compiles the whole step on {names[1]}, {compiled} on {names[0]}"]
    return []


# A note names so many machines of a side, and counts the others.
MAX_NAMED = 3
SIDES = ("subject", "reference")
ACROSS = "across machines"
DIFFERENT_BY_NATURE = ("device", "num_gpus")
"""Fields whose values cannot have the same machine: a GPU and a CPU, one GPU and several."""
Obstacle = Literal["", "failed", "hardware", "version", "unsound", "one-repeat", "machines"]


def find_obstacle(*sides: Row, same_hardware: bool, same_version: bool) -> Obstacle:
    """Return what keeps the ratio of two sides from a verdict, the gravest first; empty where nothing does.

    `same_hardware`, `same_version`: whether the sides have to be equal in it, which excludes different machines too.
    """
    if not all(side["num_ok"] for side in sides):
        return "failed"
    if same_hardware and _differ(sides, "hardware_id"):
        return "hardware"
    if same_version and len({drop_build(side["framework_version"]) for side in sides}) > 1:
        return "version"
    if not all(side["num_sound"] for side in sides):
        return "unsound"
    if any(pd.isna(side["log_standard_error"]) for side in sides):
        return "one-repeat"
    return "machines" if same_hardware and is_confounded(*sides) else ""


def estimate_pair(subject: Row, reference: Row) -> Estimate:
    """Return the subject's step time over the reference's."""
    return divide(read_measured(subject), read_measured(reference))


def is_confounded(*sides: Row) -> bool:
    """Return whether a ratio holds a difference of machines of which no interval says how large it is.

    The sides ran on different machines, one of them on a single one. A GPU and a CPU, or one GPU and several, are
    different machines by what they are: the ratio is that of these two.
    """
    is_across = _differ(sides, "machines") and not any(_differ(sides, name) for name in DIFFERENT_BY_NATURE)
    return is_across and min(side["num_machines"] for side in sides) < 2


def describe_scope(*sides: Row) -> str:
    """Return in words on how many machines the ratio rests: `one card`, `across machines, 2 cards a side`.

    On a cluster with the machine type of its nodes: `one card, n1-standard-8`. If the sides are DIFFERENT_BY_NATURE,
    those of one host are not across machines.
    """
    types = ["unknown" if pd.isna(side["instance_types"]) else side["instance_types"] for side in sides]
    named = "" if set(types) == {"unknown"} else " / ".join(dict.fromkeys(types))
    return ", ".join(filter(None, [_describe_machines(sides), named]))


def _describe_machines(sides: Sequence[Row]) -> str:
    is_of_devices = _differ(sides, "device")
    nouns = [_name_unit(side, is_of_devices=is_of_devices) for side in sides]
    counts = [int(side["num_machines"]) for side in sides]
    if not _differ(sides, "machines"):
        return count_machines(counts[0], nouns[0])
    words = " and ".join(map(count_machines, counts, nouns))
    is_one_host = not _differ(sides, "hostnames")
    if is_one_host and (is_of_devices or _differ(sides, "num_gpus")):
        return words if counts != [1, 1] else "one card and its host" if is_of_devices else "one machine"
    if counts[0] == counts[1] and nouns[0] == nouns[1]:
        words = f"{count_machines(counts[0], nouns[0])} a side"
    if nouns == ["card", "card"] and is_one_host and ";" not in sides[0]["hostnames"]:
        words += ", of one host"
    return f"{ACROSS}, {words}"


def list_machine_notes(sides: Sequence[Row], names: Sequence[str]) -> list[str]:
    """Return what a reader must know of the machines of a pair: that they differ, and what the interval rests on."""
    notes = []
    if _describe_machines(sides).startswith(ACROSS):
        machines = (join_some(side["machines"].split("; "), MAX_NAMED) for side in sides)
        named = "; ".join(f"{name} on {own}" for name, own in zip(names, machines, strict=True))
        notes.append(f"{ACROSS}: {named}")
        found = {words for side in sides for words in (side["machine_deviations"] or "").split("; ") if words}
        if found:
            notes.append(f"by their calibration, against others of the type: {', '.join(sorted(found))}")
    if max(side["num_machines"] for side in sides) > 1:
        how = "the mean of each" if _differ(sides, "machines") else "its ratio on each"
        notes.append(f"the machine is a random effect: the interval is from {how}")
    return notes


def count_machines(count: int, noun: str) -> str:
    """Return `one card`, `3 cards`."""
    return f"one {noun}" if count == 1 else f"{count} {noun}s"


def _name_unit(side: Row, *, is_of_devices: bool) -> str:
    """Return what is counted as a machine of a side: a card, the host of a CPU cell, or a host with several cards."""
    if side["device"] == "gpu" and side["num_gpus"] == 1:
        return "card"
    return "host" if is_of_devices else "machine"


def _differ(sides: Sequence[Row], name: str) -> bool:
    one, other = (side[name] for side in sides)
    return bool(one != other)
