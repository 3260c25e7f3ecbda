"""The study whose claims are evaluated: its hardware, its work, its table and its claims, from claims.yaml."""

import json
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import Field

from bench.schema import Device, Document, Framework, Phase

STUDY_PATH = Path(__file__).parent / "claims.yaml"

Positive = Annotated[float, Field(gt=0)]
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


class Reading(Document):
    """One way to read what a step of the study computed."""

    input_size: int
    infer_flops_per_sample: Positive
    train_flops_per_sample: Positive


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
