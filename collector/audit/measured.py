"""Select from the summary of runs what bears on the study's claims, and list it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from bench.schema import Phase
from collector.audit.rates import (
    Rate,
    describe_rate,
)
from collector.audit.rows import list_rates
from collector.audit.study import Study, load_study
from collector.audit.table import AuditedDevice, TableRow, find_device
from collector.comparisons import DEVICES, FRAMEWORKS, PRECISIONS, Comparison, compare_cells
from collector.facts import count_left_out
from collector.labels import FRAMEWORK_NAMES, label_hardware, label_shared, label_workloads
from collector.machines import SIDES
from collector.results.cell_repeats import read_estimate
from collector.results.frames import Row, list_rows, select_alone
from collector.units import (
    PERCENT,
    RATIO,
    format_interval,
    format_number,
    format_significant,
)

MAX_LINES = 12
KEY = ("run_id", "cell_id", "environment_id")
"""The columns that tell the rows of a summary apart."""
READ_OF_SIDES = ("peak_flops_per_second", "peak_source", "gpu_energy_per_sample_joules", "cpu_energy_per_sample_joules")
PHASES = Comparison(name="phases", field="phase", pairs=(("train", "infer"),), measure="time ratio")
# What TensorFlow's modes cost beside each other: with fusion, without it, and with batch norms as one operation.
FUSION = Comparison(
    name="fusion",
    field="mode",
    pairs=(("graph", "unfused"), ("fused-norm", "graph"), ("compiled", "graph")),
    measure="time ratio",
)

Interval = tuple[float, float]
Place = Literal["inside", "outside", "across"]
Decided = Literal["reproduced", "not reproduced", "not decided"]


@dataclass(frozen=True, kw_only=True)
class ClaimContext:
    """What claims are judged from: the study, and cells on one GPU at most, without other tenants.

    All at fp32 but for the pairs `precisions`, TF32 over FP32. `rows`: of the study's models. `pairs`: `speedups`, GPU
    over CPU; `phases`, training over inference on a CPU; `latencies` and `fusion`, TensorFlow over PyTorch and modes of
    TensorFlow, of inference on a GPU at the stated input sizes on synthetic data.
    """

    study: Study
    rows: pd.DataFrame
    pairs: Mapping[str, pd.DataFrame]

    def find_stated_batches(self, rows: pd.DataFrame) -> "pd.Series[bool]":
        stated = {str(row.model): row.batch_size for row in self.study.rows}
        return (rows["batch_size"] == rows["model"].map(stated)).astype(bool)

    def find_stated_cpu(self, pairs: pd.DataFrame) -> "pd.Series[bool]":
        """Return for which pairs the reference ran on the study's kind of CPU with as many threads."""
        cpu = self.study.find_device("cpu")
        has_threads = (pairs["num_threads_reference"] == cpu.num_threads).fillna(False).astype(bool)
        return _find_named(pairs["cpu_model_reference"], cpu) & has_threads

    def select(self, name: Literal["speedups", "phases"], model: str, phase: Phase | None = None) -> pd.DataFrame:
        """Return the pairs of a model and phase, the study's own configuration first, then PyTorch eager at its work.

        Columns are added: `is_own` (at the stated work in TensorFlow's graph mode), `is_stated_hardware`, `is_nearest`
        (a ratio at the stated work in that mode or in PyTorch eager).
        """
        pairs = self.pairs[name]
        pairs = pairs[(pairs["model"] == model) & (phase is None or pairs["phase"] == phase)]
        is_work = self.find_stated_batches(pairs) & find_stated_sizes(pairs, self.study)
        is_mode = (pairs["framework"] == "tensorflow") & (pairs["mode"] == "graph")
        is_other = (pairs["framework"] == "pytorch") & (pairs["mode"] == "eager")
        is_hardware = self.find_stated_cpu(pairs)
        if name == "speedups":
            is_hardware &= _find_named(pairs["gpu_name_subject"], self.study.find_device("gpu"))
        flags = {
            "is_own": is_work & is_mode,
            "is_stated_hardware": is_hardware,
            "is_nearest": is_work & (is_mode | is_other) & pairs["ratio"].notna(),
        }
        order = pd.DataFrame({"work": is_work, "mode": is_mode, "other": is_other})
        places = order.sort_values([*order], ascending=False, kind="stable").index
        return pairs.assign(**flags).loc[places]


def find_stated_sizes(rows: pd.DataFrame, study: Study) -> "pd.Series[bool]":
    """Return which rows are of an input size that a cell of the study's work is read at, on synthetic data."""
    stated = {(row.model, one.input_size) for row in study.rows for one in row.list_readings() if one.is_model}
    sizes = zip(rows["model"], rows["input_size"], strict=True)
    return pd.Series([size in stated for size in sizes], index=rows.index, dtype=bool) & rows["data_dir"].isna()


def _find_named(names: "pd.Series[str]", device: AuditedDevice) -> "pd.Series[bool]":
    return names.map(lambda name: pd.notna(name) and device.is_named(name)).astype(bool)


def gather_context(summary: pd.DataFrame, study: Study | None = None) -> ClaimContext:
    """Return what claims are judged from, of the rows of `summarize_collections`."""
    study = (study or load_study()).count_anew(summary)
    single = select_alone(summary[summary["num_gpus"] == 1])
    fp32 = single[single["precision"] == "fp32"]
    rows = fp32[fp32["model"].isin(study.models)]
    infer = rows[(rows["phase"] == "infer") & (rows["device"] == "gpu") & find_stated_sizes(rows, study)]
    latencies = compare_cells(infer, FRAMEWORKS)
    precisions = compare_cells(single[single["device"] == "gpu"], PRECISIONS)
    speedups = compare_cells(fp32, DEVICES)
    for side in SIDES:
        own = fp32[[*KEY, *READ_OF_SIDES]].add_suffix(f"_{side}")
        speedups = speedups.merge(own, how="left", on=[f"{name}_{side}" for name in KEY])
    pairs = {
        "speedups": speedups,
        "phases": compare_cells(rows[rows["device"] == "cpu"], PHASES),
        "latencies": latencies[latencies["framework_subject"] == "tensorflow"],
        "fusion": compare_cells(infer[infer["framework"] == "tensorflow"], FUSION),
        "precisions": precisions[precisions["precision_subject"] == "tf32"],
    }
    return ClaimContext(study=study, rows=rows, pairs=pairs)


@dataclass(frozen=True, kw_only=True)
class Time:
    """A time of the study's table under one reading of its work."""

    who: str
    rate: Rate

    def describe(self) -> str:
        return f"{self.who}: {describe_rate(self.rate)}"


def read_times(study: Study, model: str, device: str, phase: Phase, framework: str = "tensorflow") -> list[Time]:
    """Return the table's entry under each reading of its work; none where it has no such entry."""
    row = study.find_row(model, framework, device, phase)
    return [] if row is None else read_row(study, row)


def read_row(study: Study, row: TableRow) -> list[Time]:
    who = f"{FRAMEWORK_NAMES[str(row.framework)]} {row.phase} on the {study.name_device(row)}"
    return [Time(who=who, rate=rate) for rate in list_rates(row, find_device(study, row))]


# How intervals lie to a band


def list_intervals(pairs: pd.DataFrame) -> list[Interval]:
    """Return the interval of each pair's ratio; every pair must have one."""
    return list(zip(pairs["ratio_low"], pairs["ratio_high"], strict=True))


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
    return "; ".join(filter(None, reasons))


# What was measured, in lines


def list_pairs(pairs: pd.DataFrame, describe: Callable[[Row], str]) -> tuple[str, ...]:
    """Return a line for each of the pairs that have a ratio."""
    known = pairs[pairs["ratio"].notna()]
    return shorten(
        [f"{label}, {describe(row)}" for label, row in zip(label_shared(known), list_rows(known), strict=True)]
    )


def list_missing(pairs: pd.DataFrame) -> tuple[str, ...]:
    return tuple(filter(None, [explain_missing_intervals(pairs)]))


def shorten(lines: Sequence[str]) -> tuple[str, ...]:
    """Return at most MAX_LINES lines, the last of which says how many more there are."""
    if len(lines) <= MAX_LINES:
        return tuple(lines)
    more = len(lines) - MAX_LINES + 1
    return (*lines[: MAX_LINES - 1], f"and {more} more, see the comparisons of the runs' reports")


def describe_ratio(pair: Row) -> str:
    ends = read_estimate(pair, center="ratio").find_joint_interval(1)
    interval = "no interval, one repeat" if ends is None else f"95 % interval {format_interval(*ends, RATIO)}"
    return f"{format_significant(pair['ratio'])} times ({interval})"


def _describe_devices(pair: Row) -> str:
    return f"{pair['gpu_name_subject']} over {describe_cpu(pair)}"


def describe_cpu(pair: Row) -> str:
    return label_hardware(pair["cpu_model_reference"], pair["num_threads_reference"])


def describe_speedup(pair: Row) -> str:
    """Return what was measured, on what, and how far apart the peaks are there."""
    factor, peaks = pair["peak_flops_per_second_subject"] / pair["peak_flops_per_second_reference"], ""
    if not pd.isna(factor):
        # A data sheet's peak over a measured one is no ratio of one quantity: the reader is told which is which.
        sources = f"the GPU's by {pair['peak_source_subject']}, the CPU's {pair['peak_source_reference']}"
        peaks = f"; the peaks are {format_significant(factor)} times apart ({sources})"
    return f"{_describe_devices(pair)}: {describe_ratio(pair)} as fast{peaks}"


def describe_energy(pair: Row) -> str:
    gpu, cpu = pair["gpu_energy_per_sample_joules_subject"], pair["cpu_energy_per_sample_joules_reference"]
    return (
        f"{_describe_devices(pair)}: {format_significant(cpu)} J a sample by the CPU's whole sockets, "
        f"{format_significant(gpu)} J by the GPU, a ratio of {format_significant(cpu / gpu)}; the GPU is "
        f"{describe_ratio(pair)} as fast"
    )


def describe_sides(pair: Row, *, verb: str, relation: str) -> str:
    """Return how two cells on one GPU compare; `relation`: what 2 says of the subject."""
    return f"{pair['gpu_name_subject']}: {pair['subject']} {verb} {describe_ratio(pair)} {relation} {pair['reference']}"


def describe_nearest(pairs: pd.DataFrame) -> list[str]:
    """Return per pair of devices what `select` found at the study's work in its two frameworks' modes."""
    found: dict[str, list[str]] = {}
    for pair in list_rows(pairs[pairs["is_nearest"]]):
        name = f"{FRAMEWORK_NAMES[pair['framework']]} {pair['mode']} at {pair['input_size']} px"
        found.setdefault(_describe_devices(pair), []).append(f"{name} {describe_ratio(pair)} as fast")
    return [f"on {devices}: {', '.join(texts)}" for devices, texts in found.items()]


def describe_shares(rows: pd.DataFrame) -> tuple[str, ...]:
    """Return per model, phase and device the largest share of the fp32 peak that was reached."""
    known = rows[rows["share_of_peak"].notna() & (rows["num_sound"] > 0)]
    best = known.loc[known.groupby(["model", "phase", "device"], sort=False)["share_of_peak"].idxmax()]
    return shorten(
        [
            f"{label}, {FRAMEWORK_NAMES[row['framework']]} {row['mode']}: at best "
            f"{format_number(row['share_of_peak'], PERCENT)} % of the peak of "
            f"{row['gpu_name'] if row['device'] == 'gpu' else row['cpu_model']}"
            for label, row in zip(label_workloads(best), list_rows(best), strict=True)
        ]
    )
