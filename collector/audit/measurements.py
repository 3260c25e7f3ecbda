"""Select from the summary of runs what bears on the study's claims, and put it into words."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from bench.schema import Phase
from collector.audit.rates import Algorithm, Rate, describe_algorithm
from collector.audit.study import Counted, ReadTime, Study, StudyDevice
from collector.comparisons import DEVICES, FRAMEWORKS, PRECISIONS, Comparison, compare_cells
from collector.facts import count_left_out
from collector.labels import FRAMEWORK_NAMES, label_hardware, label_shared, label_workloads
from collector.results.cell_repeats import read_estimate
from collector.results.frames import Row, list_rows, select_alone
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


def gather_measurements(summary: pd.DataFrame, study: Study) -> Measurements:
    """Return what the rows of `summarize_collections` say about the study's models and those of the other claims."""
    single = select_alone(summary[summary["num_gpus"] == 1])
    fp32 = single[single["precision"] == "fp32"]
    rows, others = fp32[fp32["model"].isin(study.workloads)], fp32[fp32["model"].isin(OTHER_MODELS)]
    infer = rows[(rows["phase"] == "infer") & (rows["device"] == "gpu") & find_stated_sizes(rows, study)]
    latencies, precisions = (
        compare_cells(infer, FRAMEWORKS),
        compare_cells(single[single["device"] == "gpu"], PRECISIONS),
    )
    return Measurements(
        summary=rows,
        inference=infer,
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
    num_shown = len(rows) if len(rows) <= MAX_LINES else MAX_LINES - 1
    lines = tuple(map(describe, labels, list_rows(rows.head(num_shown))))
    return lines if num_shown == len(rows) else (*lines, _count_others(len(rows) - num_shown))


def _count_others(number: int) -> str:
    return f"and {number} more, see the comparisons of the runs' reports"


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


def find_stated_cpu(pairs: pd.DataFrame, study: Study, side: Side) -> "pd.Series[bool]":
    """Return for which pairs that side ran on the study's kind of CPU with as many threads."""
    has_threads = (pairs[f"num_threads_{side}"] == study.cpu.num_threads).fillna(False).astype(bool)
    return _find_named(pairs[f"cpu_model_{side}"], study.cpu) & has_threads


def _find_named(names: "pd.Series[str]", device: StudyDevice) -> "pd.Series[bool]":
    return names.map(lambda name: pd.notna(name) and device.is_named(name)).astype(bool)


def _describe_devices(pair: Row) -> str:
    cpu = label_hardware(pair["cpu_model_reference"], pair["num_threads_reference"])
    return f"{pair['gpu_name_subject']} over {cpu}"


def _describe_ratio(pair: Row) -> str:
    ends = read_estimate(pair, center="ratio").find_joint_interval(1)
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
Interval = tuple[float, float]
Place = Literal["inside", "outside", "across"]


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

    statement: str
    verdict: ClaimVerdict
    reason: str
    """What the verdict rests on, without a full stop."""
    nearest: str = ""
    """What was measured at the stated work where that is not what decides, as a sentence without a full stop."""
    id: str = ""
    """That of the claim in study.yaml."""
    provenance: str = ""
    """Who reports the claim, in words that follow "of": the verdict is of the claim as they report it."""
    quote: str = ""
    extremes: str = ""
    """The best and the worst for the claim of several cells; empty where fewer than two were measured."""
    findings: tuple[Finding, ...] = ()
    arithmetic: tuple[str, ...] = ()
    measured: tuple[str, ...] = ()

    @property
    def full_reason(self) -> str:
        """The reason, and what was measured at the stated work."""
        return ". ".join(filter(None, (self.reason, self.nearest)))


@dataclass(frozen=True, kw_only=True)
class ClaimContext:
    """What claims are evaluated from."""

    study: Study
    counted: Counted
    measurements: Measurements


def choose_verdict(worst: ReadTime, measured: ReasonedVerdict) -> ReasonedVerdict:
    """Return the verdict on a claim whose least plausible time is `worst`.

    What is impossible by arithmetic stays so; otherwise what was measured decides, and arithmetic only where that
    decides nothing.
    """
    plausibility = worst.rate.plausibility
    is_decided = measured[0] not in ("not decided", "not tested here")
    if plausibility != "impossible" and (is_decided or plausibility == "possible"):
        return measured
    return judge_rate(worst.rate), f"{worst.describe()}: {describe_algorithm(worst.rate)}"


def judge_rate(rate: Rate) -> ClaimVerdict:
    """Return the verdict on a claim that rests on a time of this rate, by arithmetic alone."""
    verdicts: Mapping[Algorithm | None, ClaimVerdict] = {
        "direct convolutions": "not tested here",
        "F(2x2, 3x3)": "implausible without Winograd",
        "F(4x4, 3x3)": "implausible on the stated hardware",
        None: "impossible on the stated hardware",
    }
    return verdicts[rate.algorithm]


def list_intervals(pairs: pd.DataFrame) -> list[Interval]:
    """Return the interval of each pair's ratio; every pair must have one."""
    return [(row["ratio_low"], row["ratio_high"]) for row in list_rows(pairs)]


def place_interval(interval: Interval, band: Interval) -> Place:
    """Return where an interval lies: inside the band, outside without touching it, or across one of its edges."""
    low, high = interval
    if band[0] <= low and high <= band[1]:
        return "inside"
    return "outside" if high < band[0] or low > band[1] else "across"


def decide(places: Sequence[Place]) -> ClaimVerdict:
    """Return the verdict on a claim that must hold in every one of `places`, of which there is one at least."""
    if "outside" in places:
        return "not reproduced"
    return "not decided" if "across" in places else "reproduced"


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
