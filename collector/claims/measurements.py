"""Select from the summary of runs what bears on the study's claims, and put it into words."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from bench.schema import Phase
from collector.claims.study import StatedDevice, Study
from collector.comparisons import DEVICES, FRAMEWORKS, MODES, PRECISIONS, Comparison, compare_cells
from collector.labels import FRAMEWORK_NAMES, label_hardware, label_shared, label_workloads
from collector.results.cells import select_alone
from collector.results.frames import Row, list_rows
from collector.results.intervals import read_estimate
from collector.units import MILLISECOND, PERCENT, RATIO, format_interval, format_number, format_significant

MAX_LINES = 12
Side = Literal["subject", "reference"]

KEY = ("run_id", "cell_id", "environment_id")
"""The columns that tell the rows of a summary apart."""
RowKey = tuple[str, str, str]
"""Their values."""


PHASES = Comparison(name="phases", field="phase", pairs=(("train", "infer"),), measure="time ratio")
# What TensorFlow's modes cost beside each other: with fusion, without it, and with batch norms as one operation.
FUSION = Comparison(
    name="fusion",
    field="mode",
    pairs=(("graph", "unfused"), ("fused-norm", "graph"), ("compiled", "graph")),
    measure="time ratio",
)
TABLES = {FUSION.name: MODES.name}
"""By the name of a comparison that only the claims make, the one whose table has its pairs."""
# Models of claims that are not the study's.
OTHER_MODELS = ("text-classifier", "matmul")


@dataclass(frozen=True, kw_only=True)
class Measurements:
    """The pairs of cells that the claims are compared with, and the rows that they are made of.

    All on one GPU at most, without other tenants, and at fp32 but for `precisions`. Of the study's models: `speedups`,
    GPU over CPU; `phases`, training over inference; `latencies` and `fusion`, TensorFlow over PyTorch and modes of
    TensorFlow, made of the rows `inference`, on a GPU at the stated input sizes on synthetic data. Of OTHER_MODELS:
    `others`, GPU over CPU, made of `other_rows`. Of any model: `precisions`, TF32 over FP32.
    """

    summary: pd.DataFrame
    inference: pd.DataFrame
    speedups: pd.DataFrame
    latencies: pd.DataFrame
    fusion: pd.DataFrame
    phases: pd.DataFrame
    other_rows: pd.DataFrame
    others: pd.DataFrame
    precisions: pd.DataFrame

    @property
    def is_there(self) -> bool:
        """Whether anything was measured that bears on a claim about devices or frameworks."""
        pairs = (self.speedups, self.latencies, self.fusion, self.others)
        return any(frame["ratio"].notna().any() for frame in pairs)


def gather_measurements(
    summary: pd.DataFrame, study: Study, *, include_invalid: bool = False, num_tested: Mapping[str, int] | None = None
) -> Measurements:
    """Return what the rows of `summarize_collections` say about the study's models and those of the other claims.

    `num_tested`: how many ratios the table of each comparison tests in a report: the words have its intervals.
    """

    def compare(rows: pd.DataFrame, comparison: Comparison) -> pd.DataFrame:
        pairs = compare_cells(rows, comparison, include_invalid=include_invalid)
        number = (num_tested or {}).get(TABLES.get(comparison.name, comparison.name), 1)
        return pairs.assign(num_together=pairs["p_value"].notna().map({True: number, False: 1}).astype("int64"))

    single = select_alone(summary[summary["num_gpus"] == 1])
    fp32 = single[single["precision"] == "fp32"]
    rows, others = fp32[fp32["model"].isin(study.workloads)], fp32[fp32["model"].isin(OTHER_MODELS)]
    infer = rows[(rows["phase"] == "infer") & (rows["device"] == "gpu") & find_stated_sizes(rows, study)]
    latencies, precisions = compare(infer, FRAMEWORKS), compare(single[single["device"] == "gpu"], PRECISIONS)
    return Measurements(
        summary=rows,
        inference=infer,
        speedups=compare(rows, DEVICES),
        latencies=latencies[latencies["framework_subject"] == "tensorflow"],
        fusion=compare(infer[infer["framework"] == "tensorflow"], FUSION),
        phases=compare(rows, PHASES),
        other_rows=others,
        others=compare(others, DEVICES),
        precisions=precisions[precisions["precision_subject"] == "tf32"],
    )


def select_speedups(measurements: Measurements, study: Study, model: str, phase: Phase) -> pd.DataFrame:
    """Return the pairs of a model and phase, the study's own configuration first, then PyTorch eager at its work.

    Columns are added: `is_stated_work` (batch, input size, synthetic data), `is_stated_mode` (TensorFlow's graph mode),
    `is_other_mode` (PyTorch eager), `is_stated_hardware`, `is_nearest` (a ratio at the stated work in either mode).
    """
    pairs = measurements.speedups
    pairs = pairs[(pairs["model"] == model) & (pairs["phase"] == phase)]
    batch_size, framework, mode = study.workloads[model].batch_size, pairs["framework"], pairs["mode"]
    flags = {
        "is_stated_work": (pairs["batch_size"] == batch_size) & find_stated_sizes(pairs, study),
        "is_stated_mode": (framework == "tensorflow") & (mode == "graph"),
        "is_other_mode": (framework == "pytorch") & (mode == "eager"),
        "is_stated_hardware": _find_named(pairs["gpu_name_subject"], study.gpu)
        & find_stated_cpu(pairs, study, "reference"),
    }
    order = ["is_stated_work", "is_stated_mode", "is_other_mode"]
    is_mode = flags["is_stated_mode"] | flags["is_other_mode"]
    flags["is_nearest"] = flags["is_stated_work"] & is_mode & pairs["ratio"].notna()
    return pairs.assign(**flags).sort_values(order, ascending=False, kind="stable")


def describe_nearest(pairs: pd.DataFrame) -> list[str]:
    """Return per pair of devices what `select_speedups` found at the study's work in its two frameworks' modes."""
    found: dict[str, list[str]] = {}
    for pair in list_rows(pairs[pairs["is_nearest"]]):
        name = f"{FRAMEWORK_NAMES[pair['framework']]} {pair['mode']} at {pair['input_size']} px"
        found.setdefault(_describe_devices(pair), []).append(f"{name} {_describe_ratio(pair)} as fast")
    return [f"on {devices}: {', '.join(texts)}" for devices, texts in found.items()]


def describe_speedups(measurements: Measurements, pairs: pd.DataFrame) -> tuple[str, ...]:
    """Return lines, at most MAX_LINES, on pairs: what was measured, on what, and how far apart the peaks are there."""
    columns = (*KEY, "peak_flops_per_second", "peak_source")
    peaks = _index_rows(pd.concat([rows[[*columns]] for rows in (measurements.summary, measurements.other_rows)]))
    return _describe_first(
        pairs,
        label_shared(pairs),
        lambda workload, pair: (
            f"{workload}, {_describe_devices(pair)}: {_describe_ratio(pair)} as fast{_compare_peaks(pair, peaks)}"
        ),
    )


def describe_pairs(pairs: pd.DataFrame, relation: Literal["as long as", "as fast as"]) -> tuple[str, ...]:
    """Return lines, at most MAX_LINES, on pairs of cells on one GPU.

    `relation`: what a ratio of 2 says of the subject.
    """
    verb = "takes" if relation == "as long as" else "is"
    return _describe_first(
        pairs,
        label_shared(pairs),
        lambda workload, pair: (
            f"{workload}, {pair['gpu_name_subject']}: {pair['subject']} {verb} {_describe_ratio(pair)} {relation} "
            f"{pair['reference']}"
        ),
    )


def describe_phases(pairs: pd.DataFrame) -> tuple[str, ...]:
    """Return lines, at most MAX_LINES, on pairs of training and inference on one device."""
    return _describe_first(
        pairs,
        label_shared(pairs.assign(phase="train over infer")),
        lambda workload, pair: (
            f"{workload}, {label_hardware(pair['cpu_model_subject'], pair['num_threads_subject'])}: "
            f"{_describe_ratio(pair)} as long"
        ),
    )


def describe_times(rows: pd.DataFrame) -> tuple[str, ...]:
    """Return lines, at most MAX_LINES, on rows of a summary: how long a step took."""
    measured = rows[rows["center_step_seconds"].notna() & (rows["num_sound"] > 0)]
    return _describe_first(
        measured,
        label_workloads(measured),
        lambda workload, row: (
            f"{workload}, {FRAMEWORK_NAMES[row['framework']]} {row['mode']}, "
            f"{row['gpu_name'] if row['device'] == 'gpu' else row['cpu_model']}: "
            f"{format_number(row['center_step_seconds'], MILLISECOND)} ms a step"
        ),
    )


def describe_energies(measurements: Measurements, pairs: pd.DataFrame) -> tuple[str, ...]:
    """Return lines, at most MAX_LINES, on pairs of CPU and GPU whose energy was read and was not zero on the GPU."""
    sides = {"subject": "gpu_energy_per_sample_joules", "reference": "cpu_energy_per_sample_joules"}
    energies = measurements.summary[[*KEY, *sides.values()]]
    for side, name in sides.items():
        own = energies[[*KEY, name]].rename(columns={key: f"{key}_{side}" for key in KEY})
        pairs = pairs.merge(own, how="left", on=[f"{key}_{side}" for key in KEY], sort=False)
    gpu, cpu = (pairs[name] for name in sides.values())
    read = pairs.assign(label=label_shared(pairs))[cpu.notna() & (gpu > 0)]
    return _describe_first(read, read["label"], _describe_energy)


def describe_shares(measurements: Measurements) -> list[str]:
    """Return per model, phase and device the largest share of the fp32 peak that was reached."""
    rows = measurements.summary[measurements.summary["share_of_peak"].notna() & (measurements.summary["num_sound"] > 0)]
    best = rows.loc[rows.groupby(["model", "phase", "device"], sort=False)["share_of_peak"].idxmax()]
    return [
        f"{workload}, {FRAMEWORK_NAMES[row['framework']]} {row['mode']}: at best "
        f"{format_number(row['share_of_peak'], PERCENT)} % of the peak of "
        f"{row['gpu_name'] if row['device'] == 'gpu' else row['cpu_model']}"
        for workload, row in zip(label_workloads(best), list_rows(best), strict=True)
    ]


def shorten(lines: Sequence[str]) -> tuple[str, ...]:
    """Return at most MAX_LINES lines, the last of which says how many more there are."""
    if len(lines) <= MAX_LINES:
        return tuple(lines)
    return (*lines[: MAX_LINES - 1], _count_others(len(lines) - MAX_LINES + 1))


def _describe_first(rows: pd.DataFrame, labels: Iterable[str], describe: Callable[[str, Row], str]) -> tuple[str, ...]:
    """Return a line for each row by its label, as `shorten` does: of many rows, only those shown are put into words."""
    num_shown = len(rows) if len(rows) <= MAX_LINES else MAX_LINES - 1
    lines = tuple(map(describe, labels, list_rows(rows.head(num_shown))))
    return lines if num_shown == len(rows) else (*lines, _count_others(len(rows) - num_shown))


def _count_others(number: int) -> str:
    return f"and {number} more, see the comparisons of the runs' reports"


def find_stated_batches(rows: pd.DataFrame, study: Study) -> "pd.Series[bool]":
    """Return which rows of the study's models are at the stated batch size."""
    stated = rows["model"].map({model: workload.batch_size for model, workload in study.workloads.items()})
    return (rows["batch_size"] == stated).astype(bool)


def find_stated_sizes(rows: pd.DataFrame, study: Study) -> "pd.Series[bool]":
    """Return which rows are of an input size that a cell of the study's work is read at, on synthetic data."""
    stated = {
        (model, reading.input_size)
        for model, workload in study.workloads.items()
        for reading in workload.readings
        if reading.is_cell
    }
    sizes = zip(rows["model"], rows["input_size"], strict=True)
    return pd.Series([size in stated for size in sizes], index=rows.index, dtype=bool) & rows["data_dir"].isna()


def find_stated_cpu(pairs: pd.DataFrame, study: Study, side: Side) -> "pd.Series[bool]":
    """Return for which pairs that side ran on the study's kind of CPU with as many threads."""
    has_threads = (pairs[f"num_threads_{side}"] == study.cpu.num_threads).fillna(False).astype(bool)
    return _find_named(pairs[f"cpu_model_{side}"], study.cpu) & has_threads


def _find_named(names: "pd.Series[str]", device: StatedDevice) -> "pd.Series[bool]":
    return names.map(lambda name: pd.notna(name) and device.is_named(name)).astype(bool)


def _describe_devices(pair: Row) -> str:
    cpu = label_hardware(pair["cpu_model_reference"], pair["num_threads_reference"])
    return f"{pair['gpu_name_subject']} over {cpu}"


def _describe_ratio(pair: Row) -> str:
    ends = read_estimate(pair, center="ratio").find_joint_interval(pair["num_together"])
    interval = "no interval, one repeat" if ends is None else f"95 % interval {format_interval(*ends, RATIO)}"
    return f"{format_significant(pair['ratio'])} times ({interval})"


def _describe_energy(workload: str, pair: Row) -> str:
    gpu, cpu = pair["gpu_energy_per_sample_joules"], pair["cpu_energy_per_sample_joules"]
    return (
        f"{workload}, {_describe_devices(pair)}: {format_significant(cpu)} J a sample by the CPU's whole sockets, "
        f"{format_significant(gpu)} J by the GPU, a ratio of {format_significant(cpu / gpu)}; the GPU is "
        f"{_describe_ratio(pair)} as fast"
    )


def _compare_peaks(pair: Row, rows: Mapping[RowKey, Row]) -> str:
    gpu, cpu = (rows[_key(pair, side)] for side in ("subject", "reference"))
    factor = gpu["peak_flops_per_second"] / cpu["peak_flops_per_second"]
    if pd.isna(factor):
        return ""
    # A data sheet's peak over a measured one is no ratio of one quantity: the reader is told which is which.
    sources = f"the GPU's by {gpu['peak_source']}, the CPU's {cpu['peak_source']}"
    return f"; the peaks are {format_significant(factor)} times apart ({sources})"


def _index_rows(summary: pd.DataFrame) -> Mapping[RowKey, Row]:
    return {(row["run_id"], row["cell_id"], row["environment_id"]): row for row in list_rows(summary)}


def _key(pair: Row, side: str) -> RowKey:
    return pair[f"run_id_{side}"], pair[f"cell_id_{side}"], pair[f"environment_id_{side}"]
