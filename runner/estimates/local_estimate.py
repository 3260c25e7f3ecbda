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
    """What the repeats of one device take on this machine, one after the other."""

    device: Device
    num_repeats: int
    num_known: int
    """Repeats of cells that were measured here before."""
    seconds: float
    """A repeat of an unknown cell counts as the mean of the known ones, or else with GUESSED_SECONDS."""
    most_seconds: float
    """If every repeat took its time limit."""

    def describe(self) -> str:
        """Return the estimate in a sentence, with what it rests on."""
        if self.num_known == self.num_repeats:
            basis = "as they took here before"
        elif self.num_known:
            basis = f"{self.num_known} as they took here before, the others as those"
        else:
            each = format_wait(self.seconds / self.num_repeats)
            basis = f"a guess, {each} each: none was measured here before, and large models take longer"
        about, most = format_wait(self.seconds), format_wait(self.most_seconds)
        return f"{self.device}: {self.num_repeats} repeats take about {about} ({basis}), at most {most}"


def estimate_here(repeats: Sequence[Repeat], durations: Mapping[str, float]) -> Iterator[LocalEstimate]:
    """Yield an estimate for each device of the repeats; `durations` in seconds, by the cell's id."""
    devices: list[Device] = sorted({repeat.planned.cell.device for repeat in repeats})
    for device in devices:
        here = [repeat for repeat in repeats if repeat.planned.cell.device == device]
        found = [durations.get(repeat.planned.cell.cell_id) for repeat in here]
        known = [seconds for seconds in found if seconds is not None]
        other = fmean(known) if known else GUESSED_SECONDS[device]
        limits = [repeat.planned.timeout_seconds for repeat in here]
        yield LocalEstimate(
            device=device,
            num_repeats=len(here),
            num_known=len(known),
            seconds=sum(min(other if one is None else one, limit) for one, limit in zip(found, limits, strict=True)),
            most_seconds=sum(limits),
        )
