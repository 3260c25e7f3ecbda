"""Select from the summary of runs what bears on the study's claims, judge it by intervals and bands, and list it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from bench.schema import Phase
from collector.audit.rates import Algorithm
from collector.audit.study import Claim, Counted, Study, StudyDevice
from collector.comparisons import DEVICES, FRAMEWORKS, PRECISIONS, Comparison, compare_cells
from collector.facts import count_left_out
from collector.labels import FRAMEWORK_NAMES, label_hardware, label_shared, label_workloads
from collector.results.cell_repeats import read_estimate
from collector.results.frames import Row, list_rows, select_alone
from collector.units import MILLISECOND, PERCENT, RATIO, format_interval, format_number, format_significant

MAX_LINES = 12
KEY = ("run_id", "cell_id", "environment_id")
"""The columns that tell the rows of a summary apart."""
PHASES = Comparison(name="phases", field="phase", pairs=(("train", "infer"),), measure="time ratio")
# What TensorFlow's modes cost beside each other: with fusion, without it, and with batch norms as one operation.
FUSION = Comparison(
    name="fusion",
    field="mode",
    pairs=(("graph", "unfused"), ("fused-norm", "graph"), ("compiled", "graph")),
    measure="time ratio",
)
# Models of claims that are not the study's.
OTHER_MODELS = ("text-classifier", "matmul")


@dataclass(frozen=True, kw_only=True)
class Measurements:
    """The pairs of cells that the claims are compared with, and the rows that they are made of.

    All on one GPU at most, without other tenants, and at fp32 but for `precisions`. Of the study's models: `speedups`,
    GPU over CPU; `phases`, training over inference; `latencies` and `fusion`, TensorFlow over PyTorch and modes of
    TensorFlow, of inference on a GPU at the stated input sizes on synthetic data. Of OTHER_MODELS: `others`, GPU over
    CPU, made of `other_rows`. Of any model: `precisions`, TF32 over FP32.
    """

    summary: pd.DataFrame
    speedups: pd.DataFrame
    latencies: pd.DataFrame
    fusion: pd.DataFrame
    phases: pd.DataFrame
    other_rows: pd.DataFrame
    others: pd.DataFrame
    precisions: pd.DataFrame


def gather_measurements(summary: pd.DataFrame, study: Study) -> Measurements:
    """Return what the rows of `summarize_collections` say about the study's models and those of the other claims."""
    single = select_alone(summary[summary["num_gpus"] == 1])
    fp32 = single[single["precision"] == "fp32"]
    rows, others = fp32[fp32["model"].isin(study.workloads)], fp32[fp32["model"].isin(OTHER_MODELS)]
    infer = rows[(rows["phase"] == "infer") & (rows["device"] == "gpu") & find_stated_sizes(rows, study)]
    latencies = compare_cells(infer, FRAMEWORKS)
    precisions = compare_cells(single[single["device"] == "gpu"], PRECISIONS)
    return Measurements(
        summary=rows,
        speedups=compare_cells(rows, DEVICES),
        latencies=latencies[latencies["framework_subject"] == "tensorflow"],
        fusion=compare_cells(infer[infer["framework"] == "tensorflow"], FUSION),
        phases=compare_cells(rows, PHASES),
        other_rows=others,
        others=compare_cells(others, DEVICES),
        precisions=precisions[precisions["precision_subject"] == "tf32"],
    )


def select_speedups(measurements: Measurements, study: Study, model: str, phase: Phase) -> pd.DataFrame:
    """Return the pairs of a model and phase, the study's own configuration first, then PyTorch eager at its work.

    Columns are added: `is_own` (at the stated work in TensorFlow's graph mode), `is_stated_hardware`, `is_nearest` (a
    ratio at the stated work in that mode or in PyTorch eager).
    """
    pairs = measurements.speedups
    pairs = pairs[(pairs["model"] == model) & (pairs["phase"] == phase)]
    is_work = find_stated_batches(pairs, study) & find_stated_sizes(pairs, study)
    is_mode = (pairs["framework"] == "tensorflow") & (pairs["mode"] == "graph")
    is_other = (pairs["framework"] == "pytorch") & (pairs["mode"] == "eager")
    is_hardware = _find_named(pairs["gpu_name_subject"], study.gpu) & find_stated_cpu(pairs, study, "reference")
    flags = {
        "is_own": is_work & is_mode,
        "is_stated_hardware": is_hardware,
        "is_nearest": is_work & (is_mode | is_other) & pairs["ratio"].notna(),
    }
    order = pd.DataFrame({"work": is_work, "mode": is_mode, "other": is_other})
    places = order.sort_values([*order], ascending=False, kind="stable").index
    return pairs.assign(**flags).loc[places]


def find_stated_batches(rows: pd.DataFrame, study: Study) -> "pd.Series[bool]":
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


def find_stated_cpu(pairs: pd.DataFrame, study: Study, side: Literal["subject", "reference"]) -> "pd.Series[bool]":
    """Return for which pairs that side ran on the study's kind of CPU with as many threads."""
    has_threads = (pairs[f"num_threads_{side}"] == study.cpu.num_threads).fillna(False).astype(bool)
    return _find_named(pairs[f"cpu_model_{side}"], study.cpu) & has_threads


def _find_named(names: "pd.Series[str]", device: StudyDevice) -> "pd.Series[bool]":
    return names.map(lambda name: pd.notna(name) and device.is_named(name)).astype(bool)


Interval = tuple[float, float]
Place = Literal["inside", "outside", "across"]
Decided = Literal["reproduced", "not reproduced", "not decided"]
ClaimVerdict = Literal[
    "reproduced",
    "not reproduced",
    "not decided",
    "implausible without Winograd",
    "implausible on the stated hardware",
    "impossible on the stated hardware",
    "peak rates only",
    "not tested here",
]
FindingName = Literal[
    "too slow to be a baseline", "its own table disagrees", "no kernel time", "misses if fitted up to 2022"
]
ReasonedVerdict = tuple[ClaimVerdict, str]
VERDICTS: Mapping[Algorithm | None, ClaimVerdict] = {
    "direct convolutions": "not tested here",
    "F(2x2, 3x3)": "implausible without Winograd",
    "F(4x4, 3x3)": "implausible on the stated hardware",
    None: "impossible on the stated hardware",
}
"""The verdict on a claim that rests on a time, by the plainest algorithm that reaches it."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What arithmetic shows about a claim and no verdict says; it decides nothing."""

    name: FindingName
    reason: str
    scope: str = ""
    """The reading that it holds under, as in `at 32 px`; empty where it holds under every one."""

    @property
    def title(self) -> str:
        """The name with its scope."""
        return f"{self.name} {self.scope}".strip()


@dataclass(frozen=True, kw_only=True)
class ClaimResult:
    """A claim with what arithmetic and runs say about it."""

    claim: Claim
    verdict: ClaimVerdict
    reason: str
    """What the verdict rests on, without a full stop."""
    findings: tuple[Finding, ...] = ()
    arithmetic: tuple[str, ...] = ()
    measured: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ClaimContext:
    """What claims are evaluated from."""

    study: Study
    counted: Counted
    measurements: Measurements


def list_intervals(pairs: pd.DataFrame) -> list[Interval]:
    """Return the interval of each pair's ratio; every pair must have one."""
    return [(row["ratio_low"], row["ratio_high"]) for row in list_rows(pairs)]


def place_interval(interval: Interval, band: Interval) -> Place:
    """Return where an interval lies: inside the band, outside without touching it, or across one of its edges."""
    low, high = interval
    if band[0] <= low and high <= band[1]:
        return "inside"
    return "outside" if high < band[0] or low > band[1] else "across"


def decide(places: Iterable[Place]) -> Decided:
    """Return the verdict on a claim that must hold in every one of `places`, of which there is one at least."""
    found = set(places)
    return "not reproduced" if "outside" in found else "not decided" if "across" in found else "reproduced"


def explain_missing_intervals(pairs: pd.DataFrame) -> str:
    """Return why pairs have no interval: left out, of a single repeat, not comparable; empty where all have one."""
    single = int((pairs["ratio"].notna() & pairs["ratio_low"].isna()).sum())
    not_compared = pairs.loc[pairs["ratio"].isna() & pairs["left_out"].isna(), "verdict"].value_counts()
    reasons = [count_left_out([pairs]).removesuffix(".")]
    reasons += [f"no interval for {single} of {len(pairs)} pairs, as a side has one repeat" if single else ""]
    reasons += [f"{verdict} ({count} of {len(pairs)} pairs)" for verdict, count in not_compared.items()]
    return "; ".join(reason for reason in reasons if reason)


def list_missing_intervals(pairs: pd.DataFrame) -> tuple[str, ...]:
    """Return the text of `explain_missing_intervals` as the only line, or no line if it is empty."""
    reasons = explain_missing_intervals(pairs)
    return (reasons,) if reasons else ()


def describe_nearest(pairs: pd.DataFrame) -> list[str]:
    """Return per pair of devices what `select_speedups` found at the study's work in its two frameworks' modes."""
    found: dict[str, list[str]] = {}
    for pair in list_rows(pairs[pairs["is_nearest"]]):
        name = f"{FRAMEWORK_NAMES[pair['framework']]} {pair['mode']} at {pair['input_size']} px"
        found.setdefault(_describe_devices(pair), []).append(f"{name} {_describe_ratio(pair)} as fast")
    return [f"on {devices}: {', '.join(texts)}" for devices, texts in found.items()]


def describe_speedups(measurements: Measurements, pairs: pd.DataFrame) -> tuple[str, ...]:
    """Return lines on pairs that have a ratio: what was measured, on what, and how far apart the peaks are there."""
    rows = [row for own in (measurements.summary, measurements.other_rows) for row in list_rows(own)]
    by_key = {tuple(row[name] for name in KEY): row for row in rows}

    def describe(workload: str, pair: Row) -> str:
        gpu, cpu = (by_key[tuple(pair[f"{name}_{side}"] for name in KEY)] for side in ("subject", "reference"))
        factor, peaks = gpu["peak_flops_per_second"] / cpu["peak_flops_per_second"], ""
        if not pd.isna(factor):
            # A data sheet's peak over a measured one is no ratio of one quantity: the reader is told which is which.
            sources = f"the GPU's by {gpu['peak_source']}, the CPU's {cpu['peak_source']}"
            peaks = f"; the peaks are {format_significant(factor)} times apart ({sources})"
        return f"{workload}, {_describe_devices(pair)}: {_describe_ratio(pair)} as fast{peaks}"

    pairs = pairs[pairs["ratio"].notna()]
    return _list_lines(pairs, label_shared(pairs), describe)


def describe_pairs(pairs: pd.DataFrame, relation: Literal["as long as", "as fast as"]) -> tuple[str, ...]:
    """Return lines on pairs of cells on one GPU that have a ratio; `relation`: what 2 says of the subject."""
    verb = "takes" if relation == "as long as" else "is"
    pairs = pairs[pairs["ratio"].notna()]
    return _list_lines(
        pairs,
        label_shared(pairs),
        lambda workload, pair: (
            f"{workload}, {pair['gpu_name_subject']}: {pair['subject']} {verb} {_describe_ratio(pair)} {relation} "
            f"{pair['reference']}"
        ),
    )


def describe_phases(pairs: pd.DataFrame) -> tuple[str, ...]:
    """Return lines on pairs of training and inference on one device that have a ratio."""
    pairs = pairs[pairs["ratio"].notna()]
    return _list_lines(
        pairs,
        label_shared(pairs.assign(phase="train over infer")),
        lambda workload, pair: (
            f"{workload}, {label_hardware(pair['cpu_model_subject'], pair['num_threads_subject'])}: "
            f"{_describe_ratio(pair)} as long"
        ),
    )


def describe_times(rows: pd.DataFrame) -> tuple[str, ...]:
    """Return lines on rows of a summary: how long a step took."""
    measured = rows[rows["center_step_seconds"].notna() & (rows["num_sound"] > 0)]
    return _list_lines(
        measured,
        label_workloads(measured),
        lambda workload, row: (
            f"{workload}, {FRAMEWORK_NAMES[row['framework']]} {row['mode']}, {_name_device(row)}: "
            f"{format_number(row['center_step_seconds'], MILLISECOND)} ms a step"
        ),
    )


def describe_energies(measurements: Measurements, pairs: pd.DataFrame) -> tuple[str, ...]:
    """Return lines on pairs of CPU and GPU whose energy was read and was not zero on the GPU."""
    sides = {"subject": "gpu_energy_per_sample_joules", "reference": "cpu_energy_per_sample_joules"}
    pairs = pairs[pairs["ratio"].notna()]
    for side, name in sides.items():
        own = measurements.summary[[*KEY, name]].rename(columns={key: f"{key}_{side}" for key in KEY})
        pairs = pairs.merge(own, how="left", on=[f"{key}_{side}" for key in KEY], sort=False)
    gpu, cpu = (pairs[name] for name in sides.values())
    read = pairs.assign(label=label_shared(pairs))[cpu.notna() & (gpu > 0)]

    def describe(workload: str, pair: Row) -> str:
        gpu, cpu = (pair[name] for name in sides.values())
        return (
            f"{workload}, {_describe_devices(pair)}: {format_significant(cpu)} J a sample by the CPU's whole sockets, "
            f"{format_significant(gpu)} J by the GPU, a ratio of {format_significant(cpu / gpu)}; the GPU is "
            f"{_describe_ratio(pair)} as fast"
        )

    return _list_lines(read, read["label"], describe)


def describe_shares(measurements: Measurements) -> tuple[str, ...]:
    """Return per model, phase and device the largest share of the fp32 peak that was reached."""
    rows = measurements.summary[measurements.summary["share_of_peak"].notna() & (measurements.summary["num_sound"] > 0)]
    best = rows.loc[rows.groupby(["model", "phase", "device"], sort=False)["share_of_peak"].idxmax()]
    return _list_lines(
        best,
        label_workloads(best),
        lambda workload, row: (
            f"{workload}, {FRAMEWORK_NAMES[row['framework']]} {row['mode']}: at best "
            f"{format_number(row['share_of_peak'], PERCENT)} % of the peak of {_name_device(row)}"
        ),
    )


def shorten(lines: Sequence[str]) -> tuple[str, ...]:
    """Return at most MAX_LINES lines, the last of which says how many more there are."""
    if len(lines) <= MAX_LINES:
        return tuple(lines)
    more = len(lines) - MAX_LINES + 1
    return (*lines[: MAX_LINES - 1], f"and {more} more, see the comparisons of the runs' reports")


def _list_lines(rows: pd.DataFrame, labels: Iterable[str], describe: Callable[[str, Row], str]) -> tuple[str, ...]:
    return shorten([describe(label, row) for label, row in zip(labels, list_rows(rows), strict=True)])


def _name_device(row: Mapping[str, str]) -> str:
    return row["gpu_name"] if row["device"] == "gpu" else row["cpu_model"]


def _describe_devices(pair: Row) -> str:
    cpu = label_hardware(pair["cpu_model_reference"], pair["num_threads_reference"])
    return f"{pair['gpu_name_subject']} over {cpu}"


def _describe_ratio(pair: Row) -> str:
    ends = read_estimate(pair, center="ratio").find_joint_interval(1)
    interval = "no interval, one repeat" if ends is None else f"95 % interval {format_interval(*ends, RATIO)}"
    return f"{format_significant(pair['ratio'])} times ({interval})"
