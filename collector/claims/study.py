"""The study whose claims are evaluated: its hardware, its work, its table and its claims, from claims.yaml."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import Field

from bench.schema import Device, Document, Framework, Phase
from collector.claims.plausibility import Limit

STUDY_PATH = Path(__file__).parent / "claims.yaml"

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


class StatedDevice(Document):
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

    def count_flops(self, phase: Phase) -> float:
        """Return the FLOPs per sample, the fewest of a range."""
        return self.train_flops_per_sample if phase == "train" else self.infer_flops_per_sample

    def count_most_flops(self, phase: Phase) -> float | None:
        """Return the most FLOPs per sample of a range; None where there is no range."""
        return self.most_train_flops_per_sample if phase == "train" else self.most_infer_flops_per_sample

    def find_winograd_share(self, phase: Phase) -> float:
        """Return the part of the FLOPs, 0 to 1, that Winograd's algorithms need fewer of."""
        return self.train_winograd_share if phase == "train" else self.infer_winograd_share


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
    gpu: StatedDevice
    cpu: StatedDevice
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

    def find_device(self, device: Device) -> StatedDevice:
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
    """Return the shipped study."""
    return Study.model_validate_json(json.dumps(yaml.safe_load(STUDY_PATH.read_text(encoding="utf-8"))))
