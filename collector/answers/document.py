"""The document that `benchmatrix answers --json` prints; `benchmatrix schema answers` prints its JSON Schema."""

from collections.abc import Iterable
from typing import Any, Literal

from bench.schema import Document
from collector.answers.answer import Answer, Kind


class AnswerDocument(Document):
    """A sentence that the data of a run carry."""

    rule: str
    """The id of its rule in docs/report.md."""
    kind: Kind
    text: str
    """Figures in the units of the report, with their intervals."""
    anchor: str
    """The id of the table or section of the report that has the figures; empty: none has."""
    basis: str = ""
    """What its ratios rest on: machines, repeats, and how many were judged together; empty: it has no ratios."""


class AnswersDocument(Document):
    """What a run says, and what it does not say."""

    answers_version: Literal[1] = 1
    run_id: str
    measured: str = ""
    """What was measured, in one sentence or two: texts leave out of a cell's name what follows from it."""
    answers: tuple[AnswerDocument, ...]
    """Findings first, in the order of importance."""


def make_answers_document(run_id: str, answers: Iterable[Answer], *, measured: str) -> AnswersDocument:
    """Return the document of a run's answers; `measured`: what `describe_measured` says of it."""
    rows = (
        AnswerDocument(rule=one.rule, kind=one.kind, text=one.text, anchor=one.anchor, basis=one.basis)
        for one in answers
    )
    return AnswersDocument(run_id=run_id, measured=measured, answers=tuple(rows))


def export_answers_schema() -> dict[str, Any]:
    """Return the JSON Schema of AnswersDocument."""
    schema = AnswersDocument.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
