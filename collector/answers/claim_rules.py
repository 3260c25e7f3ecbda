"""Say of each headline claim of the study on which the run has a measurement what the run says about it."""

from collections.abc import Iterable
from dataclasses import replace

from collector.analysis import Analysis
from collector.answers.answer import Figures, Said
from collector.answers.certainty import begin_sentence
from collector.answers.measured import find_short_names
from collector.answers.pairs import Pair, list_usable_pairs
from collector.answers.ratios import Family, JudgedRatio, find_basis, shorten_all
from collector.claims.page import find_claim_results
from collector.claims.study import load_study
from collector.claims.verdicts import ClaimResult, GainClaim
from collector.comparisons import FRAMEWORKS, MODES, Comparison
from collector.machines import SIDES
from collector.ratio_verdicts import NO_DIFFERENCE, count_tested
from collector.ratio_words import format_percent, format_percents
from collector.statistics import invert_estimate

MAX_PAIRS = 4
"""Comparisons that a claim's sentence has; the study's own models are as many."""


def find_claims(analysis: Analysis) -> list[Said]:
    """Return what the study's abstract claims, what the run measured of it and the verdict.

    In the study's order, those that are not tested last.

    A claim that is not tested at its own work is named too, with what the run's comparisons say of it: a reader who
    asks whether it holds here must not take silence for a yes.
    """
    results = analysis.derive(judge_claims)
    found = [result for result in results if result.is_headline and result.is_measured]
    found.sort(key=lambda result: result.verdict == "not tested here")
    # A reader of the page has not heard of the study before its first claim.
    source = f"a study that this tool checks, {load_study().source}"
    return [_say(result, analysis, "the same study" if place else source) for place, result in enumerate(found)]


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


def _say(result: ClaimResult, analysis: Analysis, source: str) -> Said:
    """Return the verdict first, then the claim and what was measured, in the claim's own direction."""
    anchor = name_claim_anchor(result.id)
    verdict = f"{result.verdict[:1].upper()}{result.verdict[1:]}: {result.statement} ({source})."
    found = _list_judged(result.gain, analysis) if result.gain is not None else None
    if result.gain is None or found is None:
        return Said(text=f"{verdict} {begin_sentence(result.reason)}", anchor=anchor)
    judged, family = found
    named = shorten_all(judged, find_short_names(analysis))
    measured = [_say_difference(one, family.size) for one in named[:MAX_PAIRS]]
    measured += [f"{len(named) - MAX_PAIRS:,} more"] if len(named) > MAX_PAIRS else []
    # A mean that decides may be of another GPU than the study's, which a claim about frameworks does not name.
    where = " on GPUs of this run, as the claim names none" if result.gain.mean else ""
    texts = [verdict, f"Measured{where}, {family.above} against {family.below}: {'; '.join(measured)}"]
    closing = f"; {result.gain.mean}." if result.gain.mean else f". {begin_sentence(result.reason)}"
    return Said(
        text=f"{' '.join(texts)}{closing}",
        anchor=anchor,
        basis=find_basis(judged),
        figures=Figures(name=f"ratios of {family.name}", number=family.size),
    )


def _say_difference(one: JudgedRatio, size: int) -> str:
    """Return `conv6 infer 10.5 % lower (8.7 to 12.1)` of a ratio of times, or that no difference is shown."""
    ends = one.ratio.find_joint_interval(size)
    if not one.is_different or ends is None:
        return f"{one.name} {NO_DIFFERENCE}"
    is_higher = one.ratio.center > 1
    shares = [ratio - 1 if is_higher else 1 - ratio for ratio in (one.ratio.center, *ends)]
    low, high = format_percents(*sorted(shares[1:]))
    return f"{one.name} {format_percent(shares[0])} % {'higher' if is_higher else 'lower'} ({low} to {high})"


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
