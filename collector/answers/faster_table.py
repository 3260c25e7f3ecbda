"""Tabulate over all work which side of each comparison is faster: a row for each ratio, or for the ends of many."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

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
from collector.answers.pairs import Pair
from collector.answers.planned import describe_idle_modes
from collector.answers.planning_rules import find_libraries
from collector.answers.ratios import Family, JudgedRatio, find_basis, find_sides
from collector.comparisons import DEVICES, FP32, FRAMEWORKS, PRECISIONS, WITHOUT_TF32
from collector.facts import list_some
from collector.labels import PHASE_NAMES
from collector.machines import SIDES
from collector.product_rates import describe_widest_drift, list_drifted
from collector.ratio_verdicts import NO_DIFFERENCE
from collector.ratio_words import describe_longer, quote_ends
from collector.results.frames import Row
from collector.side_settings import find_differing_settings, name_differing_settings
from collector.statistics import Estimate, invert_estimate
from collector.tables.columns import text_column
from collector.tables.comparisons import INTERVAL_TITLE
from collector.tables.table import Column, Table, make_table

CAPTION = "Over all work: which side is faster, and how much longer the other takes"
ANCHOR = name_anchor(CAPTION)
MAX_GROUPS = 16
"""Comparisons of two sides that the table has; the tables of Comparisons have every pair.

With MAX_ROWS each, the page has the table as it is (`collector.report.table_html.MAX_STATIC_ROWS`)."""
MIN_PAIRS = 2
"""Of two frameworks: a single pair has its row in the table of the fastest."""
MAX_ROWS = 6
"""Ratios of a comparison that have a row each; of more there are the ends of each side."""
MAX_NAMED = 3
"""Works that a row without a difference names."""
MAX_FOLLOWED = 200
"""Cells of a row that follows the page's filter; one of more stays. Ids took a third of a page of 10,000 cells."""


def make_faster_table(analysis: Analysis) -> Table | None:
    """Return the rows of each two frameworks, devices, modes and precisions; None where no difference was shown."""
    groups = list_groups(analysis)
    if not groups:
        return None
    shown = groups[:MAX_GROUPS]
    rows = pd.DataFrame([row for group in shown for row in _describe_group(group, analysis)])
    usual_scope = str(rows["machines"].value_counts().index[0])
    rows["beware"] = _note_doubts(rows, usual_scope)
    if rows["repeats"].nunique() == 1:  # the note on all findings says it once
        rows["repeats"] = ""
    idle = describe_idle_modes(analysis) if any(group.comparison.field == "mode" for group in groups) else ""
    if idle:
        nothing = dict.fromkeys(rows.columns, "") | {"compared": idle, "side": "not planned"}
        rows = pd.concat([rows, pd.DataFrame([nothing])], ignore_index=True)
    columns = [
        text_column("compared", "compared"),
        replace(text_column("work", "work"), is_whole=all(len(group.pairs) <= MAX_ROWS for group in shown)),
        text_column("faster", "side"),
        replace(text_column("the other takes", "longer"), is_whole=True),
        Column(title=INTERVAL_TITLE, sources=("interval",), format=str, align="right"),
        text_column("repeats: faster and other", "repeats", is_optional=True),
        text_column("beware", "beware", is_optional=True),
    ]
    table = make_table(CAPTION, columns, rows, remark=_make_remark(groups, analysis))
    return replace(table, alike=f"on {usual_scope}{_name_precision(shown)} unless a row says otherwise")


def list_groups(analysis: Analysis) -> list[PairGroup]:
    """Return the groups of all comparisons of times in the order of their rules, without what the fastest alone say."""
    lists = (list_framework_groups, list_device_groups, list_mode_groups, list_precision_groups)
    groups = [group for find in lists for group in analysis.derive(find)]
    return [group for group in groups if len(group.pairs) >= MIN_PAIRS or group.comparison is not FRAMEWORKS]


def _name_precision(groups: Sequence[PairGroup]) -> str:
    """Return `, fp32 without TF32`, which all ratios but those of precisions are in; empty where these are several."""
    others = [group for group in groups if group.comparison is not PRECISIONS]
    found = {str(pair.row["precision"]) for group in others for pair in group.pairs}
    (precision,) = found if len(found) == 1 else ("",)
    return f", {precision} {WITHOUT_TF32}" if precision == FP32 else f", {precision}" if precision else ""


def _note_doubts(rows: pd.DataFrame, usual_scope: str) -> list[str]:
    """Return the doubt of each row, after its machines where they are not the usual ones."""
    scopes = [f"on {scope}" if scope != usual_scope else "" for scope in rows["machines"]]
    return ["; ".join(filter(None, texts)) for texts in zip(scopes, rows["doubt"], strict=True)]


def _make_remark(groups: Sequence[PairGroup], analysis: Analysis) -> str:
    """Return that frameworks differ in more than their names, and how many comparisons the table leaves out."""
    texts = []
    if any(group.comparison is FRAMEWORKS for group in groups[:MAX_GROUPS]) and find_libraries(analysis):
        texts.append("Frameworks differ, or may, in libraries and settings, too.")
    if len(groups) > MAX_GROUPS:
        texts.append(f"The first {MAX_GROUPS} of {len(groups):,} comparisons of two sides.")
    return " ".join(texts)


def _describe_group(group: PairGroup, analysis: Analysis) -> Iterator[Row]:
    """Yield a row for each ratio, those in which one side is faster together; of many ratios the ends of each side."""
    shared = {"compared": group.title, "doubt": _find_doubt(group, analysis)}
    ratios = group.name_ratios(analysis)
    describe = _describe_each if len(ratios) <= MAX_ROWS else _describe_ends
    yield from (shared | row for row in describe(group, ratios))


def _find_doubt(group: PairGroup, analysis: Analysis) -> str:
    """Return what else than the sides may make the ratios of a group: settings, or a host whose speed changed."""
    collection = analysis.collection
    settings = find_differing_settings((pair.row for pair in group.pairs), collection.environments)
    drifted = list(list_drifted(collection.host_products)) if group.comparison is DEVICES else []
    host = f"the host's speed changed by {describe_widest_drift(drifted)}" if drifted else ""
    return "; ".join(filter(None, [name_differing_settings(settings), host]))


def _describe_each(group: PairGroup, ratios: Sequence[JudgedRatio]) -> list[Row]:
    """Return a row for each ratio: those of the side that is faster more often first, of no difference last."""
    family = group.family
    faster = [_name_faster(one, family) for one in ratios]
    places = {side: place for place, (side, _) in enumerate(Counter(faster).most_common())}
    places[NO_DIFFERENCE] = len(faster)
    rows = [
        _describe_ratio(one, _orient(one, family), group)
        | {"side": side, "cell_id": _list_ids([pair]), "repeats": _count_repeats(pair, side)}
        for pair, one, side in zip(group.pairs, ratios, faster, strict=True)
    ]
    return sorted(rows, key=lambda row: places[row["side"]])


def _describe_ends(group: PairGroup, ratios: Sequence[JudgedRatio]) -> Iterator[Row]:
    """Yield the least and the most of the ratios of each side, then a row for those without a difference."""
    ids = {"cell_id": _list_ids(group.pairs)}
    for side in find_sides(ratios, group.family):
        faster = _name_other(side.name, group.family)
        shared = ids | {"side": f"{faster} ({_count_by_phase(group, faster)})"}
        ends = side.choose_ends()
        words = ("least: ", "most: ") if len(ends) > 1 else ("",)
        for word, one in zip(words, ends, strict=True):
            yield _describe_ratio(one, (side.name, one.ratio), group) | shared | {"work": f"{word}{one.name}"}
    unshown = [one for one in ratios if not one.is_different]
    if unshown:
        yield (
            ids
            | {
                "work": "; ".join(list_some([one.name for one in unshown], MAX_NAMED)),
                "side": f"{NO_DIFFERENCE} ({_count_by_phase(group, NO_DIFFERENCE)})",
                "longer": "",
                "interval": "",
            }
            | _describe_basis(unshown)
        )


def _count_repeats(pair: Pair, faster: str) -> str:
    """Return `3 and 2`, the repeats of the faster side and of the other; `3` if both have as many.

    Without a difference those of the side named first in what is compared come first.
    """
    counts = [str(pair.row[f"num_counted_{side}"]) for side in SIDES]
    if faster == str(pair.row["reference"]):
        counts.reverse()
    return " and ".join(dict.fromkeys(counts))


def _orient(one: JudgedRatio, family: Family) -> tuple[str, Estimate]:
    """Return the side that takes longer, and its time over that of the other."""
    if one.ratio.center >= 1:
        return family.above, one.ratio
    return family.below, invert_estimate(one.ratio)


def _describe_ratio(one: JudgedRatio, slower_and_ratio: tuple[str, Estimate], group: PairGroup) -> Row:
    """Return the work of a ratio, by how much the slower side takes longer, and what that rests on.

    Without a difference the side that was measured to take longer is named: the interval is that of its time.
    """
    slower, ratio = slower_and_ratio
    return {
        "work": one.name,
        "longer": f"{slower}: {describe_longer(ratio)}" if ratio.center > 1 else "measured alike",
        "interval": quote_ends(ratio, group.size),
    } | _describe_basis([one])


def _list_ids(pairs: Sequence[Pair]) -> str:
    """Return the ids of the cells of pairs, with blanks between them; none of more than MAX_FOLLOWED."""
    ids = dict.fromkeys(str(pair.row[f"cell_id_{side}"]) for pair in pairs for side in SIDES)
    return " ".join(ids) if len(ids) <= MAX_FOLLOWED else ""


def _describe_basis(ratios: Sequence[JudgedRatio]) -> Row:
    """Return on which machines and how many repeats the ratios of one row rest."""
    basis = find_basis(ratios)
    return {"machines": basis.scope, "repeats": count_repeats(basis)}


def _count_by_phase(group: PairGroup, side: str) -> str:
    """Return in how many comparisons a side is faster.

    As `2 of 4`; where the comparisons are of both phases `3 of 6: training 1, inference 2` or `1 of 6: training`.
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
    return f"{in_all}: {', '.join(by_phase) if len(by_phase) > 1 else next(iter(counts))}"


def _name_faster(one: JudgedRatio, family: Family) -> str:
    if not one.is_different:
        return NO_DIFFERENCE
    return family.below if one.ratio.center > 1 else family.above


def _name_other(side: str, family: Family) -> str:
    return family.below if side == family.above else family.above
