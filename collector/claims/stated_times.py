"""Hold the times of the study's table against the stated devices, under each reading of their work."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from bench.models.flops import count_step_cost
from bench.schema import Cell, Phase
from collector.claims.plausibility import Rate, Work, describe_limit, describe_rate, imply_rates
from collector.claims.study import Entry, StatedDevice, Study
from collector.labels import DEVICE_NAMES, FRAMEWORK_NAMES
from collector.results.frames import list_rows
from collector.units import choose_rate_unit, format_interval

Counted = Mapping[tuple[str, int, Phase], float]
"""(model, input_size, phase) to FLOPs per sample, as a run counts them layer by layer."""
COUNTED = ("model", "input_size", "phase", "num_classes")
"""The columns that decide how many operations a sample takes."""


@dataclass(frozen=True, kw_only=True)
class ReadTime:
    """A time of the table under one reading of its work."""

    entry: Entry
    rate: Rate

    def describe(self) -> str:
        """Return in words whose time it is and what it implies."""
        who = f"{FRAMEWORK_NAMES[self.entry.framework]} {self.entry.phase} on the {DEVICE_NAMES[self.entry.device]}"
        return f"{who}: {describe_rate(self.rate)}"


def count_flops(summary: pd.DataFrame) -> Counted:
    """Return FLOPs per sample of each (model, input_size, phase) that was measured; of several counts, the fewest.

    They are counted anew from the cells, as every run does: no single record can change what a claim is judged by.
    """
    rows = summary[summary["flops_per_step"].notna()]
    counted: dict[tuple[str, int, Phase], float] = {}
    for row in list_rows(rows[[*COUNTED]].drop_duplicates()):
        cell = Cell(framework="pytorch", device="cpu", batch_size=1, **row)
        key = (cell.model, cell.input_size, cell.phase)
        flops = float(count_step_cost(cell).flops)
        counted[key] = min(flops, counted.get(key, flops))
    return counted


def read_time(study: Study, entry: Entry, counted: Counted) -> tuple[ReadTime, ...]:
    """Return the entry under each reading of its work, in the data file's order."""
    works = list_works(study, entry.model, entry.phase, counted)
    rates = imply_rates(works, entry.seconds, study.find_device(entry.device).limit)
    return tuple(ReadTime(entry=entry, rate=rate) for rate in rates)


def choose_kindest_time(times: Sequence[ReadTime]) -> ReadTime:
    """Return the most plausible of `times`."""
    return min(times, key=lambda time: time.rate.severity)


def choose_harshest_time(times: Sequence[ReadTime]) -> ReadTime:
    """Return the least plausible of `times`."""
    return max(times, key=lambda time: time.rate.severity)


def list_works(study: Study, model: str, phase: Phase, counted: Counted) -> tuple[Work, ...]:
    """Return the readings of a step of `model` at its stated batch, in the data file's order."""
    workload = study.workloads[model]
    works = []
    for reading in workload.readings:
        key = (model, reading.input_size, phase)
        is_counted = reading.is_cell and key in counted
        most = reading.count_most_flops(phase)
        works.append(
            Work(
                label=reading.label,
                flops=workload.batch_size * (counted[key] if is_counted else reading.count_flops(phase)),
                most_flops=None if most is None else workload.batch_size * most,
                winograd_share=reading.find_winograd_share(phase),
                is_counted=is_counted,
            )
        )
    return tuple(works)


def list_beyond_limit(study: Study, counted: Counted) -> list[ReadTime]:
    """Return under its kindest reading each time that none makes possible by direct convolutions, in table order."""
    kindest = (choose_kindest_time(read_time(study, entry, counted)) for entry in study.table)
    return [time for time in kindest if time.rate.plausibility != "possible"]


def describe_bound(device: StatedDevice) -> str:
    """Return in a sentence what bounds the device, and its likely peak where that is another."""
    sentence = f"the FP32 {describe_limit(device.limit)} is taken from: {device.bound_reason}"
    if device.limit.word == "peak":
        return sentence
    unit = choose_rate_unit([device.bound_flops_per_second])
    likely = format_interval(device.low_peak_flops_per_second, device.high_peak_flops_per_second, unit)
    return f"{sentence}; its likely peak is {likely} {unit.label}"


def compute_latency_gains(study: Study) -> dict[str, float]:
    """Return per model by what share TensorFlow's latency on the GPU is lower than PyTorch's in the study's table."""
    return {
        model: 1
        - study.find_entry(model, "tensorflow", "gpu", "infer").seconds
        / study.find_entry(model, "pytorch", "gpu", "infer").seconds
        for model in study.workloads
    }
