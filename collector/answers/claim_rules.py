"""Say of each headline claim of the study on which the run has a measurement what the run says about it."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from collector.analysis import Analysis
from collector.answers.answer import Said
from collector.answers.measured import find_short_names
from collector.answers.pairs import Pair, list_usable_pairs
from collector.answers.ratios import Family, JudgedRatio, say_times, shorten_all
from collector.claims.page import find_claim_results
from collector.claims.verdicts import ClaimResult, GainClaim
from collector.comparisons import FRAMEWORKS, MODES, Comparison
from collector.facts import count_things
from collector.machines import SIDES
from collector.ratio_verdicts import count_tested
from collector.ratio_words import describe_longer_share
from collector.statistics import invert_estimate

VERDICT_WORDS = "Verdict on the claim:"
"""What stands before the verdict, which is named as the section of the claims and its heading name it."""
NOT_SHOWN = "The one comparison here does not show that"


def find_claims(analysis: Analysis) -> list[Said]:
    """Return a few sentences on each claim of the study's abstract of which the run has a ratio, in the study's order.

    A claim that is not tested at its own work is named too, with what the run's comparisons say of it: a reader who
    asks whether it holds here must not take silence for a yes.
    """
    results = analysis.derive(judge_claims)
    return [_say(result, analysis) for result in results if result.is_headline and result.is_measured]


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


def _say(result: ClaimResult, analysis: Analysis) -> Said:
    anchor = name_claim_anchor(result.id)
    said = _say_gain(result, result.gain, analysis) if result.gain is not None else None
    verdict = f"{VERDICT_WORDS} {result.verdict}; {result.reason}."
    if said is None:
        return Said(text=f"{result.statement}, says the study. {verdict}", anchor=anchor)
    return replace(said, text=f"{said.text} {verdict}", anchor=anchor)


def _say_gain(result: ClaimResult, claim: GainClaim, analysis: Analysis) -> Said | None:
    """Return in how many comparisons a claim's amount is shown, and what they show; None where none has an interval.

    They are those of the report's tables, with their verdicts and their intervals: a pair has one number.
    """
    for comparison in (FRAMEWORKS, MODES):
        pairs = analysis.comparisons[comparison.name]
        found = [pair for pair in list_usable_pairs(pairs, comparison) if _find_key(pair) in claim.pairs]
        if found:
            break
    else:
        return None
    judged = list(_take_time_ratios(found, comparison))
    subject, reference = (str(found[0].row[side]) for side in SIDES)
    family = Family(
        name=comparison.name, measure="time ratio", above=subject, below=reference, size=count_tested(pairs)
    )
    wanted = f"{reference} would take {describe_longer_share(claim.figure)}"
    opening = f"{result.statement}, says the study: {wanted}. {_count_shown(judged, claim)}"
    return say_times(opening, shorten_all(judged, find_short_names(analysis)), family, anchor="")


def _find_key(pair: Pair) -> frozenset[tuple[str, str]]:
    return frozenset((str(pair.row[f"cell_id_{side}"]), str(pair.row[f"environment_id_{side}"])) for side in SIDES)


def _take_time_ratios(pairs: Iterable[Pair], comparison: Comparison) -> Iterable[JudgedRatio]:
    """Yield for each pair the time of the subject over that of the reference.

    A comparison whose measure is a speedup has the inverse of that.
    """
    for pair in pairs:
        is_time_ratio = comparison.measure == "time ratio"
        yield pair.judged if is_time_ratio else replace(pair.judged, ratio=invert_estimate(pair.judged.ratio))


def _count_shown(judged: Sequence[JudgedRatio], claim: GainClaim) -> str:
    """Return in how many comparisons a difference is shown whose amount is about the claim's, or more."""
    low, high = claim.band
    gains = [1 - one.ratio.center for one in judged if one.is_different]
    about, more = sum(low <= gain <= high for gain in gains), sum(gain > high for gain in gains)
    if not about and not more:
        return f"None of {len(judged):,} comparisons here shows that" if len(judged) > 1 else NOT_SHOWN
    of_all = f" of {count_things(len(judged), 'comparison')} here"
    counts = [(about, "about that"), (more, "more")]
    texts = [f"{number:,}{{}} {'shows' if number == 1 else 'show'} {words}" for number, words in counts if number]
    return " and ".join([texts[0].format(of_all), *(text.format("") for text in texts[1:])])
