"""Count what a run does not say: repeats that did not end ok or do not count, cells without figures, pairs without a
ratio; and the repeats that count although their steps were uneven."""

from collections.abc import Iterable

import pandas as pd

from collector.analysis import Analysis
from collector.facts import count_reasons, count_things, count_values, state_resumption
from collector.results.summary import NO, YES, judge_counting

RETRIED = "was tried more than once; figures come from its earliest attempt that ended ok and undisturbed"
NOT_COMPARED = "not compared: "
"""How the verdict of a pair begins that has no ratio."""


def list_unknowns(analysis: Analysis) -> list[str]:
    """Return a sentence for each kind of thing that is not known of the run; none where everything is."""
    results, summary, run = analysis.collection.results, analysis.summary, analysis.collection.run
    is_ok, counting = results["status"] == "ok", judge_counting(results)
    is_out = is_ok & (counting == NO)
    is_uneven = (counting == YES) & (results["verdict"] != "valid")
    num_retried = int((results["num_attempts"] > 1).sum())
    unsound = summary[(summary["num_ok"] > 0) & (summary["num_sound"] == 0)]
    kinds = [
        (int((~is_ok).sum()), "planned repeat", "did not end ok", _count_values(results.loc[~is_ok, "status"])),
        (
            int(is_out.sum()),
            "repeat",
            "ended ok and does not count, as its conditions were at fault",
            _count_values(results.loc[is_out, "verdict"]),
        ),
        (
            int(is_uneven.sum()),
            "repeat",
            "counts although its steps were uneven",
            _count_values(results.loc[is_uneven, "verdict"]),
        ),
        (num_retried, "repeat", RETRIED, ""),
        (int((summary["num_ok"] == 0).sum()), "cell", "has no figure: none of its repeats ended ok", ""),
        (len(unsound), "cell", "has figures only of repeats whose conditions were at fault", ""),
        (len(run.left_out), "cell", "of the matrix was left out: it cannot run here", ""),
        (len(analysis.collection.skipped), "document", "in the store did not count", ""),
    ]
    counted = [
        f"{count_things(count, thing)} {_inflect(words, count)}{details}."
        for count, thing, words, details in kinds
        if count
    ]
    return [*counted, *filter(None, [state_resumption(analysis.collection)])]


def count_not_compared(pairs: Iterable[pd.DataFrame]) -> str:
    """Return in a sentence how many pairs of the comparisons have no ratio and why; empty where all have one."""
    frames = list(pairs)
    verdicts = pd.concat([frame["verdict"] for frame in frames]) if frames else pd.Series(dtype="str")
    reasons = verdicts[verdicts.str.startswith(NOT_COMPARED)].str.removeprefix(NOT_COMPARED)
    return count_reasons(reasons, sum(map(len, frames)), "not compared")


def _count_values(values: pd.Series) -> str:
    return f" ({count_values(values)})"


def _inflect(words: str, count: int) -> str:
    """Return the words, which speak of one thing, with their verbs and pronouns in the plural where count is not 1."""
    if count == 1:
        return words
    plural = {
        "is": "are",
        "has": "have",
        "was": "were",
        "does": "do",
        "counts": "count",
        "it cannot": "they cannot",
        "its": "their",
    }
    for singular, several in plural.items():
        words = f" {words} ".replace(f" {singular} ", f" {several} ").strip()
    return words
