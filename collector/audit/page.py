"""Show an audited table: as a table for the terminal, as a page in Markdown, as a JSON document."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from collector.audit.evaluation import AuditedRow
from collector.audit.table import AuditTable
from collector.claims.page import escape_markdown
from collector.claims.plausibility import LARGER_TILE_SAVING, WINOGRAD_SAVING
from collector.claims.speedup import SPEEDUP_TOLERANCE
from collector.files import replace_text
from collector.tables.columns import text_column
from collector.tables.table import ESSENTIAL, Column, Table, make_table
from collector.units import PERCENT, Unit, choose_rate_unit, format_number

READING = (
    "By arithmetic, a figure is *possible* where the rate that it implies is within the bound of the device in its "
    "precision: its peak, or what its clock may add to that; *implausible without Winograd* where only convolutions "
    f"with {WINOGRAD_SAVING:g} times fewer multiplications reach it, which libraries ordinarily use, so it may well be "
    f"true; *implausible* where only those of larger tiles do, with {LARGER_TILE_SAVING:g} times fewer; *impossible* "
    "where these do not reach it either, or the weights cannot be read so fast, under every reading of the work; "
    "*unknown* where no peak is known. By measurement it is *reproduced* where it lies inside the 95 % interval of a "
    f"measured cell of the same work on such a device, widened by {SPEEDUP_TOLERANCE / PERCENT.size:g} %; *not "
    "reproduced* where it lies outside of all; *not tested* otherwise. The verdict is that by measurement where there "
    "is one; impossible stays impossible. Possible means that arithmetic does not object, no more."
)


def introduce_table(table: AuditTable) -> str:
    """Return in a sentence whose table it is, and how its numbers came here."""
    provenance = f", {table.provenance}" if table.provenance else ""
    return f"{table.title} ({table.source}{provenance})"


def count_verdicts(rows: Sequence[AuditedRow]) -> str:
    """Return how many rows have which verdict: `29 rows: 29 possible`."""
    counts = Counter(row.verdict_in_words for row in rows)
    found = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    return f"{len(rows)} {'row' if len(rows) == 1 else 'rows'}: {found}"


def make_audit_table(table: AuditTable, rows: Sequence[AuditedRow]) -> Table:
    """Return a line per row: what was stated, the rate that it implies, its share of the bound, the verdicts.

    Where no run was given, the verdict is that by arithmetic, and the columns of the two are left out.
    """
    frame = pd.DataFrame(
        {
            "name": [f"{row.number}. {row.name}" for row in rows],
            "figure": [row.figure for row in rows],
            "rate": [row.arithmetic.flops_per_second for row in rows],
            "most_rate": [row.arithmetic.most_flops_per_second for row in rows],
            "share": pd.Series([row.arithmetic.share_of_bound for row in rows], dtype="float64"),
            "most_share": pd.Series([row.arithmetic.most_share_of_bound for row in rows], dtype="float64"),
            "arithmetic": [row.arithmetic_in_words if row.measured.reason else "" for row in rows],
            "measurement": [row.measured.verdict if row.measured.reason else "" for row in rows],
            "verdict": [row.verdict_in_words for row in rows],
        }
    )
    columns = [
        text_column("row", "name"),
        text_column("stated", "figure"),
        _span_column("implied", "rate", choose_rate_unit(frame["rate"]), priority=2),
        _span_column("of bound", "share", PERCENT),
        text_column("by arithmetic", "arithmetic", priority=3, is_optional=True),
        text_column("by measurement", "measurement", priority=4, is_optional=True),
        text_column("verdict", "verdict"),
    ]
    return make_table(introduce_table(table), columns, frame)


def _span_column(title: str, source: str, unit: Unit, *, priority: int = ESSENTIAL) -> Column:
    """Return a column of an amount, or of the span from `source` to its most where readings differ."""

    def format_span(low: float, most: float) -> str:
        return " to ".join(dict.fromkeys(format_number(value, unit) for value in (low, most)))

    sources = (source, f"most_{source}")
    return Column(title=title, sources=sources, format=format_span, unit=unit, align="right", priority=priority)


def list_explanations(rows: Sequence[AuditedRow]) -> Iterator[tuple[str, list[str]]]:
    """Yield for each row its numbered name, and the lines of its calculation and reasons."""
    for row in rows:
        source = [f"stated by {row.row.source}"] if row.row.source else []
        yield f"{row.number}. {row.name}", [*row.arithmetic.lines, *row.reasons, *source]


def write_audit_page(table: AuditTable, rows: Sequence[AuditedRow], path: Path) -> None:
    """Write the audit as a page in Markdown; the directory of `path` is made if absent."""
    replace_text(path, "\n".join(_write_page(table, rows)))


def write_audit_json(table: AuditTable, rows: Sequence[AuditedRow]) -> str:
    """Return the audit as JSON: the table's heading, and per row what was stated, calculated and found. Base units."""
    document = {
        **table.model_dump(include={"title", "source", "provenance", "remark"}),
        "rows": [describe_row(row) for row in rows],
    }
    return json.dumps(document, indent=1, ensure_ascii=False)


def describe_row(row: AuditedRow) -> dict[str, Any]:
    """Return what was stated, calculated and found of one row. Base units."""
    arithmetic, device = row.arithmetic, row.device
    return {
        "row": row.number,
        "name": row.name,
        "stated": row.row.model_dump(mode="json", exclude_none=True),
        "verdict": row.verdict,
        "by_arithmetic": arithmetic.verdict,
        "by_measurement": row.measured.verdict,
        "samples_per_second": row.row.samples_per_second_stated,
        "flops_per_second": arithmetic.flops_per_second,
        "most_flops_per_second": arithmetic.most_flops_per_second,
        "device": device.name,
        "peak_flops_per_second_of_one": device.peak_flops_per_second,
        "bound_flops_per_second": arithmetic.bound_flops_per_second,
        "peak_source": device.source,
        "share_of_bound": arithmetic.share_of_bound,
        "arithmetic": list(arithmetic.lines),
        "reasons": list(row.reasons),
    }


def _write_page(table: AuditTable, rows: Sequence[AuditedRow]) -> Iterator[str]:
    yield f"# {escape_markdown(table.title)}: audit\n"
    yield f"{escape_markdown(introduce_table(table))}.\n"
    if table.remark:
        yield f"{escape_markdown(table.remark)}\n"
    yield f"{READING}\n"
    runs = (
        "" if any(row.measured.reason for row in rows) else " No run was given: nothing was held against measurements."
    )
    yield f"{count_verdicts(rows)}.{runs}\n"
    shown = make_audit_table(table, rows)
    yield f"| {' | '.join(map(escape_markdown, shown.headings))} |\n|{'---|' * len(shown.columns)}"
    yield from (f"| {' | '.join(map(escape_markdown, texts))} |" for texts in shown.format_rows())
    yield "\n## Peaks\n"
    sources = {f"{row.device.name}: {row.device.source}" for row in rows}
    yield from (f"- {escape_markdown(line)}" for line in sorted(sources))
    yield "\n## The arithmetic"
    for name, lines in list_explanations(rows):
        yield f"\n**{escape_markdown(name)}**\n"
        yield from (f"- {escape_markdown(line)}" for line in lines)
    yield ""
