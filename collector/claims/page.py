"""Evaluate all of the study's claims, for the report and as a page in Markdown."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from collector.claims.evaluators import evaluate_claim
from collector.claims.measurements import count_flops, gather_measurements
from collector.claims.plausibility import WINOGRAD_SAVING
from collector.claims.study import load_study
from collector.claims.verdicts import ClaimContext, ClaimResult
from collector.facts import list_facts
from collector.files import replace_text
from collector.forecast.fit import Forecast, fit_forecast
from collector.forecast.gpu_table import load_gpu_table
from collector.results.collection import Collection
from collector.results.summary import summarize_collections

NOTHING_MEASURED = "nothing that answers it"
READING = (
    "By arithmetic alone a claim is *implausible on the stated hardware* where a time that it rests on implies a rate "
    "beyond the stated device's, that an algorithm with fewer multiplications could save; *impossible on the stated "
    f"hardware* where it implies more than {WINOGRAD_SAVING:g} times the device's rate, out of reach even if "
    "Winograd's F(2x2, 3x3) did all of the work (arXiv 1509.09308). Operations are counted as direct convolutions do "
    "them, a multiply-add as two. *Reproduced*: every 95 % interval lies inside the claim's band, on the stated "
    "hardware if the claim is about hardware, on any GPU if it is about a framework; *not reproduced*: one lies wholly "
    "outside; *not decided*: an interval is too wide to tell; *not tested here*: all else. A speedup on other hardware "
    "neither reproduces nor refutes the study's; it is shown as the nearest answer."
)
FRAMEWORK_REMARK = (
    "TensorFlow stands here for Keras 3 on TensorFlow, which computes a batch norm from several operations."
)
# Below it Student's quantile is 12.7: see "Can the interval be believed?" in docs/report.md.
ENOUGH_REPEATS = 3


def evaluate_claims(
    summary: pd.DataFrame, *, forecast: Forecast | None, include_invalid: bool = False
) -> tuple[ClaimResult, ...]:
    """Return a result for each claim of the study from the rows of `summarize_collections`, in the study's order."""
    return _evaluate_all(_gather_context(summary, forecast, include_invalid))


def find_claim_results(
    summary: pd.DataFrame, *, forecast: Forecast | None, include_invalid: bool = False
) -> tuple[ClaimResult, ...]:
    """Return the results of `evaluate_claims`; none where no pair of cells was measured that bears on any claim."""
    context = _gather_context(summary, forecast, include_invalid)
    return _evaluate_all(context) if context.measurements.is_there else ()


def introduce_study() -> str:
    """Return what study it is, on what it ran, and what stands for its TensorFlow here."""
    study = load_study()
    ran = f"{study.title} ({study.source}), on a {study.gpu.name} and a {study.cpu.name}: {study.protocol}."
    return f"{ran} {FRAMEWORK_REMARK}"


def write_claims_page(
    collections: Sequence[Collection], path: Path, *, include_invalid: bool = False, moderated: bool = False
) -> None:
    """Write what `collections`, runs of one machine or of several, say about each claim to `path`, in Markdown.

    GPU over CPU is compared across runs too. The directory of `path` is made if absent.
    """
    table = load_gpu_table()
    forecast = fit_forecast(table, year=int(table["year"].max()) + 1)
    summary = summarize_collections(collections, moderated=moderated)
    context = _gather_context(summary, forecast, include_invalid)
    replace_text(path, "\n".join(_write_page(collections, context)))


def _write_page(collections: Sequence[Collection], context: ClaimContext) -> Iterator[str]:
    results = _evaluate_all(context)
    yield "# What was measured about the study's claims\n"
    yield f"{escape_markdown(introduce_study())}\n"
    yield f"{READING}\n"
    yield from _warn_of_few_repeats(context.measurements.summary)
    yield "| claim | verdict |\n|---|---|"
    yield from (f"| {escape_markdown(result.statement)} | {result.verdict} |" for result in results)
    yield "\n## What was run\n"
    for collection in collections:
        facts = "; ".join(f"{name}: {text}" for name, text in list_facts(collection))
        yield f"- {escape_markdown(facts)}"
    for result in results:
        yield from _write_result(result)
    yield ""


def _warn_of_few_repeats(rows: pd.DataFrame) -> Iterator[str]:
    measured = rows[rows["num_ok"] > 0]
    few = int((measured["num_valid"] < ENOUGH_REPEATS).sum())
    if few:
        yield (
            f"{few} of the {len(measured)} cells of the study's models at fp32 have fewer than {ENOUGH_REPEATS} valid "
            "repeats: intervals from two repeats are wide, and from one there is none.\n"
        )


def _write_result(result: ClaimResult) -> Iterator[str]:
    yield f"\n## {escape_markdown(result.statement)}\n"
    yield f"**{result.verdict}**: {escape_markdown(result.reason)}."
    if result.arithmetic:
        yield "\nBy arithmetic, and elsewhere:\n"
        yield from (f"- {escape_markdown(line)}" for line in result.arithmetic)
    yield "\nMeasured in these runs:\n"
    yield from (f"- {escape_markdown(line)}" for line in result.measured or (NOTHING_MEASURED,))


def escape_markdown(text: str) -> str:
    """Return one line of `text` in which nothing is read as markup."""
    escaped = "".join(f"\\{character}" if character in "\\`*_[]<>|#" else character for character in text)
    return " ".join(escaped.split())


def _gather_context(summary: pd.DataFrame, forecast: Forecast | None, include_invalid: bool) -> ClaimContext:
    study = load_study()
    measurements = gather_measurements(summary, study, include_invalid=include_invalid)
    return ClaimContext(study=study, counted=count_flops(summary), measurements=measurements, forecast=forecast)


def _evaluate_all(context: ClaimContext) -> tuple[ClaimResult, ...]:
    return tuple(evaluate_claim(claim, context) for claim in context.study.claims)
