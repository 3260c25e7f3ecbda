"""The document that `benchmatrix batches --json` prints; its JSON Schema by `benchmatrix schema batches`."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from bench.schema import Document
from collector.batches.cards import CARDS
from collector.batches.memory_lines import LargestBatch, MemoryLine
from collector.batches.words import ProbedLimit, describe_line


class LargestOnCard(Document):
    """The largest batch of one GPU for a card; None where there is no bound, or no interval."""

    card: str
    total_bytes: int
    batch: int | None
    low: int | None
    high: int | None


class MemoryLineDocument(Document):
    """Bytes of tensors over the batch of one GPU, of cells that are equal but for the batch."""

    cell: dict[str, str | int | None]
    """The fields that the cells of the line have in common, the GPU that they were measured on and the version of the
    framework; null: not recorded, or there is none of it."""
    batches: tuple[int, ...]
    needed_bytes: tuple[int, ...]
    """The most of the repeats of each batch."""
    fixed_bytes: float
    bytes_per_sample: float
    residual_bytes: float | None
    """Standard deviation of what single batches are off the line; None for two batches."""
    largest: tuple[LargestOnCard, ...]
    """Empty where memory does not grow with the batch, or two batches were measured."""
    environment_ids: tuple[str, ...] = ()
    """Of the results, sorted: several may differ in libraries or settings beside the framework's version."""
    sentences: tuple[str, ...]
    """The same for people, with what searches found."""


class BatchesDocument(Document):
    """Memory over batch of measured cells, and the largest batches that follow."""

    batches_version: Literal[1] = 1
    run_ids: tuple[str, ...]
    level: float
    lines: tuple[MemoryLineDocument, ...]
    on_no_line: tuple[str, ...] = ()
    """Which batches are on no line since the other batches of their cells ran in other versions of the framework."""


def make_line_document(line: MemoryLine, level: float, probes: Sequence[ProbedLimit] = ()) -> MemoryLineDocument:
    """Return the document of a line."""
    has_answer = line.has_interval and line.sample_bytes > 0
    return MemoryLineDocument(
        cell={name: _take_plain(value) for name, value in line.key.items()},
        batches=line.batches,
        needed_bytes=line.needed_bytes,
        fixed_bytes=line.fixed_bytes,
        bytes_per_sample=line.sample_bytes,
        residual_bytes=None if math.isnan(line.residual_bytes) else line.residual_bytes,
        environment_ids=line.environment_ids,
        largest=tuple(_list_largest(line, level)) if has_answer else (),
        sentences=tuple(sentence.strip() for sentence in describe_line(line, level, probes)),
    )


def _list_largest(line: MemoryLine, level: float) -> Iterable[LargestOnCard]:
    for card in CARDS:
        found: LargestBatch = line.find_largest(card.find_budget(line.context_bytes), level)
        ends = (int(end) if math.isfinite(end) else None for end in (found.value, found.lower, found.upper))
        named = dict(zip(("batch", "low", "high"), ends, strict=True))
        yield LargestOnCard(card=card.label, total_bytes=card.total_bytes, **named)


def _take_plain(value: Any) -> str | int | None:
    """Return a value of a data frame as one of JSON."""
    if isinstance(value, str):
        return value
    return None if value is None or value != value else int(value)


def export_batches_schema() -> dict[str, Any]:
    """Return the JSON Schema of BatchesDocument."""
    schema = BatchesDocument.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
