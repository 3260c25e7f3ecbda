"""Values that break out of what they are put into, or that no program expects, and how to find those that got out."""

import csv
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from io import StringIO
from typing import Any

from markdown_it import MarkdownIt

from hostile_texts import HOSTILE_TEXTS

SECRET = "hunter2-never-to-be-shown"
"""Stands where passwords, tokens and keys stand."""
HTML = "</script></pre></title><img src=x onerror=fuzzed()><script>fuzzed()</script>"
FORMULA = '=HYPERLINK("http://fuzzed.example","x")'
TEXTS = (
    *HOSTILE_TEXTS,
    HTML,
    FORMULA,
    "@SUM(1)",
    "+fuzzed()",
    "[x](javascript:fuzzed())",
    "![x](x) | `` ` `` <b onclick=fuzzed()>",
    "\x1b]0;pwned\x07\x1b[31m\x1b[2J",
    "\u202egpj.exe\u2066",
    "\r\x08\x08",
    "a\x00b",
    "\ud800",
    "A" * 5000,
    "é" * 300,
    "",
    " ",
    "../../../etc/passwd",
    "/",
    "~nosuchuser/x",
    "%s%n{0}{x!r}",
    "[red]x[/red][/]",
    "Infinity",
    "NaN",
    "9999-12-31T23:59:59Z",
    "0001-01-01T00:00:00+14:00",
    "2026-02-30",
    "2026-03-01T12:00:00",
    "runs/../run",
    "*",
)
NUMBERS = (
    *(0, -1, 1, 2, 7, 10**6, 10**9, 10**12, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1, 2**64, 10**30, 10**400),
    *(0.0, -0.0, 0.5, -1.5, 1e-9, 5e-324, 1e-30, 1e30, 1e150, 1e306, 1.7976931348623157e308),
    *(float("inf"), float("-inf"), float("nan")),
)
RAW_NUMBERS = ("1e400", "-1e400", "1" + "0" * 5000, "1e-400", "0" * 50 + "1", "0x10", "1_000", "1:30", "+1", "1.")
"""Numbers that Python does not write: they replace `make_raw`'s text in a document."""


def make_raw(index: int) -> str:
    """Return the text that stands for the raw number of this index until the document is written."""
    return f"raw-number-{index}-"


def nest(depth: int) -> Any:
    """Return a list in a list, and so on."""
    found: Any = []
    for _ in range(depth):
        found = [found]
    return found


class _LiveMarkers(HTMLParser):
    """Collects the tags and attributes of a marker that a browser would act on."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._is_script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._is_script = tag == "script"
        for name, value in attrs:
            is_handler = name.startswith("on") and "fuzzed" in (value or "")
            if is_handler or (value or "").strip().lower().startswith("javascript:fuzzed"):
                self.found.append(f"<{tag} {name}={value}>")

    def handle_data(self, data: str) -> None:
        if self._is_script and data.strip().startswith("fuzzed("):
            self.found.append("<script>fuzzed()")
        self._is_script = False


def find_live_html(text: str) -> list[str]:
    """Return what of a marker is alive in a page of HTML, or an SVG."""
    parser = _LiveMarkers()
    parser.feed(text)
    return parser.found


def find_live_markdown(text: str) -> list[str]:
    """Return what of a marker is alive in Markdown, as CommonMark and GitHub's tables read it."""
    return find_live_html(MarkdownIt("commonmark", {"html": True}).enable("table").render(text))


def find_formulas(text: str) -> list[str]:
    """Return the cells of a CSV file that a spreadsheet would compute."""
    marks = (FORMULA, "@SUM(1)", "+fuzzed()")
    return [cell for row in csv.reader(StringIO(text, newline="")) for cell in row if cell.startswith(marks)]


def find_unprintable(text: str) -> Iterator[str]:
    """Yield each kind of character that would steer a terminal, once."""
    yield from sorted(
        {f"U+{ord(letter):04X}" for letter in re.findall(r"[^ -~\n\t]", text) if not letter.isprintable()}
    )
