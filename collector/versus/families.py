"""Judge the ratios of a comparison in their families: those whose intervals hold together."""

from collections.abc import Sequence

from collector.versus.document import Family
from collector.versus.verdicts import RatioTest, Verdict, judge


def split_families(num_cells: int, num_groups: int, *, is_within_runs: bool) -> list[Family]:
    """Return how many ratios are judged together, in the order of the tests: cells first, then groups of them."""
    if not is_within_runs:
        return [Family(num_cells=num_cells, num_groups=num_groups)] if num_cells else []
    families = [Family(num_cells=num_cells, num_groups=0), Family(num_cells=0, num_groups=num_groups)]
    return [family for family in families if family.num_cells + family.num_groups]


def judge_families(tests: Sequence[RatioTest], families: Sequence[Family]) -> tuple[list[Verdict], list[int]]:
    """Return the verdict on each test, and how many are judged together with it."""
    verdicts: list[Verdict] = []
    sizes: list[int] = []
    for family in families:
        number = family.num_cells + family.num_groups
        verdicts += judge(tests[len(verdicts) : len(verdicts) + number])
        sizes += [number] * number
    return verdicts, sizes
