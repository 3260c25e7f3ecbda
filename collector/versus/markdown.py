"""Write a comparison as Markdown for a pull request: what counts on top, the rest folded, nothing read as markup."""

import re
from collections.abc import Iterator

from collector.tables.table import Table
from collector.versus.document import CompareDocument
from collector.versus.method_texts import list_method_lines
from collector.versus.texts import (
    MACHINES_DIFFER,
    describe_no_difference,
    list_group_lines,
    list_side_lines,
    list_unpaired_lines,
    make_cell_table,
    make_difference_table,
    sort_cells,
)
from collector.visible_text import escape_markdown

SYMBOLS = {0: "✅", 1: "❌", 2: "❔"}
URGENT = ("fails", "worse")


def write_markdown(document: CompareDocument) -> str:
    """Return the comparison as Markdown, about 30 kB at the most: a comment on GitHub holds 65,536 letters."""
    return "\n".join(_list_parts(document)) + "\n"


def escape_comment(text: str) -> str:
    """Return one line of `text` in which nothing is markup, mentions a user or refers to an issue.

    Hosts and settings can have any text. GitHub makes links of `@name` and `#12` whatever is escaped, but not across a
    comment of HTML.
    """
    escaped = escape_markdown(text.replace("&", "&amp;")).replace("\\<", "&lt;").replace("\\>", "&gt;")
    escaped = escaped.replace("~", "\\~").replace("://", ":<!-- -->//").replace("www.", "www<!-- -->.")
    return re.sub(r"(@|\\#)", r"\1<!-- -->", escaped)


def _list_parts(document: CompareDocument) -> Iterator[str]:
    yield f"**{SYMBOLS[document.exit_code]} {escape_comment(document.conclusion)}**\n"
    yield "<br>\n".join(map(escape_comment, list_side_lines(document))) + "\n"
    if document.is_between_machines:
        yield f"**{MACHINES_DIFFER}**\n"
    if document.differences:
        table = make_difference_table(document)
        yield from _write_table(table)
    else:
        yield f"{describe_no_difference(document)}\n"
    yield from (f"- {escape_comment(line)}" for line in document.warnings)
    cells = sort_cells(document)
    urgent = [cell for cell in cells if cell.verdict in URGENT]
    if urgent:
        yield ""
        yield from _write_table(make_cell_table(document, urgent))
    yield from (f"\n{escape_comment(line)}" for line in list_group_lines(document))
    yield f"\n<details><summary>All {len(cells)} cells</summary>\n"
    yield from _write_table(make_cell_table(document, cells))
    yield "</details>\n\n<details><summary>How to read this</summary>\n"
    yield from (f"- {escape_comment(line)}" for line in list_method_lines(document))
    yield "\n</details>"
    unpaired = list(list_unpaired_lines(document))
    if unpaired:
        yield "\n<details><summary>Cells that were not compared</summary>\n"
        yield from (f"- {escape_comment(line)}" for line in unpaired)
        yield "\n</details>"


def _write_table(table: Table) -> Iterator[str]:
    yield f"| {' | '.join(map(escape_comment, table.headings))} |\n|{'---|' * len(table.columns)}"
    yield from (f"| {' | '.join(map(escape_comment, texts))} |" for texts in table.format_rows())
    yield f"\n{escape_comment(table.remark)}\n" if table.remark else ""
