"""How much of n GPUs' throughput a run gets."""

from collections.abc import Sequence

from collector.analysis import Analysis
from collector.answers.answer import Said
from collector.answers.comparison_rules import name_comparison_anchor
from collector.answers.pairs import Pair, group_pairs, list_usable_pairs
from collector.answers.ratios import describe_scopes, quote_jointly
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
    quoted = [f"{quote_jointly(pair.judged.ratio, size, PERCENT)} for {_name(pair)}" for pair in (lowest, highest)]
    span = quoted[0] if len(pairs) == 1 else f"from {quoted[0]} to {quoted[1]}, of {len(pairs)} comparisons"
    joint = "" if size == 1 else f" Intervals 95 % together, of {size} ratios."
    return Said(
        text=f"{gpus} {TITLES[comparison.name]} reach, of as many times the throughput of one, {span}.{joint} "
        f"Measured on {describe_scopes(pair.judged for pair in pairs)}.",
        anchor=name_comparison_anchor(comparison),
    )


def _name(pair: Pair) -> str:
    return pair.judged.name
