"""Estimate how long repeats take on this machine: by earlier results of their cells, or of others, else by a guess."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from bench.registry import Device
from runner.matrix.plan import Repeat
from runner.terminal_text import format_wait

GUESSED_SECONDS: Mapping[Device, float] = {"cpu": 27.0, "gpu": 16.0}
"""Medians of the 64 repeats on CPUs and 342 on GPUs in docs/results (of cells without tenants), process start included.
The slowest took 103 s and 51 s."""


@dataclass(frozen=True, kw_only=True)
class LocalEstimate:
    """Estimates how long the repeats of one device take on this machine, one after the other."""

    device: Device
    num_repeats: int
    num_known: int
    """Repeats of cells that were measured here before."""
    num_near: int
    """Repeats of other cells, of whose model, framework and device some were."""
    seconds: float
    """A repeat of a cell of which nothing near is known counts as the mean of the others, or with GUESSED_SECONDS."""

    def describe(self) -> str:
        """Return the estimate in a sentence, with what it rests on."""
        parts = [
            (self.num_known, "as they took here before"),
            (self.num_near, "as the nearest cells of the same model, framework and device took here"),
            (self.num_repeats - self.num_known - self.num_near, self._describe_others()),
        ]
        named = [(number, words) for number, words in parts if number]
        basis = "; ".join(words if len(named) == 1 else f"{number} {words}" for number, words in named)
        return f"{self.device}: {self.num_repeats} repeats take about {format_wait(self.seconds)} ({basis})"

    def _describe_others(self) -> str:
        if self.num_known or self.num_near:
            return "as the mean of the others"
        each = format_wait(self.seconds / self.num_repeats)
        return f"a guess, {each} each: nothing like them was measured here before, and large models take longer"


def estimate_here(
    repeats: Sequence[Repeat], durations: Mapping[str, float], near: Mapping[str, float]
) -> Iterator[LocalEstimate]:
    """Yield an estimate for each device of the repeats.

    `durations`, `near`: seconds by the cell's id, of the cell itself and of the nearest ones.
    """
    devices: list[Device] = sorted({repeat.planned.cell.device for repeat in repeats})
    for device in devices:
        here = [repeat for repeat in repeats if repeat.planned.cell.device == device]
        known = [durations.get(repeat.planned.cell.cell_id) for repeat in here]
        others = [near.get(repeat.planned.cell.cell_id) for repeat in here]
        found = [other if own is None else own for own, other in zip(known, others, strict=True)]
        measured = [seconds for seconds in found if seconds is not None]
        rest = fmean(measured) if measured else GUESSED_SECONDS[device]
        limits = [repeat.planned.timeout_seconds for repeat in here]
        num_known = sum(own is not None for own in known)
        yield LocalEstimate(
            device=device,
            num_repeats=len(here),
            num_known=num_known,
            num_near=len(measured) - num_known,
            seconds=sum(min(rest if one is None else one, limit) for one, limit in zip(found, limits, strict=True)),
        )
