"""Select from the summary of runs what bears on the study's claims, and list it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from bench.schema import Phase
from collector.audit.study import Study, load_study
from collector.audit.table import AuditedDevice
from collector.comparisons import DEVICES, FRAMEWORKS, PRECISIONS, Comparison, compare_cells
from collector.labels import label_hardware, label_shared
from collector.machines import SIDES
from collector.results.cell_repeats import read_estimate
from collector.results.frames import Row, list_rows, select_alone
from collector.units import RATIO, format_interval, format_significant

MAX_LINES = 12
KEY = ("run_id", "cell_id", "environment_id")
"""The columns that tell the rows of a summary apart."""
ENERGIES = ("gpu_energy_per_sample_joules", "cpu_energy_per_sample_joules")
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

    def select(self, name: Literal["speedups", "phases"], model: str, phase: Phase | None = None) -> pd.DataFrame:
        """Return the pairs of a model and phase, the study's own configuration first, then the others at its work.

        Columns are added: `is_own` (at the stated work in TensorFlow's graph mode), and `is_stated_hardware`: both
        sides ran on the study's kind of device, the CPU with as many threads.
        """
        pairs = self.pairs[name]
        pairs = pairs[(pairs["model"] == model) & (phase is None or pairs["phase"] == phase)]
        is_work = self.find_stated_batches(pairs) & find_stated_sizes(pairs, self.study)
        is_own = is_work & (pairs["framework"] == "tensorflow") & (pairs["mode"] == "graph")
        cpu = self.study.find_device("cpu")
        has_threads = (pairs["num_threads_reference"] == cpu.num_threads).fillna(False).astype(bool)
        is_hardware = _find_named(pairs["cpu_model_reference"], cpu) & has_threads
        if name == "speedups":
            is_hardware &= _find_named(pairs["gpu_name_subject"], self.study.find_device("gpu"))
        order = pd.DataFrame({"own": is_own, "work": is_work})
        places = order.sort_values([*order], ascending=False, kind="stable").index
        return pairs.assign(is_own=is_own, is_stated_hardware=is_hardware).loc[places]


def find_stated_sizes(rows: pd.DataFrame, study: Study) -> "pd.Series[bool]":
    """Return which rows are of an input size that a cell of the study's work is read at, on synthetic data."""
    stated = {(row.model, one.input_size) for row in study.rows for one in row.list_readings() if one.is_model}
    sizes = zip(rows["model"], rows["input_size"], strict=True)
    return pd.Series([size in stated for size in sizes], index=rows.index, dtype=bool) & rows["data_dir"].isna()


def _find_named(names: "pd.Series[str]", device: AuditedDevice) -> "pd.Series[bool]":
    return names.map(lambda name: pd.notna(name) and device.is_named(name)).astype(bool)


def gather_context(summary: pd.DataFrame) -> ClaimContext:
    """Return what claims are judged from, of the rows of `summarize_collections`."""
    study = load_study()
    single = select_alone(summary[summary["num_gpus"] == 1])
    fp32 = single[single["precision"] == "fp32"]
    rows = fp32[fp32["model"].isin(study.models)]
    infer = rows[(rows["phase"] == "infer") & (rows["device"] == "gpu") & find_stated_sizes(rows, study)]
    latencies = compare_cells(infer, FRAMEWORKS)
    precisions = compare_cells(single[single["device"] == "gpu"], PRECISIONS)
    speedups = compare_cells(fp32, DEVICES)
    for side in SIDES:
        own = fp32[[*KEY, *ENERGIES]].add_suffix(f"_{side}")
        speedups = speedups.merge(own, how="left", on=[f"{name}_{side}" for name in KEY])
    pairs = {
        "speedups": speedups,
        "phases": compare_cells(rows[rows["device"] == "cpu"], PHASES),
        "latencies": latencies[latencies["framework_subject"] == "tensorflow"],
        "fusion": compare_cells(infer[infer["framework"] == "tensorflow"], FUSION),
        "precisions": precisions[precisions["precision_subject"] == "tf32"],
    }
    return ClaimContext(study=study, rows=rows, pairs=pairs)


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


# What was measured, in lines


def list_measured(pairs: pd.DataFrame) -> tuple[str, ...]:
    """Return a line for each pair that has a ratio, and one on those that have no interval."""
    return (*_list_lines(pairs, _describe), *filter(None, [explain_missing_intervals(pairs)]))


def list_energies(pairs: pd.DataFrame) -> tuple[str, ...]:
    """Return a line for each pair of GPU and CPU that has the energies of both."""
    gpu, cpu = (pairs[f"{name}_{side}"] for name, side in zip(ENERGIES, SIDES, strict=True))
    return _list_lines(pairs[cpu.notna() & (gpu > 0)], _describe_energy)


def _list_lines(pairs: pd.DataFrame, describe: Callable[[Row], str]) -> tuple[str, ...]:
    """Return a line for each of the pairs that have a ratio, at most MAX_LINES: the last one counts the others."""
    known = pairs[pairs["ratio"].notna()]
    lines = [f"{label}, {describe(row)}" for label, row in zip(label_shared(known), list_rows(known), strict=True)]
    if len(lines) <= MAX_LINES:
        return tuple(lines)
    more = len(lines) - MAX_LINES + 1
    return (*lines[: MAX_LINES - 1], f"and {more} more, see the comparisons of the runs' reports")


def explain_missing_intervals(pairs: pd.DataFrame) -> str:
    """Return why pairs have no interval: left out, of a single repeat, not comparable; empty where all have one."""
    single = int((pairs["ratio"].notna() & pairs["ratio_low"].isna()).sum())
    without = pairs[pairs["ratio"].isna()]
    counts = (without["decision"] + ": " + without["reason"]).value_counts()
    reasons = [f"{reason} ({count} of {len(pairs)} pairs)" for reason, count in counts.items()]
    reasons += [f"no interval for {single} of {len(pairs)} pairs, as a side has one repeat" if single else ""]
    return "; ".join(filter(None, reasons))


def _describe(pair: Row) -> str:
    """Return what was compared on what, with the ratio: that of speeds for devices and precisions, else of times."""
    of_speeds = "device_subject" in pair or "precision_subject" in pair
    hardware = [_name_hardware(pair, side) for side in SIDES]
    devices = " over ".join(dict.fromkeys(hardware))
    ends = read_estimate(pair, center="ratio").find_joint_interval(1)
    interval = "no interval, one repeat" if ends is None else f"95 % interval {format_interval(*ends, RATIO)}"
    ratio = f"{format_significant(pair['ratio'])} times the {'speed' if of_speeds else 'time'} ({interval})"
    return f"{devices}: {pair['subject']} over {pair['reference']} {ratio}"


def _name_hardware(pair: Row, side: str) -> str:
    gpu = pair[f"gpu_name_{side}"]
    return label_hardware(pair[f"cpu_model_{side}"], pair[f"num_threads_{side}"]) if pd.isna(gpu) else str(gpu)


def _describe_energy(pair: Row) -> str:
    gpu, cpu = (pair[f"{name}_{side}"] for name, side in zip(ENERGIES, SIDES, strict=True))
    return (
        f"{_describe(pair)}; {format_significant(cpu)} J a sample by the CPU's whole sockets, "
        f"{format_significant(gpu)} J by the GPU, a ratio of {format_significant(cpu / gpu)}"
    )
