"""Say of each headline claim of the study on which the run has a measurement what the run says about it."""

from collections.abc import Iterable
from dataclasses import replace

from collector.analysis import Analysis
from collector.answers.answer import Said
from collector.answers.measured import find_short_names
from collector.answers.pairs import Pair, list_usable_pairs
from collector.answers.ratios import Family, JudgedRatio, say_times, shorten_all
from collector.claims.page import find_claim_results
from collector.claims.study import load_study
from collector.claims.verdicts import ClaimResult, GainClaim
from collector.comparisons import FRAMEWORKS, MODES, Comparison
from collector.machines import SIDES
from collector.ratio_verdicts import count_tested
from collector.ratio_words import describe_longer_share
from collector.statistics import invert_estimate

FIRST_WORDS = "A study that this tool checks ({source}) claims:"
"""Before the first claim, as a reader of the page has not heard of the study before."""
OTHER_WORDS = "The same study claims:"
MEASURED_WORDS = "Measured here"
VERDICT_WORDS = "Verdict:"
"""What stands before the verdict, which is named as the section of the claims and its heading name it."""


def find_claims(analysis: Analysis) -> list[Said]:
    """Return what the study's abstract claims, what the run measured of it and the verdict, in the study's order.

    A claim that is not tested at its own work is named too, with what the run's comparisons say of it: a reader who
    asks whether it holds here must not take silence for a yes.
    """
    results = analysis.derive(judge_claims)
    found = [result for result in results if result.is_headline and result.is_measured]
    opening = FIRST_WORDS.format(source=load_study().source)
    return [_say(result, analysis, OTHER_WORDS if place else opening) for place, result in enumerate(found)]


def judge_claims(analysis: Analysis) -> tuple[ClaimResult, ...]:
    """Return the results of all claims of the study; none where no pair of cells was measured that bears on any."""
    return find_claim_results(
        analysis.summary,
        forecast=analysis.forecast,
        num_tested={name: count_tested(pairs) for name, pairs in analysis.comparisons.items()},
        include_invalid=analysis.include_invalid,
    )


def name_claim_anchor(claim_id: str) -> str:
    """Return the id that a claim of the study has in the report."""
    return f"claim-{claim_id}"


def _say(result: ClaimResult, analysis: Analysis, opening: str) -> Said:
    anchor = name_claim_anchor(result.id)
    claimed = f"{opening} {result.statement}"
    verdict = f"{VERDICT_WORDS} {result.verdict}; {result.reason}."
    pairs = _list_judged(result.gain, analysis) if result.gain is not None else None
    if result.gain is None or pairs is None:
        return Said(text=f"{claimed}. {verdict}", anchor=anchor)
    judged, family = pairs
    measured = say_times(MEASURED_WORDS, shorten_all(judged, find_short_names(analysis)), family, anchor=anchor)
    wanted = f"{family.below} would take {describe_longer_share(result.gain.figure)}"
    return replace(measured, text=f"{claimed}, so {wanted}. {measured.text} {verdict}")


def _list_judged(claim: GainClaim, analysis: Analysis) -> tuple[list[JudgedRatio], Family] | None:
    """Return the comparisons that a claim is held against; None where none has an interval.

    They are those of the report's tables, with their verdicts and their intervals: a pair has one number.
    """
    for comparison in (FRAMEWORKS, MODES):
        pairs = analysis.comparisons[comparison.name]
        found = [pair for pair in list_usable_pairs(pairs, comparison) if _find_key(pair) in claim.pairs]
        if found:
            break
    else:
        return None
    subject, reference = (str(found[0].row[side]) for side in SIDES)
    family = Family(
        name=comparison.name, measure="time ratio", above=subject, below=reference, size=count_tested(pairs)
    )
    return list(_take_time_ratios(found, comparison)), family


def _find_key(pair: Pair) -> frozenset[tuple[str, str]]:
    return frozenset((str(pair.row[f"cell_id_{side}"]), str(pair.row[f"environment_id_{side}"])) for side in SIDES)


def _take_time_ratios(pairs: Iterable[Pair], comparison: Comparison) -> Iterable[JudgedRatio]:
    """Yield for each pair the time of the subject over that of the reference.

    A comparison whose measure is a speedup has the inverse of that.
    """
    for pair in pairs:
        is_time_ratio = comparison.measure == "time ratio"
        yield pair.judged if is_time_ratio else replace(pair.judged, ratio=invert_estimate(pair.judged.ratio))
