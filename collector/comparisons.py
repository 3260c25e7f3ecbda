"""Compare cells in pairs that differ in one thing: framework, device, mode, precision, number of GPUs.

A pair is matched on every field of the cell but the one compared, those that the comparison leaves free, and the
protocol (how long was measured). A difference is stated only where the interval of the ratio, which holds together with
those of all pairs of the comparison, excludes 1; a pair that cannot be compared says why.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from bench import registry
from collector.labels import DEVICE_NAMES, FRAMEWORK_NAMES, count_gpus
from collector.machines import SIDES, describe_scope, estimate_pair, is_confounded, list_machine_notes
from collector.ratio_words import UNDECIDED, judge_rows
from collector.results.frames import CELL_COLUMNS, PROTOCOL_FIELDS, Columns, Row, list_rows, make_frame
from collector.results.hosts import drop_build
from collector.statistics import invert_estimate, scale_estimate

FP32, WITHOUT_TF32 = "fp32", "without TF32"
"""The precision that others are compared with: true float32, as `bench.schema.Cell.precision` says."""
DERIVED_COLUMNS: Columns = {"batch_per_gpu": "int64"}
SIDE_COLUMNS: Columns = {
    "run_id": "str",
    "cell_id": "str",
    "environment_id": "str",
    "framework_version": "str",
    "cpu_model": "str",
    "num_threads": "Int64",
    "gpu_name": "str",
    "cuda_graph": "boolean",
    "num_sound": "int64",
    "num_counted": "int64",
    "num_machines": "int64",
    "machines": "str",
    "instance_types": "str",
    "center_step_seconds": "float64",
}
READ_COLUMNS = (
    *("hardware_id", "num_planned", "num_ok", "note", "hostnames"),
    *("log_standard_error", "degrees_of_freedom", "machine_step_seconds", "machine_deviations"),
)
"""What is read of both sides beside SIDE_COLUMNS: a run of 20,000 cells has columns enough to fill the memory."""
MAX_GPUS = 64
DECISIONS = ("slower", "faster", UNDECIDED, "not compared", "left out", "machines differ", "one repeat", "not tested")
"""What is decided of a pair: whether the subject takes more or less time, or why that is not judged."""


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
    """Further fields that may differ."""
    derived: tuple[str, ...] = ()
    """Columns of DERIVED_COLUMNS that must be equal."""
    same_hardware: bool = True
    same_version: bool = True
    """Whether the framework's version must be equal; `+cpu` and the like, which name its build, may differ."""

    @property
    def match(self) -> list[str]:
        """The columns that are equal on both sides."""
        fields = [name for name in CELL_COLUMNS if name not in (self.field, *self.free, *PROTOCOL_FIELDS)]
        return [*fields, *self.derived]

    @property
    def needed(self) -> list[str]:
        """The columns of a summary that `compare_cells` reads, each once."""
        return list(dict.fromkeys([*self.match, self.field, *self.free, *SIDE_COLUMNS, *READ_COLUMNS]))

    @property
    def columns(self) -> Columns:
        """The columns of `compare_cells`, name to dtype."""
        dtypes = dict(CELL_COLUMNS) | dict(DERIVED_COLUMNS)
        sided = {name: dtypes[name] for name in (self.field, *self.free)} | dict(SIDE_COLUMNS)
        return (
            {name: dtypes[name] for name in self.match}
            | {"subject": "str", "reference": "str"}
            | {f"{name}_{side}": dtype for name, dtype in sided.items() for side in SIDES}
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
    pairs=(("tf32", FP32), ("fp16", FP32), ("bf16", FP32)),
    measure="speedup",
)
WEAK_SCALING = Comparison(
    name="weak-scaling",
    field="num_gpus",
    pairs=tuple((number, 1) for number in range(2, MAX_GPUS + 1)),
    measure="efficiency",
    free=("batch_size",),
    derived=("batch_per_gpu",),
)
STRONG_SCALING = Comparison(name="strong-scaling", field="num_gpus", pairs=WEAK_SCALING.pairs, measure="efficiency")
COMPARISONS = (FRAMEWORKS, DEVICES, MODES, PRECISIONS, WEAK_SCALING, STRONG_SCALING)


def compare_all(summary: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the pairs of each of COMPARISONS by its name."""
    return {one.name: compare_cells(summary, one) for one in COMPARISONS}


def compare_cells(summary: pd.DataFrame, comparison: Comparison) -> pd.DataFrame:
    """Return one row per matched pair of rows of `summary`, with the columns `comparison.columns`.

    `summary`: of one run or of several. A pair that ran on the same hardware, or in the same run, is preferred to the
    same pair of cells across them. `decision` is one of DECISIONS; a pair that is not compared, or left out as a side
    has no valid repeat, has no ratio, and `reason` says why. `p_value` is that of a true ratio of 1, the columns of
    `judge_rows` allow for the number of pairs that have one; efficiencies, which nobody expects to be 1, have none.
    `scope`: on how many machines the ratio rests. `log_standard_error` and `degrees_of_freedom` are those of the
    ratio's log, for intervals of another confidence.
    """
    rows = summary.assign(batch_per_gpu=summary["batch_size"] // summary["num_gpus"])[comparison.needed]
    subjects, references = (rows[rows[comparison.field].isin(values)] for values in zip(*comparison.pairs, strict=True))
    if subjects.empty or references.empty:
        return make_frame([], comparison.columns)
    pairs = subjects.merge(references, on=comparison.match, suffixes=("_subject", "_reference"))
    sides = pd.MultiIndex.from_frame(pairs[[f"{comparison.field}_{side}" for side in SIDES]])
    pairs = pairs[sides.isin(comparison.pairs)]
    if comparison.same_hardware:
        pairs = _prefer(pairs, pairs["hardware_id_subject"] == pairs["hardware_id_reference"])
    pairs = _prefer(pairs, pairs["run_id_subject"] == pairs["run_id_reference"])
    own = {name: dtype for name, dtype in comparison.columns.items() if name not in pairs}
    compared = [
        {name: value for name, value in _compare(pair, comparison).items() if name not in pair}
        for pair in list_rows(pairs)
    ]
    carried = {name: pairs[name].array for name in comparison.columns if name not in own}
    return make_frame(judge_rows(compared), own).assign(**carried)[list(comparison.columns)]


def _prefer(pairs: pd.DataFrame, wanted: "pd.Series[bool]") -> pd.DataFrame:
    """Return the pairs without those for which the same two cells have a better one.

    `wanted`: which pairs are the better ones. Two cells with none of them keep all their pairs.
    """
    cells = pd.MultiIndex.from_frame(pairs[["cell_id_subject", "cell_id_reference"]])
    return pairs[wanted | ~cells.isin(cells[wanted])]


def _compare(pair: Row, comparison: Comparison) -> Row:
    names = {side: _name_side(pair, comparison, side) for side in SIDES}
    row = pair | {side: _describe_side(pair, comparison, side) for side in SIDES}
    row["note"] = "; ".join([*_list_notes(pair, names), *_list_other_programs(pair, comparison, names)])
    reason = _explain_not_comparable(pair, comparison, names)
    if reason is not None:
        return row | {"decision": "not compared", "reason": reason}
    unsound = [side for side in SIDES if not pair[f"num_sound_{side}"]]
    if unsound:
        whose = " and of ".join(names[side] for side in unsound)
        return row | {"decision": "left out", "reason": f"no repeat of {whose} was measured under sound conditions"}
    measured = _measure(row, comparison)
    if is_confounded(pair, comparison.field) and measured.get("p_value") is not None:
        measured |= {"p_value": None, "decision": "machines differ"}
    notes = [*filter(None, [row["note"]]), *list_machine_notes(pair, names, comparison.field)]
    return row | measured | {"scope": describe_scope(pair, comparison.field), "note": "; ".join(notes)}


def _measure(pair: Row, comparison: Comparison) -> Row:
    time_ratio = estimate_pair(pair)
    ratio = time_ratio if comparison.measure == "time ratio" else invert_estimate(time_ratio)
    if comparison.measure == "efficiency":
        batches = [pair.get(f"batch_size_{side}", pair.get("batch_size")) for side in SIDES]
        ratio = scale_estimate(ratio, batches[0] / (batches[1] * pair["num_gpus_subject"]))
    low, high = ratio.interval or (None, None)
    figures: Row = {"ratio": ratio.center, "ratio_low": low, "ratio_high": high}
    figures |= {name: getattr(ratio, name) for name in ("log_standard_error", "degrees_of_freedom")}
    if ratio.interval is None or comparison.measure == "efficiency":
        return figures | {"decision": "one repeat" if ratio.interval is None else "not tested"}
    direction = "slower" if time_ratio.center > 1 else "faster"
    return figures | {"p_value": ratio.p_value, "estimate": ratio, "direction": direction}


def _name_side(pair: Row, comparison: Comparison, side: str) -> str:
    value = pair[f"{comparison.field}_{side}"]
    if comparison.field == "device":
        return str(pair["gpu_name_subject"]) if value == "gpu" and pair["num_ok_subject"] else DEVICE_NAMES[value]
    return count_gpus(value) if comparison.field == "num_gpus" else FRAMEWORK_NAMES.get(value, str(value))


def _describe_side(pair: Row, comparison: Comparison, side: str) -> str:
    """Return the value compared, with those of the free fields."""
    value = pair[f"{comparison.field}_{side}"]
    name = DEVICE_NAMES[value] if comparison.field == "device" else _name_side(pair, comparison, side)
    free = {name: pair[f"{name}_{side}"] for name in comparison.free}
    mode = f" {free['mode']}" if "mode" in free else ""
    batch = f", batch {free['batch_size']}" if "batch_size" in free else ""
    return f"{name}{mode}{batch}"


def _explain_not_comparable(pair: Row, comparison: Comparison, names: Mapping[str, str]) -> str | None:
    """Return why no ratio can be computed of a pair; None where one can."""
    empty = [names[side] for side in SIDES if not pair[f"num_ok_{side}"]]
    if empty:
        return f"no ok repeat of {' and '.join(empty)}"
    if comparison.same_hardware and pair["hardware_id_subject"] != pair["hardware_id_reference"]:
        return "the hardware differs"
    versions = [drop_build(pair[f"framework_version_{side}"]) for side in SIDES]
    if comparison.same_version and versions[0] != versions[1]:
        return f"the framework's versions differ, {versions[0]} and {versions[1]}"
    return None


def _list_notes(pair: Row, names: Mapping[str, str]) -> list[str]:
    notes = []
    for side in SIDES:
        ok, planned, note = (pair[f"{name}_{side}"] for name in ("num_ok", "num_planned", "note"))
        notes += [f"{names[side]}: {ok} ok of {planned} planned"] if ok < planned else []
        notes += [f"{names[side]}: {note}"] if note else []
    if pair["run_id_subject"] != pair["run_id_reference"]:
        notes.append(f"of two runs, {pair['run_id_subject']} and {pair['run_id_reference']}")
    if pair["cpu_model_subject"] != pair["cpu_model_reference"] and pair["num_ok_subject"] and pair["num_ok_reference"]:
        notes.append(f"the host of {names['subject']} has another CPU, {pair['cpu_model_subject']}")
    return notes


def _list_other_programs(pair: Row, comparison: Comparison, names: Mapping[str, str]) -> list[str]:
    """Return in what way one GPU and several run different programs: their efficiency is not that of scaling alone."""
    if comparison.measure != "efficiency":
        return []
    graphs = {side: pair[f"cuda_graph_{side}"] for side in SIDES}
    if not any(pd.isna(graph) for graph in graphs.values()) and graphs["subject"] != graphs["reference"]:
        with_graph, without = sorted(SIDES, key=lambda side: not graphs[side])
        return [f"other programs: one CUDA graph on {names[with_graph]}, none on {names[without]}"]
    if pair["framework"] == "tensorflow" and pair["mode"] == "compiled":
        compiled = "only losses and gradients" if pair["phase"] == "train" else "each GPU's part"
        return [
            f"other programs: XLA compiles the whole step on {names['reference']}, {compiled} on {names['subject']}"
        ]
    return []
