"""Say in words how memory grows with the batch, what the largest batches are, and how they compare with a search."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from collector.batches.cards import CARDS
from collector.batches.memory_lines import VERSION, LargestBatch, MemoryLine, SingleBatches, hold_out_largest
from collector.units import GIB, MIB, format_number
from collector.word_lists import join_some

MAX_NAMED = 3
"""Environments, and batches on no line, that a sentence names; the others are counted."""


@dataclass(frozen=True, kw_only=True)
class ProbedLimit:
    """What a search for the largest batch found on a GPU (`benchmatrix probe --json`)."""

    source: str
    gpu_name: str
    largest_batch: int
    available_bytes: int
    """The most that a trial could have had."""


def describe_line(line: MemoryLine, level: float, probes: Sequence[ProbedLimit] = ()) -> list[str]:
    """Return the line's sentence, the largest batch for each card, and what each search found beside the line."""
    intro = (
        f"{describe_key(line)}: {format_number(line.fixed_bytes, GIB)} GiB and "
        f"{format_number(line.sample_bytes, MIB)} MiB a sample, from {len(line.batches)} batches, {line.batches[0]} to "
        f"{line.batches[-1]}"
    )
    off = f"; single batches are off it by {format_number(line.residual_bytes, MIB)} MiB"
    if line.sample_bytes <= 0:
        scattered = off if line.has_interval and line.residual_bytes else ""
        return [
            f"{intro}{scattered}: memory does not grow with the batch here, so no largest batch follows.",
            *_list_cautions(line),
        ]
    if not line.has_interval:
        return [
            f"{intro}: any two batches are on a line, so there is no interval and no largest batch; measure a third.",
            *_list_cautions(line),
        ]
    held_out = hold_out_largest(line)
    checked = "" if held_out is None else f"; the others' line misses the largest batch by {100 * held_out:+.1f} %"
    sizes = [
        f"{card.label} {format_largest(line.find_largest(card.find_budget(line.context_bytes), level))}"
        for card in CARDS
    ]
    beyond = f"Batches above {line.batches[-1]} were not measured: the intervals hold if the line goes on."
    return [
        f"{intro}{off}{checked}.",
        f"  largest batch ({100 * level:g} % interval): {', '.join(sizes)}. {beyond}",
        *_list_cautions(line),
        *(f"  {describe_probe(line, probe, level)}" for probe in probes),
    ]


def _list_cautions(line: MemoryLine) -> Iterator[str]:
    """Yield sentences on why the line may not hold, one a line."""
    if line.is_bent:
        yield "  it gives no sample less than no memory, so memory bends: larger batches may take more than it says."
    ids = line.environment_ids
    if len(ids) > 1:
        yield (
            f"  its results are of {len(ids)} environments ({join_some(ids, MAX_NAMED)}): other libraries or settings "
            "may need other memory, which the line takes for chance."
        )


def describe_key(line: MemoryLine) -> str:
    """Return what the cells of a line are."""
    version = line.key[VERSION] or "(version not recorded)"
    return _describe_cells(line.key, f"{line.key['framework']} {version}")


def describe_single_batches(single: SingleBatches) -> str:
    """Return which batches are on no line, and in which versions they ran."""
    framework = single.key["framework"]
    named = [
        f"batch {batch} in a version that is not recorded" if version is None else f"batch {batch} in {version}"
        for version, batch in single.batch_by_version
    ]
    return (
        f"{_describe_cells(single.key, str(framework))}: on no line: {join_some(named, MAX_NAMED)}. Other batches ran "
        f"in other versions of {framework}, which may need other memory; measure a second batch in the same version."
    )


def _describe_cells(key: Mapping[str, object], program: str) -> str:
    gpus = "" if key["num_gpus"] == 1 else f" x {key['num_gpus']}, batch of one GPU"
    data = "" if key["data_dir"] is None else f", data {key['data_dir']}"
    return (
        f"{key['model']} {key['phase']}, {program} {key['mode']}, {key['precision']}, "
        f"size {key['input_size']}, {key['gpu_name'] or 'GPU not recorded'}{gpus}{data}"
    )


def describe_probe(line: MemoryLine, probe: ProbedLimit, level: float) -> str:
    """Return the prediction for what a search could have had, beside what it found."""
    predicted = line.find_largest(probe.available_bytes, level)
    error = predicted.value / probe.largest_batch - 1
    place = "inside" if predicted.lower <= probe.largest_batch <= predicted.upper else "outside"
    return (
        f"{probe.source}: on {probe.gpu_name} a search found {probe.largest_batch:,}, the line gives "
        f"{format_largest(predicted)}: off by {100 * error:+.1f} %, {place} the interval "
        "(which version of the framework searched is not recorded)."
    )


def format_largest(largest: LargestBatch) -> str:
    """Return a largest batch with its interval."""
    if math.isnan(largest.lower):
        return f"{largest.value:,} (no interval)"
    upper = "no bound" if math.isinf(largest.upper) else f"{largest.upper:,}"
    return f"{largest.value:,} ({largest.lower:,} to {upper})"
