"""Evaluate all of the study's claims, for the report and as a page in Markdown."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from collector.claims.evaluators import evaluate_claim
from collector.claims.measurements import gather_measurements
from collector.claims.plausibility import LARGER_TILE_SAVING, WINOGRAD_SAVING
from collector.claims.stated_times import count_flops
from collector.claims.study import load_study
from collector.claims.verdicts import ClaimContext, ClaimResult
from collector.facts import count_things, list_facts
from collector.files import replace_text
from collector.results.collection import Collection
from collector.results.intervals import MODERATED, MODERATED_WARNING
from collector.results.summary import summarize_collections
from collector.visible_text import replace_steering

NOTHING_MEASURED = "nothing that answers it"
READING = (
    "By arithmetic alone, where a time that the claim rests on implies, under every reading of its work, a rate beyond "
    "the stated device's: *implausible without Winograd*, if the time can be reached with the "
    f"{WINOGRAD_SAVING:g} times fewer multiplications that Winograd's F(2x2, 3x3) needs in 3x3 convolutions of stride "
    f"1; *implausible on the stated hardware*, if only with the {LARGER_TILE_SAVING:g} times fewer of F(4x4, 3x3); "
    "*impossible on the stated hardware*, if not even so (arXiv 1509.09308; transforms are not counted). Operations "
    "are counted as direct convolutions do them, a multiply-add as two. *Peak rates only*: the figure is the ratio of "
    "two data sheets. Measured, at the claim's own configuration, on the stated hardware if it is about hardware, on "
    "any GPU if it is about a framework: *reproduced*, the 95 % interval lies inside the claim's band; *not "
    "reproduced*, it lies wholly outside; *not decided*, it is too wide to tell. *Not tested here*: all else. What was "
    "measured at other batches, on other hardware or of other models is listed and decides nothing. After a semicolon "
    "stands what arithmetic found beside the verdict. Each interval is that of its ratio alone; those of a report hold "
    "for all ratios of a table together, and are wider."
)
FRAMEWORK_REMARK = (
    "TensorFlow stands here for Keras 3 on TensorFlow, which computes a batch norm from several operations."
)
# Below it Student's quantile is 12.7: see "Can the interval be believed?" in docs/report.md.
ENOUGH_REPEATS = 3


def evaluate_claims(summary: pd.DataFrame, *, include_invalid: bool = False) -> tuple[ClaimResult, ...]:
    """Return a result for each claim of the study from the rows of `summarize_collections`, in the study's order."""
    return _evaluate_all(_gather_context(summary, include_invalid))


def find_claim_results(
    summary: pd.DataFrame,
    *,
    include_invalid: bool = False,
    num_tested: Mapping[str, int] | None = None,
) -> tuple[ClaimResult, ...]:
    """Return the results of `evaluate_claims`; none where no pair of cells was measured that bears on any claim.

    `num_tested`: how many ratios each of COMPARISONS tests in the run, by its name.
    """
    context = _gather_context(summary, include_invalid, num_tested)
    return _evaluate_all(context) if context.measurements.is_there else ()


def introduce_study() -> str:
    """Return what study it is, who reports it, on what it ran, and what stands for its TensorFlow here."""
    study = load_study()
    ran = f"{study.title} ({study.source}), on a {study.gpu.name} and a {study.cpu.name}: {study.protocol}."
    return f"{ran} {study.provenance}. {FRAMEWORK_REMARK}"


def describe_verdicts(results: Sequence[ClaimResult]) -> str:
    """Return how many claims have which verdict, and who reports them, for the terminal."""
    return f"{count_verdicts(results)}. {load_study().provenance}."


def count_verdicts(results: Sequence[ClaimResult]) -> str:
    """Return how many claims have which verdict: `20 claims: 18 not tested here, 2 peak rates only`."""
    counts = Counter(result.verdict for result in results).most_common()
    return f"{count_things(len(results), 'claim')}: {', '.join(f'{count:,} {verdict}' for verdict, count in counts)}"


def write_claims_page(
    collections: Sequence[Collection], path: Path, *, include_invalid: bool = False, moderated: bool = False
) -> tuple[ClaimResult, ...]:
    """Write what `collections`, runs of one machine or of several, say about each claim to `path`, in Markdown.

    The directory of `path` is made if absent. Returns what is written.
    """
    text, results = make_claims_page(collections, include_invalid=include_invalid, moderated=moderated)
    replace_text(path, text)
    return results


def make_claims_page(
    collections: Sequence[Collection], *, include_invalid: bool = False, moderated: bool = False
) -> tuple[str, tuple[ClaimResult, ...]]:
    """Return what `collections` say about each claim, as a page in Markdown and as results.

    GPU over CPU is compared across runs too.
    """
    summary = summarize_collections(collections, moderated=moderated)
    context = _gather_context(summary, include_invalid)
    results = _evaluate_all(context)
    return "\n".join(_write_page(collections, context, results)), results


def _write_page(
    collections: Sequence[Collection], context: ClaimContext, results: Sequence[ClaimResult]
) -> Iterator[str]:
    yield "# What was measured about the study's claims\n"
    yield f"{escape_markdown(introduce_study())}\n"
    yield f"{READING}\n"
    yield from _warn_of_few_repeats(context.measurements.summary)
    yield from _warn_of_moderation(context.measurements.summary)
    yield "| claim | of | verdict |\n|---|---|---|"
    yield from (_write_row(result) for result in results)
    yield "\n## What was run\n"
    for collection in collections:
        facts = "; ".join(f"{name}: {text}" for name, text in list_facts(collection))
        yield f"- {escape_markdown(facts)}"
    for result in results:
        yield from _write_result(result)
    yield ""


def _warn_of_few_repeats(rows: pd.DataFrame) -> Iterator[str]:
    measured = rows[rows["num_ok"] > 0]
    few = int((measured["num_counted"] < ENOUGH_REPEATS).sum())
    if few:
        yield (
            f"{few} of the {len(measured)} cells of the study's models at fp32 have fewer than {ENOUGH_REPEATS} "
            "repeats that count: intervals from two repeats are wide, and from one there is none.\n"
        )


def _warn_of_moderation(rows: pd.DataFrame) -> Iterator[str]:
    if rows["interval_method"].fillna("").str.startswith(MODERATED).any():
        yield f"{MODERATED_WARNING}\n"


def _write_row(result: ClaimResult) -> str:
    names = [finding.title for finding in result.findings]
    verdict = "; ".join([result.verdict, *names])
    return f"| {escape_markdown(result.statement)} | {escape_markdown(result.provenance)} | {verdict} |"


def _write_result(result: ClaimResult) -> Iterator[str]:
    yield f"\n## {escape_markdown(result.statement)}\n"
    if result.quote:
        yield f"> {escape_markdown(result.quote)}\n"
    yield f"**{result.verdict}**, of {escape_markdown(result.provenance)}: {escape_markdown(result.full_reason)}."
    if result.extremes:
        yield f"\n{escape_markdown(result.extremes)}."
    for finding in result.findings:
        yield f"\nFinding, **{finding.title}**: {escape_markdown(finding.reason)}."
    if result.arithmetic:
        yield "\nBy arithmetic, and elsewhere:\n"
        yield from (f"- {escape_markdown(line)}" for line in result.arithmetic)
    yield "\nMeasured in these runs:\n"
    yield from (f"- {escape_markdown(line)}" for line in result.measured or (NOTHING_MEASURED,))


def escape_markdown(text: str) -> str:
    """Return one line of `text` in which nothing is read as markup, nor steers a terminal."""
    escaped = "".join(f"\\{character}" if character in "\\`*_[]<>|#" else character for character in text)
    return replace_steering(" ".join(escaped.split()))


def _gather_context(
    summary: pd.DataFrame,
    include_invalid: bool,
    num_tested: Mapping[str, int] | None = None,
) -> ClaimContext:
    study = load_study()
    measurements = gather_measurements(summary, study, include_invalid=include_invalid, num_tested=num_tested)
    return ClaimContext(study=study, counted=count_flops(summary), measurements=measurements)


def _evaluate_all(context: ClaimContext) -> tuple[ClaimResult, ...]:
    return tuple(evaluate_claim(claim, context) for claim in context.study.claims)
