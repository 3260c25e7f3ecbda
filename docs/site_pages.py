"""Adapt a page of the repository to the site: what GitHub shows by itself, the site's Markdown has to be told.

Lists are indented by four spaces, as Python-Markdown wants them, and diagrams are drawn, so that no reader's browser
loads a program for it.
"""

import re
from pathlib import Path

import mermaidx
from markdown_it import MarkdownIt

INDENT = " " * 4
FENCE = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r"^\s*accDescr: *(.+)$", re.MULTILINE)


def adapt_page(text: str, path: Path) -> str:
    """Return the text of a page for the site, where it is `path`; its diagrams are written beside it."""
    return draw_diagrams(indent_lists(text), path)


def draw_diagrams(text: str, path: Path) -> str:
    """Return a text whose Mermaid diagrams are pictures beside `path`, one for each of the site's colour schemes."""
    for number, found in enumerate(FENCE.finditer(text), start=1):
        description = TITLE.search(found[1])
        if description is None:
            raise ValueError(f"{path}: diagram {number} has no line `accDescr:`, which says what it shows")
        pictures = []
        for scheme, theme in (("light", "default"), ("dark", "dark")):
            name = f"{path.stem}-diagram-{number}-{scheme}.svg"
            mermaidx.render(found[1], theme=theme).save(str(path.with_name(name)))
            pictures.append(f"[![{description[1]}]({name}#only-{scheme})]({name})")
        text = text.replace(found[0], "\n".join(pictures))
    return text


def indent_lists(text: str) -> str:
    """Return a text whose lists are indented by four spaces a level, with an empty line before each."""
    lines = text.split("\n")
    levels: list[list[int]] = [[] for _ in lines]
    """Of each line: the columns at which the contents of the list items around it begin, outermost first."""
    starts: set[int] = set()
    tops: set[int] = set()
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.type == "list_item_open":
            assert token.map is not None
            first, end = token.map
            width = _measure_marker(lines[first], levels[first][-1] if levels[first] else 0)
            starts.add(first)
            for number in range(first, end):
                levels[number].append(width)
        elif token.type in {"bullet_list_open", "ordered_list_open"}:
            assert token.map is not None
            tops.add(token.map[0])
    adapted = []
    for number, line in enumerate(lines):
        if number in tops and len(levels[number]) == 1 and number and lines[number - 1].strip():
            adapted.append("")
        adapted.append(_indent_line(line, levels[number], is_start=number in starts))
    return "\n".join(adapted)


def _measure_marker(line: str, column: int) -> int:
    """Return the column at which the content of a list item begins that begins in a line at a column."""
    found = re.match(r"\s*(?:[-*+]|\d+[.)])\s+", line[column:])
    assert found is not None, line
    return column + found.end()


def _indent_line(line: str, columns: list[int], *, is_start: bool) -> str:
    if not columns or not line.strip():
        return line
    own = columns[:-1] if is_start else columns
    column = own[-1] if own else 0
    blanks = len(line) - len(line.lstrip())
    return INDENT * len(own) + line[min(column, blanks) :]
