"""Runs come in; an answer to each of the study's claims goes out, for the report and as a page in Markdown."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from collector.collection import Collection
from collector.evidence import count_flops, gather_evidence
from collector.facts import list_facts
from collector.forecast import Forecast, fit_forecast
from collector.gpu_table import load_gpu_table
from collector.judges import Answer, Case, judge_claim
from collector.study import load_study
from collector.tables import summarize_collections

NOTHING_MEASURED = "nothing that answers it"
READING = (
    "A claim is *impossible on the stated hardware* where a time that it rests on is shorter than the stated device "
    "can do the work in; *reproduced* or *not reproduced* where it was measured, on the stated hardware if it is about "
    "hardware, on any GPU if it is about a framework; *not tested here* else. A speedup on other hardware neither "
    "reproduces nor refutes the study's. Operations are counted as written, a multiply-add as two."
)


def answer_claims(
    summary: pd.DataFrame, *, forecast: Forecast | None, include_invalid: bool = False
) -> tuple[Answer, ...]:
    """Return an answer to each claim of the study from the rows of `summarize_collections`, in the study's order."""
    return _judge_all(_make_case(summary, forecast, include_invalid))


def find_answers(
    summary: pd.DataFrame, *, forecast: Forecast | None, include_invalid: bool = False
) -> tuple[Answer, ...]:
    """Return the answers of `answer_claims`; none where no pair of cells was measured that answers any claim."""
    case = _make_case(summary, forecast, include_invalid)
    return _judge_all(case) if case.evidence.is_there else ()


def introduce_study() -> str:
    """Return in a sentence what study it is, and on what it ran."""
    study = load_study()
    return f"{study.title} ({study.source}), on a {study.gpu.name} and a {study.cpu.name}: {study.protocol}."


def write_claims_page(collections: Sequence[Collection], path: Path, *, include_invalid: bool = False) -> None:
    """Write what `collections`, runs of one machine or of several, say about each claim to `path`, in Markdown.

    GPU over CPU is compared across runs too. The directory of `path` is made if absent.
    """
    table = load_gpu_table()
    forecast = fit_forecast(table, year=int(table["year"].max()) + 1)
    summary = summarize_collections(collections)
    answers = answer_claims(summary, forecast=forecast, include_invalid=include_invalid)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(_write_page(collections, answers)), encoding="utf-8")


def _write_page(collections: Sequence[Collection], answers: Sequence[Answer]) -> Iterator[str]:
    yield "# What was measured about the study's claims\n"
    yield f"{escape_markdown(introduce_study())}\n"
    yield f"{READING}\n"
    yield "| claim | verdict |\n|---|---|"
    yield from (f"| {escape_markdown(answer.statement)} | {answer.verdict} |" for answer in answers)
    yield "\n## What was run\n"
    for collection in collections:
        facts = "; ".join(f"{name}: {text}" for name, text in list_facts(collection))
        yield f"- {escape_markdown(facts)}"
    for answer in answers:
        yield from _write_answer(answer)
    yield ""


def _write_answer(answer: Answer) -> Iterator[str]:
    yield f"\n## {escape_markdown(answer.statement)}\n"
    yield f"**{answer.verdict}**: {escape_markdown(answer.reason)}."
    if answer.arithmetic:
        yield "\nBy arithmetic, and elsewhere:\n"
        yield from (f"- {escape_markdown(line)}" for line in answer.arithmetic)
    yield "\nMeasured in these runs:\n"
    yield from (f"- {escape_markdown(line)}" for line in answer.measured or (NOTHING_MEASURED,))


def escape_markdown(text: str) -> str:
    """Return one line of `text` in which nothing is read as markup."""
    escaped = "".join(f"\\{character}" if character in "\\`*_[]<>|#" else character for character in text)
    return " ".join(escaped.split())


def _make_case(summary: pd.DataFrame, forecast: Forecast | None, include_invalid: bool) -> Case:
    study = load_study()
    evidence = gather_evidence(summary, study, include_invalid=include_invalid)
    return Case(study=study, counted=count_flops(summary), evidence=evidence, forecast=forecast)


def _judge_all(case: Case) -> tuple[Answer, ...]:
    return tuple(judge_claim(claim, case) for claim in case.study.claims)
