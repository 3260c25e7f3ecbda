"""Name sections by what they hold of a run: a title promises nothing else."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from collector.analysis import Analysis
from collector.costs.document import CellCost
from collector.facts import join_words


@dataclass(frozen=True, kw_only=True)
class Part:
    """One of the things that a section may hold, and what the section is called by it."""

    title: str
    """Its word in the section's title: `clocks`."""
    about: str
    """What it is, in a few words, for the line of a folded section."""
    is_there: Callable[[Analysis], bool]
    """Whether the section holds it of a run."""


def measures(*columns: str) -> Callable[[Analysis], bool]:
    """Return whether one of these columns of the summary has a value in any cell of a run."""
    return lambda analysis: bool(analysis.summary[list(columns)].notna().any(axis=None))


def find_parts(parts: Sequence[Part], analysis: Analysis) -> tuple[Part, ...]:
    """Return the parts that are there."""
    return tuple(part for part in parts if part.is_there(analysis))


def join_titles(parts: Sequence[Part]) -> str:
    """Return `Load, clocks and energy`; empty without parts."""
    text = join_words(part.title for part in parts)
    return text[:1].upper() + text[1:]


def join_abouts(parts: Sequence[Part]) -> str:
    """Return what the parts are, in one line; empty without parts."""
    return "; ".join(part.about for part in parts)


def _list_priced(analysis: Analysis) -> Sequence[CellCost]:
    return () if analysis.costs is None else analysis.costs.cells


ARITHMETIC_PARTS = (
    Part(
        title="roofline",
        about="shares of the device's peak and of the nearest roof",
        is_there=measures("share_of_peak", "share_of_roofline"),
    ),
    Part(title="kernel time", about="the time in kernels", is_there=measures("kernel_busy_share")),
)
CONDITION_PARTS = (
    Part(
        title="load",
        about="use of CPUs by the run and by others",
        is_there=measures("cpu_own_cores", "cpu_other_cores"),
    ),
    Part(title="clocks", about="clocks and temperatures of GPUs", is_there=measures("gpu_sm_clock_mhz")),
    Part(
        title="energy",
        about="power and energy",
        is_there=measures(
            "gpu_idle_power_watts",
            "gpu_mean_power_watts",
            "gpu_energy_per_sample_joules",
            "cpu_energy_per_sample_joules",
        ),
    ),
)
COST_PARTS = (
    Part(
        title="cost",
        about="what 1,000 samples of each cell cost at listed prices",
        is_there=lambda analysis: any(cell.offers for cell in _list_priced(analysis)),
    ),
    Part(
        title="energy",
        about="the energy of as many",
        is_there=lambda analysis: any(cell.energy is not None for cell in _list_priced(analysis)),
    ),
    Part(
        title="CO2",
        about="the CO2 of that where a machine's region is known",
        is_there=lambda analysis: any(
            offer.co2_grams_per_1000_samples is not None for cell in _list_priced(analysis) for offer in cell.offers[:1]
        ),
    ),
)
