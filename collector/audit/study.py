"""The study whose claims are audited, from study.yaml: its hardware, its times under each reading, its claims."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import pandas as pd
import yaml
from pydantic import Field

from bench.models.flops import count_step_cost
from bench.schema import Cell, Device, Document, Framework, Phase
from collector.audit.rates import Limit, Rate, Work, describe_limit, describe_rate
from collector.audit.table import AuditTable, StatedDevice, StatedReading, TableRow
from collector.labels import DEVICE_NAMES, FRAMEWORK_NAMES
from collector.results.frames import list_rows
from collector.units import choose_rate_unit, format_interval

STUDY_PATH = Path(__file__).parent / "study.yaml"

Positive = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(ge=0, le=1)]
ClaimKind = Literal[
    "speedup",
    "lightness",
    "phases",
    "latency",
    "fusion",
    "table",
    "memory",
    "energy",
    "text",
    "product",
    "peaks",
    "judgement",
]


class StudyDevice(Document):
    """A device that the study names. Peaks and bound are at FP32."""

    name: str
    word: str
    """A word in the name of every such device."""
    num_threads: int | None = None
    low_peak_flops_per_second: Positive
    high_peak_flops_per_second: Positive
    """The likely range of the peak; low and high are equal where it is known."""
    bound_flops_per_second: Positive
    """What no device of this description is taken to exceed: times are checked against it."""
    bound_reason: str
    power_watts: Positive

    def is_named(self, name: str) -> bool:
        """Return whether a device of this name is of this kind."""
        return re.search(rf"\b{self.word}\b", name) is not None

    @property
    def limit(self) -> Limit:
        """The bound as what times are held against."""
        is_peak = self.high_peak_flops_per_second == self.bound_flops_per_second
        word = "peak" if is_peak else "bound"
        return Limit(device=self.name, flops_per_second=self.bound_flops_per_second, word=word)


class Reading(Document):
    """One way to read what a step of the study computed. FLOPs are per sample, as direct convolutions do them."""

    label: str
    input_size: int
    is_cell: bool = True
    """Whether a cell can name this work: its model at `input_size`. Then a run's count of its FLOPs replaces these."""
    infer_flops_per_sample: Positive
    train_flops_per_sample: Positive
    most_infer_flops_per_sample: Positive | None = None
    most_train_flops_per_sample: Positive | None = None
    """The most, where what is known of the work leaves a range; None: it leaves none."""
    infer_winograd_share: Share
    train_winograd_share: Share
    """The part of the FLOPs in 3x3 convolutions of stride 1."""

    def take(self, phase: Phase) -> StatedReading:
        """Return the reading of a step of one phase."""
        is_train = phase == "train"
        return StatedReading(
            label=self.label,
            input_size=self.input_size,
            is_model=self.is_cell,
            flops_per_sample=self.train_flops_per_sample if is_train else self.infer_flops_per_sample,
            most_flops_per_sample=self.most_train_flops_per_sample if is_train else self.most_infer_flops_per_sample,
            winograd_share=self.train_winograd_share if is_train else self.infer_winograd_share,
        )


class Workload(Document):
    """A model of the study at its batch size."""

    batch_size: int
    remark: str = ""
    readings: tuple[Reading, ...]
    """More than one where the study leaves open, or contradicts, what was computed."""


class Entry(Document):
    """One time of the study's table."""

    model: str
    framework: Framework
    device: Device
    phase: Phase
    milliseconds: Positive

    @property
    def seconds(self) -> float:
        """The time of one step."""
        return self.milliseconds / 1000


class PeakRatio(Document):
    """One way to read a figure as the ratio of two peak rates."""

    label: str
    faster_tflops: Positive
    slower_tflops: Positive

    @property
    def ratio(self) -> float:
        """How many times the one peak is the other."""
        return self.faster_tflops / self.slower_tflops


class NamedPeak(Document):
    """A device and its peak at FP32."""

    name: str
    tflops: Positive


class Claim(Document):
    """One claim; what `figure` is, its kind says: a speedup, a ratio of times, a share that latency falls by."""

    id: str
    kind: ClaimKind
    statement: str
    sources: tuple[str, ...]
    """Keys of `Study.sources`: who reports what the claim is read in."""
    quote: str = ""
    """The sentence, word for word, as the first of `sources` has it; empty where the figure follows from the table."""
    model: str | None = None
    phase: Phase = "train"
    figure: Positive | None = None
    cpu_seconds: Positive | None = None
    gpu_seconds: Positive | None = None
    """Stated times of one piece of work that is not in the table."""
    flops: Positive | None = None
    """The FLOPs of that work, where they are known."""
    slowest_gpu: NamedPeak | None = None
    """Where the GPU is not stated: the slowest that it may have been."""
    peak_ratios: tuple[PeakRatio, ...] = ()
    facts: tuple[str, ...] = ()
    """What others measured, and what else is known."""


class Study(Document):
    """The study: its hardware, its work, its table and its claims; and claims of other pages beside it."""

    title: str
    source: str
    protocol: str
    provenance: str
    """What of the study was read, and how."""
    gpu: StudyDevice
    cpu: StudyDevice
    workloads: dict[str, Workload]
    table: tuple[Entry, ...]
    sources: dict[str, str]
    """Who reports a claim, in words that follow "of"."""
    claims: tuple[Claim, ...]

    @property
    def table_name(self) -> str:
        """The table with who reports it."""
        return self.sources["table"]

    def describe_provenance(self, claim: Claim) -> str:
        """Return who reports what the claim is read in."""
        return " and ".join(self.sources[source] for source in claim.sources)

    def find_device(self, device: Device) -> StudyDevice:
        """Return the GPU or the CPU."""
        return self.gpu if device == "gpu" else self.cpu

    def find_entry(self, model: str, framework: Framework, device: Device, phase: Phase) -> Entry:
        """Return the table's entry; the table must have it."""
        sought = (model, framework, device, phase)
        return next(
            entry for entry in self.table if (entry.model, entry.framework, entry.device, entry.phase) == sought
        )


@cache
def load_study() -> Study:
    return Study.model_validate_json(json.dumps(yaml.safe_load(STUDY_PATH.read_text(encoding="utf-8"))))


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
    limit = study.find_device(entry.device).limit
    works = list_works(study, entry.model, entry.phase, counted)
    return tuple(ReadTime(entry=entry, rate=Rate(work=work, seconds=entry.seconds, limit=limit)) for work in works)


def choose_kindest_time(times: Iterable[ReadTime]) -> ReadTime:
    """Return the most plausible of `times`."""
    return min(times, key=lambda time: time.rate.severity)


def choose_harshest_time(times: Iterable[ReadTime]) -> ReadTime:
    """Return the least plausible of `times`."""
    return max(times, key=lambda time: time.rate.severity)


def list_works(study: Study, model: str, phase: Phase, counted: Counted) -> list[Work]:
    """Return the readings of a step of `model` at its stated batch, in the data file's order."""
    works, samples = [], study.workloads[model].batch_size
    for reading in study.workloads[model].readings:
        work, key = reading.take(phase).make_work(samples), (model, reading.input_size, phase)
        if reading.is_cell and key in counted:
            work = replace(work, flops=samples * counted[key], is_counted=True)
        works.append(work)
    return works


def list_beyond_limit(study: Study, counted: Counted) -> list[ReadTime]:
    """Return under its kindest reading each time that none makes possible by direct convolutions, in table order."""
    kindest = (choose_kindest_time(read_time(study, entry, counted)) for entry in study.table)
    return [time for time in kindest if time.rate.plausibility != "possible"]


def describe_bound(device: StudyDevice) -> str:
    """Return in a sentence what bounds the device, and its likely peak where that is another."""
    sentence = f"the FP32 {describe_limit(device.limit)} is taken from: {device.bound_reason}"
    if device.limit.word == "peak":
        return sentence
    unit = choose_rate_unit([device.bound_flops_per_second])
    likely = format_interval(device.low_peak_flops_per_second, device.high_peak_flops_per_second, unit)
    return f"{sentence}; its likely peak is {likely} {unit.label}"


FOLDER = Path(__file__).parent / "tables"
STUDY_NAME = "study"


def list_shipped_tables() -> dict[str, Path | None]:
    """Return the names of the tables with their files; None for the study's, which `make_study_table` makes."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.yaml"))} | {STUDY_NAME: None}


def make_study_table() -> AuditTable:
    """Return the study's table with the readings, peaks and bounds that its claims are judged by."""
    study = load_study()
    return AuditTable(
        title=study.title,
        source=study.source,
        provenance=study.table_name,
        remark=f"Stated protocol: {study.protocol}.",
        devices=tuple(
            StatedDevice(
                name=device.name,
                source=device.bound_reason,
                tflops={"fp32": device.high_peak_flops_per_second / 1e12},
                bound_tflops={"fp32": device.bound_flops_per_second / 1e12},
                measured_as=device.word,
                num_threads=device.num_threads,
            )
            for device in (study.gpu, study.cpu)
        ),
        rows=tuple(
            TableRow(
                device=study.find_device(entry.device).name,
                model=entry.model,
                framework=entry.framework,
                phase=entry.phase,
                precision="fp32",
                batch_size=study.workloads[entry.model].batch_size,
                milliseconds=entry.milliseconds,
                readings=tuple(reading.take(entry.phase) for reading in study.workloads[entry.model].readings),
            )
            for entry in study.table
        ),
    )
