"""What a run's comparisons leave open: ratios that show no difference, pairs not compared, and confounded ones."""

from collections import Counter

import pandas as pd

from collector.analysis import Analysis
from collector.answers.answer import Said
from collector.answers.pairs import find_confounded, select_usable
from collector.answers.tenant_rules import count_confounded_rows
from collector.comparisons import COMPARISONS
from collector.facts import count_things
from collector.ratio_verdicts import NO_DIFFERENCE
from collector.tables.comparisons import HEADINGS

ANCHOR = "comparisons"
MAX_REASONS = 3


def find_no_difference(analysis: Analysis) -> list[Said]:
    """Return how many tested ratios show no difference after Holm's adjustment."""
    tested = {
        comparison.name: rows.loc[rows["p_value"].notna(), "adjusted_verdict"]
        for comparison in COMPARISONS
        for rows in [select_usable(analysis.comparisons[comparison.name], comparison)]
    }
    counts = {name: (int((verdicts == NO_DIFFERENCE).sum()), len(verdicts)) for name, verdicts in tested.items()}
    texts = [
        f"{number:,} of {count_things(total, 'ratio')} of {name}" for name, (number, total) in counts.items() if number
    ]
    if not texts:
        return []
    text = f"No difference is shown in {', '.join(texts)}: that does not say that the sides are equal."
    return [Said(text=text, anchor=ANCHOR)]


def find_confounded_pairs(analysis: Analysis) -> list[Said]:
    """Return how many ratios hold the difference of two machines besides what is compared."""
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
