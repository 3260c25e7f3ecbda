"""Neighbour: what the other tenants of a GPU run, where they do not run what the first one runs."""

from typing import Annotated, Literal

from pydantic import Field

from bench.registry import Mode, Phase
from bench.schema.document import Count, Document

Precision = Literal["fp32", "tf32", "fp16", "bf16"]

MAX_INPUT_SIZE = 65_536


class Neighbour(Document):
    """What tenants 1, 2, ... run beside tenant 0: the fields in which their cell may differ from its cell."""

    model: str
    """A name in `bench.registry.MODELS`."""
    phase: Phase
    batch_size: Count
    precision: Precision
    mode: Mode
    input_size: Annotated[int, Field(ge=2, le=MAX_INPUT_SIZE)]
    num_classes: Annotated[int, Field(ge=2, le=10**7)] | None
