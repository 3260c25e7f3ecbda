"""What a run's comparisons leave open: ratios that show no difference, pairs not compared, and confounded ones."""

import math
from collections import Counter
from collections.abc import Sequence

import pandas as pd

from collector.analysis import Analysis
from collector.answers.answer import Said
from collector.answers.pairs import find_confounded, select_usable
from collector.answers.tenant_rules import count_confounded_rows
from collector.comparisons import COMPARISONS
from collector.facts import count_things
from collector.machines import SIDES
from collector.ratio_verdicts import NO_DIFFERENCE, count_tested
from collector.repeats_needed import (
    FEW_REPEATS,
    MAX_REPEATS,
    POWER_WORDS,
    RepeatVariances,
    count_repeats_to_show,
    measure_variance,
)
from collector.results.frames import list_rows
from collector.results.intervals import read_estimate
from collector.tables.comparisons import HEADINGS

ANCHOR = "comparisons"
MAX_REASONS = 3
ESTIMATE_COLUMNS = ("center_step_seconds", "log_standard_error", "degrees_of_freedom")


def find_no_difference(analysis: Analysis) -> list[Said]:
    """Return how many tested ratios show no difference, and how many repeats would show one."""
    found = [
        (comparison.name, select_usable(analysis.comparisons[comparison.name], comparison))
        for comparison in COMPARISONS
    ]
    texts, numbers, measured = [], [], []
    for name, rows in found:
        tested = rows[rows["p_value"].notna()]
        unshown = tested[tested["adjusted_verdict"] == NO_DIFFERENCE]
        if len(unshown):
            texts.append(f"{len(unshown):,} of {count_things(len(tested), 'ratio')} of {name}")
            # Tested together are all pairs with a p-value, not only those that a sentence may rest on.
            of_pairs = _count_repeats(unshown, count_tested(analysis.comparisons[name]), analysis.summary)
            numbers += [needed for needed, _ in of_pairs]
            measured += [own for _, own in of_pairs]
    if not texts:
        return []
    shows = "shows" if len(texts) == 1 and texts[0].startswith("1 of ") else "show"
    text = f"{', '.join(texts)} {shows} no difference, which does not say that sides are equal."
    return [Said(text=f"{text}{_describe_repeats(numbers, measured)}", anchor=ANCHOR)]


def _count_repeats(pairs: pd.DataFrame, num_tests: int, summary: pd.DataFrame) -> list[tuple[int | None, int]]:
    """Return for each pair how many repeats a side would show its ratio, and how many count on its lesser side.

    The former is None above MAX_REPEATS. Pairs of several machines a side are left out: there, machines are the
    observations, also where each repeat has its own.
    """
    read = ["cell_id", "environment_id", "num_counted", "num_machines", *ESTIMATE_COLUMNS]
    rows = {(row["cell_id"], row["environment_id"]): row for row in list_rows(summary[read])}
    numbers: list[tuple[int | None, int]] = []
    for pair in list_rows(pairs):
        sides = [rows[pair[f"cell_id_{side}"], pair[f"environment_id_{side}"]] for side in SIDES]
        if max(row["num_machines"] for row in sides) > 1:
            continue
        one, other = (measure_variance(read_estimate(row), row["num_counted"]) for row in sides)
        if one is not None and other is not None:
            variances = RepeatVariances(one=one, other=other)
            needed = count_repeats_to_show(math.log(pair["ratio"]), variances, num_tests)
            numbers.append((needed, min(row["num_counted"] for row in sides)))
    return numbers


def _describe_repeats(numbers: Sequence[int | None], measured: Sequence[int]) -> str:
    """Return how many repeats a side would show the ratios; `measured`: how many each rests on."""
    known = [number for number in numbers if number is not None]
    if not numbers:
        return ""
    if not known:
        return f" Ratios so near to 1 would take more than {MAX_REPEATS} repeats a side."
    least, most = min(known), max(known)
    span = str(least) if least == most else f"{least} to {most}"
    is_split = len(known) < len(numbers)
    of_them = f" for {len(known):,} of them, and more than {MAX_REPEATS} for others" if is_split else ""
    others = f", the others more than {MAX_REPEATS}" if is_split else ""
    which = f"{len(known):,} of them {'takes' if len(known) == 1 else 'take'}" if is_split else "each takes"
    if min(measured) <= FEW_REPEATS:
        return (
            f" To show a difference of its size, {which} at least about {span} repeats a side{others} (`repeats:` in "
            "the matrix)."
        )
    return (
        f" About {span} repeats a side{of_them} would show differences of this size in {POWER_WORDS}, as far as so few "
        "repeats tell (`repeats:` in the matrix)."
    )


def find_confounded_pairs(analysis: Analysis) -> list[Said]:
    """Say how many ratios also compare machines, because their sides ran on different ones."""
    found = [int(find_confounded(analysis.comparisons[one.name], one).sum()) for one in COMPARISONS]
    if not sum(found):
        return []
    captions = [HEADINGS[one.name].caption for one, number in zip(COMPARISONS, found, strict=True) if number]
    names = "; ".join(caption.partition(":")[0] for caption in captions)
    text = (
        f"{count_things(sum(found), 'ratio')} ({names}) of sides on different machines, one of them a single one: the "
        "difference of the machines is in the ratio and not in its interval, so no sentence here rests on it."
    )
    return [Said(text=text, anchor=ANCHOR)]


def find_not_compared(analysis: Analysis) -> list[Said]:
    """Return how many pairs have no ratio, with the reasons, and how many have a ratio without an interval."""
    pairs = pd.concat([analysis.comparisons[one.name][["ratio", "ratio_low", "verdict"]] for one in COMPARISONS])
    bare = pairs[pairs["ratio"].isna()]
    unknown = int((pairs["ratio"].notna() & pairs["ratio_low"].isna()).sum())
    if bare.empty and not unknown:
        return []
    said = []
    if len(bare):
        reasons = _count_reasons(bare["verdict"])
        has = "has" if len(bare) == 1 else "have"
        said.append(f"{len(bare):,} of {count_things(len(pairs), 'pair')} {has} no ratio: {reasons}.")
    if unknown:
        has = "has" if unknown == 1 else "have"
        said.append(f"{unknown:,} of {count_things(len(pairs), 'pair')} {has} a ratio without an interval.")
    return [Said(text=" ".join(said), anchor=ANCHOR)]


def find_tenants_not_compared(analysis: Analysis) -> list[Said]:
    """Return how many cells with tenants have no tested ratio to one alone, and how many show no difference."""
    cells = analysis.sharing[analysis.sharing["role"] == "cell"]
    untested = int(cells["p_value"].isna().sum())
    num_open = int((cells["adjusted_verdict"] == NO_DIFFERENCE).sum())
    confounded = count_confounded_rows(analysis)
    said = []
    if untested:
        reasons = cells.loc[cells["p_value"].isna(), "not_compared"].fillna("one repeat counts on a side")
        number, was = count_things(len(cells), "cell"), "was" if untested == 1 else "were"
        said.append(f"{untested:,} of {number} with tenants {was} not tested: {_count_reasons('as ' + reasons)}.")
    if num_open:
        tested = count_things(len(cells) - untested, "tested one")
        said.append(f"In {num_open:,} of {tested}, no difference between all tenants together and one alone is shown.")
    if confounded:
        was, them = ("was", "it") if confounded == 1 else ("were", "them")
        said.append(
            f"{confounded:,} of {count_things(len(cells) - untested, 'tested cell')} with tenants {was} not on the "
            f"machine of one alone: no sentence here rests on {them}, as the difference of machines is in the ratio."
        )
    return [Said(text=" ".join(said), anchor="sharing")] if said else []


def _count_reasons(verdicts: "pd.Series[str]") -> str:
    """Return the reasons with their numbers, without the verdicts of single cells in brackets."""
    reasons = Counter(verdict.partition(" (")[0] for verdict in verdicts).most_common()
    others = sum(number for _, number in reasons[MAX_REASONS:])
    named = [f"{number:,} {reason}" for reason, number in reasons[:MAX_REASONS]]
    return "; ".join([*named, *([f"{others:,} others"] if others else [])])
