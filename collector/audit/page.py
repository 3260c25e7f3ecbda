"""Show an audited table, and the study's claims: for the terminal, in Markdown, as JSON."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pandas as pd

from collector.audit.claims import ClaimContext, ClaimResult, evaluate_claims, gather_context, load_study
from collector.audit.rows import LARGER_TILE_SAVING, TOLERANCE, WINOGRAD_SAVING, AuditedRow
from collector.audit.table import AuditTable
from collector.facts import list_facts
from collector.files import escape_markdown
from collector.results.collection import Collection
from collector.results.summary import count_values, summarize_collections
from collector.tables.table import ESSENTIAL, Column, Table, make_table, text_column
from collector.units import PERCENT, Unit, choose_rate_unit, count_things, format_number

ROW_READING = (
    "By arithmetic, a figure is *possible* where the rate that it implies is within the bound of the device in its "
    "precision: its peak, or what its clock may add to that; *implausible without Winograd* where only convolutions "
    f"with {WINOGRAD_SAVING:g} times fewer multiplications reach it, which libraries ordinarily use, so it may well be "
    f"true; *implausible* where only those of larger tiles do, with {LARGER_TILE_SAVING:g} times fewer; *impossible* "
    "where these do not reach it either, or the weights cannot be read so fast, under every reading of the work; "
    "*unknown* where no peak is known. By measurement it is *reproduced* where it lies inside the 95 % interval of a "
    f"measured cell of the same work on such a device, widened by {TOLERANCE / PERCENT.size:g} %; *not "
    "reproduced* where it lies outside of all; *not tested* otherwise. The verdict is that by measurement where there "
    "is one; impossible stays impossible. Possible means that arithmetic does not object, no more."
)


def introduce_table(table: AuditTable) -> str:
    provenance = f", {table.provenance}" if table.provenance else ""
    return f"{table.title} ({table.source}{provenance})"


def count_verdicts(thing: str, verdicts: Sequence[str]) -> str:
    """Return how many rows or claims have which verdict: `29 rows: 29 possible`."""
    return f"{count_things(len(verdicts), thing)}: {count_values(verdicts)}"


def make_audit_table(table: AuditTable, rows: Sequence[AuditedRow]) -> Table:
    """Return a line per row: what was stated, the rate that it implies, its share of the bound, the verdicts.

    Where no run was given, the verdict is that by arithmetic, and the columns of the two are left out.
    """
    columns = {
        "name": [f"{row.number}. {row.name}" for row in rows],
        "figure": [row.row.figure for row in rows],
        "rate": [row.kindest.flops_per_second for row in rows],
        "most_rate": [row.most_flops_per_second for row in rows],
        "bound": pd.Series([row.bound_flops_per_second for row in rows], dtype="float64"),
        "arithmetic": [row.arithmetic_in_words if row.measured.reason else "" for row in rows],
        "measurement": [row.measured.verdict if row.measured.reason else "" for row in rows],
        "verdict": [row.verdict_in_words for row in rows],
    }
    frame = pd.DataFrame(columns)
    frame = frame.assign(share=frame["rate"] / frame["bound"], most_share=frame["most_rate"] / frame["bound"])

    def make_span(title: str, source: str, unit: Unit, priority: int = ESSENTIAL) -> Column:
        def format_span(low: float, most: float) -> str:
            return " to ".join(dict.fromkeys(format_number(value, unit) for value in (low, most)))

        sources = (source, f"most_{source}")
        return Column(title=title, sources=sources, format=format_span, unit=unit, align="right", priority=priority)

    shown = [
        text_column("row", "name"),
        text_column("stated", "figure"),
        make_span("implied", "rate", choose_rate_unit(frame["rate"]), 2),
        make_span("of bound", "share", PERCENT),
        text_column("by arithmetic", "arithmetic", priority=3, is_optional=True),
        text_column("by measurement", "measurement", priority=4, is_optional=True),
        text_column("verdict", "verdict"),
    ]
    return make_table(introduce_table(table), shown, frame)


def list_explanations(rows: Sequence[AuditedRow]) -> Iterator[tuple[str, list[str]]]:
    for row in rows:
        source = [f"stated by {row.row.source}"] if row.row.source else []
        yield f"{row.number}. {row.name}", [*row.lines, *row.reasons, *source]


def write_audit_page(table: AuditTable, rows: Sequence[AuditedRow]) -> str:
    return "\n".join(_write_page(table, rows))


def write_audit_json(table: AuditTable, rows: Sequence[AuditedRow]) -> str:
    document = {
        **table.model_dump(include={"title", "source", "provenance", "remark"}),
        "rows": [describe_row(row) for row in rows],
    }
    return json.dumps(document, indent=1, ensure_ascii=False)


def describe_row(row: AuditedRow) -> dict[str, Any]:
    return {
        "row": row.number,
        "name": row.name,
        "stated": row.row.model_dump(mode="json", exclude_none=True),
        "verdict": row.verdict,
        "by_arithmetic": row.arithmetic.verdict,
        "by_measurement": row.measured.verdict,
        "samples_per_second": row.row.samples_per_second_stated,
        "flops_per_second": row.kindest.flops_per_second,
        "most_flops_per_second": row.most_flops_per_second,
        "device": row.device.name,
        "peak_flops_per_second_of_one": row.kindest.peaks[0],
        "bound_flops_per_second": row.bound_flops_per_second,
        "peak_source": row.device.source,
        "share_of_bound": row.share_of_bound,
        "arithmetic": row.lines,
        "reasons": list(row.reasons),
    }


def _write_page(table: AuditTable, rows: Sequence[AuditedRow]) -> Iterator[str]:
    yield f"# {escape_markdown(table.title)}: audit\n"
    yield f"{escape_markdown(introduce_table(table))}.\n"
    if table.remark:
        yield f"{escape_markdown(table.remark)}\n"
    yield f"{ROW_READING}\n"
    has_runs = any(row.measured.reason for row in rows)
    runs = "" if has_runs else " No run was given: nothing was held against measurements."
    yield f"{count_verdicts('row', [row.verdict_in_words for row in rows])}.{runs}\n"
    shown = make_audit_table(table, rows)
    yield f"| {' | '.join(map(escape_markdown, shown.headings))} |\n|{'---|' * len(shown.columns)}"
    yield from (f"| {' | '.join(map(escape_markdown, texts))} |" for texts in shown.format_rows())
    yield "\n## Peaks\n"
    yield from _list_items(sorted({f"{row.device.name}: {row.device.source}" for row in rows}))
    yield "\n## The arithmetic"
    for name, lines in list_explanations(rows):
        yield f"\n**{escape_markdown(name)}**\n"
        yield from _list_items(lines)
    yield ""


def _list_items(lines: Iterable[str]) -> Iterator[str]:
    return (f"- {escape_markdown(line)}" for line in lines)


NOTHING_MEASURED = "nothing that answers it"
CLAIM_READING = (
    "By arithmetic alone, where a time that the claim rests on implies, under every reading of its work, a rate beyond "
    "the stated device's: *implausible without Winograd*, if the time can be reached with the "
    f"{WINOGRAD_SAVING:g} times fewer multiplications of Winograd's F(2x2, 3x3); *implausible on the stated hardware*, "
    f"if only with the {LARGER_TILE_SAVING:g} times fewer of F(4x4, 3x3); *impossible on the stated hardware*, if not "
    "even so. *Peak rates only*: the figure is the ratio of two data sheets. Measured, at the claim's own "
    "configuration: *reproduced*, the 95 % interval lies inside the claim's band; *not reproduced*, it lies wholly "
    "outside; *not decided*, it is too wide to tell. *Not tested here*: all else. What was measured of other work or "
    "on other hardware is listed and decides nothing; so do findings, after a semicolon. Each interval is that of its "
    'ratio alone. docs/report.md, "Published claims", says more.'
)
FRAMEWORK_REMARK = (
    "TensorFlow stands here for Keras 3 on TensorFlow, which computes a batch norm from several operations."
)
# Below it Student's quantile is 12.7: see "Can the interval be believed?" in docs/statistics.md.
ENOUGH_REPEATS = 3


def describe_claims(results: Sequence[ClaimResult]) -> str:
    counted = count_verdicts("claim", [result.verdict for result in results])
    return f"{counted}. {load_study().caveat}."


def make_claims_page(collections: Sequence[Collection]) -> tuple[str, tuple[ClaimResult, ...]]:
    """Return what `collections`, runs of one machine or of several, say about each claim: a page, and as results.

    GPU over CPU is compared across runs too.
    """
    context = gather_context(summarize_collections(collections))
    results = evaluate_claims(context)
    return "\n".join(_write_claims_page(collections, context, results)), results


def _write_claims_page(
    collections: Sequence[Collection], context: ClaimContext, results: Sequence[ClaimResult]
) -> Iterator[str]:
    yield "# What was measured about the study's claims\n"
    study = context.study
    ran = f"{study.title} ({study.source}), on a {study.gpu} and a {study.cpu}."
    yield f"{escape_markdown(f'{ran} {study.remark} {study.caveat}. {FRAMEWORK_REMARK}')}\n"
    yield f"{CLAIM_READING}\n"
    rows = context.rows
    measured = rows[rows["num_ok"] > 0]
    if few := int((measured["num_counted"] < ENOUGH_REPEATS).sum()):
        yield (
            f"{few} of the {len(measured)} cells of the study's models at fp32 have fewer than {ENOUGH_REPEATS} "
            "repeats that count: intervals from two repeats are wide, and from one there is none.\n"
        )
    yield "| claim | of | verdict |\n|---|---|---|"
    for result in results:
        verdict = "; ".join([result.verdict, *(finding.title for finding in result.claim.findings)])
        of = context.study.describe_provenance(result.claim)
        yield f"| {escape_markdown(result.claim.statement)} | {escape_markdown(of)} | {verdict} |"
    yield "\n## What was run\n"
    facts = ("; ".join(f"{name}: {text}" for name, text in list_facts(collection)) for collection in collections)
    yield from _list_items(facts)
    for result in results:
        yield f"\n## {escape_markdown(result.claim.statement)}\n"
        if result.claim.quote:
            yield f"> {escape_markdown(result.claim.quote)}\n"
        of = context.study.describe_provenance(result.claim)
        yield f"**{result.verdict}**, of {escape_markdown(of)}: {escape_markdown(result.reason)}."
        for finding in result.claim.findings:
            yield f"\nFinding, **{finding.title}**: {escape_markdown(finding.reason)}."
        if result.arithmetic:
            yield "\nBy arithmetic, and elsewhere:\n"
            yield from _list_items(result.arithmetic)
        yield "\nMeasured in these runs:\n"
        yield from _list_items(result.measured or (NOTHING_MEASURED,))
    yield ""
