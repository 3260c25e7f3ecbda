"""How much of n GPUs' throughput a run gets."""

from collections.abc import Sequence

from collector.analysis import Analysis
from collector.answers.answer import Figures, Said
from collector.answers.comparison_groups import name_comparison_anchor
from collector.answers.pairs import Pair, group_pairs, list_usable_pairs, take_judged
from collector.answers.ratios import find_basis, quote_jointly
from collector.comparisons import STRONG_SCALING, WEAK_SCALING, Comparison
from collector.labels import count_gpus
from collector.units import PERCENT

TITLES = {
    WEAK_SCALING.name: "at the same batch per GPU",
    STRONG_SCALING.name: "at the same global batch",
}


def find_scaling(analysis: Analysis) -> list[Said]:
    """Return for each number of GPUs how much of as many single ones' throughput they reach, the most GPUs first."""
    found = []
    for comparison in (WEAK_SCALING, STRONG_SCALING):
        pairs = list_usable_pairs(analysis.comparisons[comparison.name], comparison)
        groups = group_pairs(pairs, lambda row: count_gpus(row["num_gpus_subject"]))
        ordered = sorted(groups.items(), key=lambda item: -item[1][0].row["num_gpus_subject"])
        found += [_say(gpus, group, comparison, len(pairs)) for gpus, group in ordered]
    return found


def _say(gpus: str, pairs: Sequence[Pair], comparison: Comparison, size: int) -> Said:
    lowest, highest = (choose(pairs, key=lambda pair: pair.judged.ratio.center) for choose in (min, max))
    quoted = [f"{quote_jointly(pair.judged.ratio, size, PERCENT)} for {pair.judged.name}" for pair in (lowest, highest)]
    span = quoted[0] if len(pairs) == 1 else f"from {quoted[0]} to {quoted[1]}, of {len(pairs)} comparisons"
    reached = f"{gpus} {TITLES[comparison.name]} reach, of as many times the throughput of one, {span}."
    return Said(
        text=f"{reached}{_doubt(pairs, size)}",
        anchor=name_comparison_anchor(comparison),
        basis=find_basis(take_judged(pairs)),
        figures=Figures(name=f"ratios of {comparison.name}", number=size, are_tested=False),
    )


def _doubt(pairs: Sequence[Pair], size: int) -> str:
    """Return that more than as many times the throughput is not the GPUs' doing; empty where none is shown to be."""
    intervals = [pair.judged.ratio.find_joint_interval(size) for pair in pairs]
    number = sum(interval is not None and interval[0] > 1 for interval in intervals)
    if not number:
        return ""
    which = "That is" if len(pairs) == 1 else f"{number:,} of them {'is' if number == 1 else 'are'}"
    return f" {which} more than the number of GPUs explains: something else differed between the cells."
