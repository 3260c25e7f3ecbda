"""The study whose claims are audited, from study.yaml: a table like anybody's, with what its pages claim of it."""

import json
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import Field

from bench.schema import Device, Document, Phase
from collector.audit.rows import Rate, list_rates
from collector.audit.table import AuditTable, StatedDevice, find_device
from collector.labels import DEVICE_NAMES, FRAMEWORK_NAMES

STUDY_PATH = Path(__file__).parent / "study.yaml"
FOLDER = Path(__file__).parent / "tables"
STUDY_NAME = "study"

Positive = Annotated[float, Field(gt=0)]
ClaimKind = Literal["speedup", "lightness", "phases", "latency", "fusion", "stated"]
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


class Finding(Document):
    """What arithmetic shows about a claim and no verdict says; it decides nothing."""

    title: str
    reason: str


class Claim(Document):
    """One claim; what `figure` is, its kind says: a speedup, a ratio of times, a share that latency falls by."""

    id: str
    kind: ClaimKind
    """`stated`: no run can decide it; verdict, reason and findings stand in the file."""
    statement: str
    sources: tuple[str, ...]
    """Keys of `Study.sources`: who reports what the claim is read in."""
    quote: str = ""
    """The sentence, word for word, as the first of `sources` has it; empty where the figure follows from the table."""
    model: str = ""
    phase: Phase = "train"
    figure: Positive = 1.0
    verdict: ClaimVerdict = "not tested here"
    reason: str = ""
    findings: tuple[Finding, ...] = ()
    facts: tuple[str, ...] = ()
    """What arithmetic gives beside the times that the claim rests on, what others measured, and what else is known."""


class Study(AuditTable):
    """The study's table with its claims, and claims of other pages beside them."""

    caveat: str
    """What of the study was read, and how."""
    gpu: str
    cpu: str
    """The names of its two devices."""
    sources: dict[str, str]
    """Who reports a claim, in words that follow "of"."""
    claims: tuple[Claim, ...]

    @property
    def models(self) -> list[str]:
        return list(dict.fromkeys(str(row.model) for row in self.rows))

    def describe_provenance(self, claim: Claim) -> str:
        """Return who reports what the claim is read in."""
        return " and ".join(self.sources[source] for source in claim.sources)

    def pair_rates(self, model: str, one: tuple[str, Phase], other: tuple[str, Phase]) -> list[tuple[Rate, Rate]]:
        """Return TensorFlow's rates on two (device, phase), together under each reading of the model's work."""
        rows = {
            (row.device, row.phase): row for row in self.rows if (row.model, row.framework) == (model, "tensorflow")
        }
        first, second = (list_rates(rows[side], find_device(self, rows[side])) for side in (one, other))
        return list(zip(first, second, strict=True))

    def describe_time(self, rate: Rate) -> str:
        """Return whose time it is, on what, with the calculation."""
        row, device = rate.row, DEVICE_NAMES["gpu" if rate.row.device == self.gpu else "cpu"]
        return f"{FRAMEWORK_NAMES[str(row.framework)]} {row.phase} on the {device}: {rate.describe()}"

    def find_device(self, device: Device) -> StatedDevice:
        return find_device(self, next(row for row in self.rows if row.device == getattr(self, device)))


@cache
def load_study() -> Study:
    return Study.model_validate_json(json.dumps(yaml.safe_load(STUDY_PATH.read_text(encoding="utf-8"))))


def list_shipped_tables() -> dict[str, Path | None]:
    """Return the names of the tables with their files; None for the study's, which `load_study` reads."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.yaml"))} | {STUDY_NAME: None}
