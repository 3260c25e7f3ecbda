"""Tabulate over all work which side of each comparison is faster: a row for each side, and for what is not shown."""

from collections import Counter
from collections.abc import Iterator, Sequence

import pandas as pd

from collector.analysis import Analysis
from collector.answers.anchors import name_anchor
from collector.answers.certainty import count_repeats
from collector.answers.comparison_groups import (
    PairGroup,
    list_device_groups,
    list_framework_groups,
    list_mode_groups,
    list_precision_groups,
)
from collector.answers.planned import describe_idle_modes
from collector.answers.ratios import Family, JudgedRatio, Side, find_basis, find_sides
from collector.comparisons import FRAMEWORKS
from collector.facts import join_words, list_some
from collector.labels import PHASE_NAMES
from collector.machines import SIDES
from collector.ratio_verdicts import NO_DIFFERENCE
from collector.ratio_words import quote_amount
from collector.results.frames import Row
from collector.side_settings import find_differing_settings, name_differing_settings
from collector.tables.columns import text_column
from collector.tables.table import Table, make_table

CAPTION = "Over all work: which side is faster, and how much longer the other takes (95 % interval)"
ANCHOR = name_anchor(CAPTION)
MAX_GROUPS = 20
"""Comparisons of two sides that the table has; the tables of Comparisons have every pair."""
MIN_PAIRS = 2
"""Of two frameworks: a single pair has its row in the table of the fastest."""
MAX_NAMED = 3
"""Works, each with its amount, that a row names."""
MAX_FOLLOWED = 200
"""Cells of a row that follows the page's filter; one of more stays. Ids took a third of a page of 10,000 cells."""


def make_faster_table(analysis: Analysis) -> Table | None:
    """Return the rows of each two frameworks, devices, modes and precisions; None where no difference was shown."""
    groups = list_groups(analysis)
    if not groups:
        return None
    shown = groups[:MAX_GROUPS]
    rows = pd.DataFrame([row for group in shown for row in _describe_group(group, analysis)])
    for name in ("machines", "repeats"):
        if rows[name].nunique() == 1:  # the note on all findings says it once
            rows[name] = ""
    idle = describe_idle_modes(analysis) if any(group.comparison.field == "mode" for group in groups) else ""
    if idle:
        nothing = dict.fromkeys(rows.columns, "") | {"compared": idle, "side": "not planned"}
        rows = pd.concat([rows, pd.DataFrame([nothing])], ignore_index=True)
    columns = [
        text_column("compared", "compared"),
        text_column("faster", "side"),
        text_column("in", "number"),
        text_column("the other takes longer", "amounts"),
        text_column("on", "machines", is_optional=True),
        text_column("repeats", "repeats", is_optional=True),
    ]
    more = f"The first {MAX_GROUPS} of {len(groups):,} comparisons of two sides." if len(groups) > MAX_GROUPS else ""
    return make_table(CAPTION, columns, rows, remark=more)


def list_groups(analysis: Analysis) -> list[PairGroup]:
    """Return the groups of all comparisons of times in the order of their rules, without what the fastest alone say."""
    lists = (list_framework_groups, list_device_groups, list_mode_groups, list_precision_groups)
    groups = [group for find in lists for group in analysis.derive(find)]
    return [group for group in groups if len(group.pairs) >= MIN_PAIRS or group.comparison is not FRAMEWORKS]


def _describe_group(group: PairGroup, analysis: Analysis) -> Iterator[Row]:
    """Yield a row for each side that is faster in some comparisons, then one for those without a difference."""
    ratios = group.name_ratios(analysis)
    shared = {
        "compared": _name_comparison(group, analysis),
        "cell_id": _list_followed(group),
    }
    for side in find_sides(ratios, group.family):
        faster = _name_other(side.name, group.family)
        number = _count_by_phase(group, faster)
        amounts = _list_amounts(side, group.size)
        yield shared | {"side": faster, "number": number, "amounts": amounts} | _describe_basis(side.ratios)
    unshown = [one for one in ratios if not one.is_different]
    if unshown:
        named = join_words(list_some([one.name for one in unshown], MAX_NAMED))
        number = _count_by_phase(group, NO_DIFFERENCE)
        yield shared | {"side": NO_DIFFERENCE, "number": number, "amounts": named} | _describe_basis(unshown)


def _list_followed(group: PairGroup) -> str:
    """Return the ids of the cells of a group, with blanks between them; none of more than MAX_FOLLOWED."""
    ids = dict.fromkeys(str(pair.row[f"cell_id_{side}"]) for pair in group.pairs for side in SIDES)
    return " ".join(ids) if len(ids) <= MAX_FOLLOWED else ""


def _list_amounts(side: Side, size: int) -> str:
    """Return all amounts of a side, the least first; of more than MAX_NAMED the least and the most."""
    if len(side.ratios) > MAX_NAMED:
        return " up to ".join(_quote(one, size) for one in side.choose_ends())
    ordered = sorted(side.ratios, key=lambda one: one.ratio.center)
    return "; ".join(_quote(one, size) for one in ordered)


def _describe_basis(ratios: Sequence[JudgedRatio]) -> Row:
    """Return on which machines and how many repeats the ratios of one row rest."""
    basis = find_basis(ratios)
    return {"machines": basis.scope, "repeats": count_repeats(basis)}


def _name_comparison(group: PairGroup, analysis: Analysis) -> str:
    """Return the title of a group, with the settings in which its sides differ besides what is compared."""
    settings = find_differing_settings((pair.row for pair in group.pairs), analysis.collection.environments)
    return f"{group.title} ({name_differing_settings(settings)})" if settings else group.title


def _count_by_phase(group: PairGroup, side: str) -> str:
    """Return in how many comparisons a side is faster.

    As `2 of 4`; where the comparisons are of both phases `3 of 6 (training 1, inference 2)` or `1 of 6 (training)`.
    """
    family = group.family
    phases = [PHASE_NAMES[pair.row["phase"]] for pair in group.pairs]
    totals = Counter(phases)
    counts = Counter(
        phase for phase, pair in zip(phases, group.pairs, strict=True) if _name_faster(pair.judged, family) == side
    )
    in_all = f"{counts.total():,} of {totals.total():,}"
    if len(totals) == 1:
        return in_all
    by_phase = [f"{phase} {counts[phase]:,}" for phase in totals if counts[phase]]
    return f"{in_all} ({', '.join(by_phase) if len(by_phase) > 1 else next(iter(counts))})"


def _name_faster(one: JudgedRatio, family: Family) -> str:
    if not one.is_different:
        return NO_DIFFERENCE
    return family.below if one.ratio.center > 1 else family.above


def _name_other(side: str, family: Family) -> str:
    return family.below if side == family.above else family.above


def _quote(one: JudgedRatio, size: int) -> str:
    return f"{one.name}: {quote_amount(one.ratio, size)}"
