"""The study whose claims are evaluated: its hardware, its work, its table and its claims, from claims.yaml."""

import json
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
ClaimKind = Literal["speedup", "latency", "fusion", "table", "memory", "energy", "judgement"]


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


class Claim(Document):
    """One claim of the study; `figure`: a speedup, or a share that latency falls by."""

    id: str
    kind: ClaimKind
    statement: str
    model: str | None = None
    figure: Positive | None = None
    facts: tuple[str, ...] = ()
    """What others measured."""


class Study(Document):
    """The study: its hardware, its work, its table and its claims."""

    title: str
    source: str
    protocol: str
    table_name: str
    """The table with who reported it, as in `the table as reported by ...`."""
    gpu: StatedDevice
    cpu: StatedDevice
    workloads: dict[str, Workload]
    table: tuple[Entry, ...]
    claims: tuple[Claim, ...]

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
