"""Say how ratios of frameworks differ where steps are pipelined: run back to back, without a wait after each."""

from collections.abc import Mapping
from dataclasses import dataclass

from collector.analysis import Analysis
from collector.answers.answer import Said
from collector.answers.measured import ShortNames, find_short_names
from collector.answers.pairs import Pair, list_usable_pairs
from collector.comparisons import FRAMEWORKS
from collector.facts import count_things, list_some
from collector.machines import SIDES
from collector.ratio_verdicts import NO_DIFFERENCE
from collector.ratio_words import compare_longer, describe_longer, format_percent
from collector.results.frames import list_rows
from collector.statistics import Estimate

ANCHOR = "step-times"
MAX_NAMED = 2
"""Pairs that a sentence names."""
LEAST_CHANGE = 0.02
"""Ratios that differ by less are alike: nothing is said where all are, and no side changes places."""
CellKey = tuple[str, str]
"""The id of a cell and of the environment that it ran in."""


@dataclass(frozen=True, kw_only=True)
class PipelinedPair:
    """Two cells whose steps were timed both ways."""

    pair: Pair
    ratio: float
    """The time of a pipelined step of the subject over that of the reference."""

    @property
    def change(self) -> float:
        """By which share this ratio is above or below that of steps waited for."""
        return abs(self.ratio / self.pair.judged.ratio.center - 1)

    @property
    def is_turned(self) -> bool:
        """Whether the other side is ahead, and the ratios are not alike."""
        return (self.ratio > 1) != (self.pair.judged.ratio.center > 1) and self.change >= LEAST_CHANGE


def find_pipelined(analysis: Analysis) -> list[Said]:
    """Return by how much ratios of frameworks differ with pipelined steps, and which pairs change places.

    The time of a pipelined step is the median of the repeats that count, one time of each: it has no interval, and
    nothing is tested.
    """
    found = list_pipelined_pairs(analysis)
    most = max(found, key=lambda one: one.change, default=None)
    if most is None or most.change < LEAST_CHANGE:
        return []
    names, number = find_short_names(analysis), count_things(len(found), "pair")
    text = (
        f"Back to back, as people train, the ratios of {number} of frameworks differ by up to "
        f"{format_percent(most.change)} % from those above: {_say(most, names)}."
    )
    turned = [_say(one, names) for one in found if one.is_turned]
    if turned:
        text += f" In {len(turned):,} the other side is ahead: {'; '.join(list_some(turned, MAX_NAMED))}."
    return [Said(text=f"{text} These have no interval.", anchor=ANCHOR)]


def list_pipelined_pairs(analysis: Analysis) -> list[PipelinedPair]:
    """Return the pairs of frameworks that have a ratio of steps waited for and both times of pipelined steps."""
    rows = list_rows(analysis.summary[analysis.summary["pipelined_step_seconds"] > 0])
    seconds = {_get_key(row): float(row["pipelined_step_seconds"]) for row in rows}
    found = []
    for pair in list_usable_pairs(analysis.comparisons[FRAMEWORKS.name], FRAMEWORKS):
        subject, reference = (seconds.get(_get_key(pair.row, f"_{side}")) for side in SIDES)
        if subject is not None and reference is not None:
            found.append(PipelinedPair(pair=pair, ratio=subject / reference))
    return found


def _get_key(row: Mapping[str, object], side: str = "") -> CellKey:
    return str(row[f"cell_id{side}"]), str(row[f"environment_id{side}"])


def _say(one: PipelinedPair, names: ShortNames) -> str:
    """Return `conv6 infer, TensorFlow graph takes 58.0 % longer than PyTorch eager, not 75.2 % longer`."""
    row, waited = one.pair.row, one.pair.judged.ratio.center
    sides = [str(row["subject"]), str(row["reference"])]
    longer, shorter = sides if one.ratio > 1 else reversed(sides)
    text = f"{names.shorten(one.pair.judged.name)}, {longer} takes {compare_longer(_turn(one.ratio), shorter)}"
    if not one.is_turned:
        return f"{text}, not {describe_longer(_turn(waited))}"
    return text if one.pair.judged.is_different else f"{text} (above, {NO_DIFFERENCE})"


def _turn(ratio: float) -> Estimate:
    """Return the ratio of the longer time to the shorter one."""
    return Estimate(center=max(ratio, 1 / ratio), log_standard_error=None, degrees_of_freedom=None)
