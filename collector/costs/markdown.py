"""Write what cells cost as Markdown."""

from collections.abc import Iterator

from collector.costs.document import CostDocument
from collector.costs.tables import make_job_table, make_sample_table
from collector.costs.texts import list_answer_lines, list_basis_lines, list_unpriced_lines
from collector.tables.table import Table
from collector.visible_text import escape_markdown


def write_markdown(document: CostDocument) -> str:
    """Return tables, answers and their basis as Markdown, in which no text of a result is read as markup."""
    return "\n".join(_list_parts(document)) + "\n"


def _list_parts(document: CostDocument) -> Iterator[str]:
    for table in (make_job_table(document), make_sample_table(document)):
        if table is not None:
            yield from _write_table(table)
    for title, lines in (
        ("Answers", list(list_answer_lines(document))),
        ("Without a price", list(list_unpriced_lines(document))),
        ("What this rests on", list(list_basis_lines(document))),
    ):
        if lines:
            yield f"**{title}**\n"
            yield from (f"- {escape_markdown(line)}" for line in lines)
            yield ""


def _write_table(table: Table) -> Iterator[str]:
    yield f"**{escape_markdown(table.caption)}**\n"
    yield f"| {' | '.join(map(escape_markdown, table.headings))} |\n|{'---|' * len(table.columns)}"
    yield from (f"| {' | '.join(map(escape_markdown, texts))} |" for texts in table.format_rows())
    yield ""
