"""docs/reference and the other generated pages are those of the code, and say what the command line says."""

import re
import signal

import pytest

from document_reference import list_kinds, load_schema
from make_tables import PAGES
from runner.sources import ROOT

COMMANDS = (ROOT / "docs" / "reference" / "cli.md").read_text()
DOCUMENTS = (ROOT / "docs" / "reference" / "documents.md").read_text()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_the_page_is_what_the_code_says(path: object) -> None:
    page = next(page for page in PAGES if page == path)
    text = page.read_text(encoding="utf-8")
    assert PAGES[page](text) == text, "run `make docs`"


def test_every_field_of_every_document_is_there() -> None:
    for kind in list_kinds():
        for name, part in load_schema(kind).get("$defs", {}).items():
            section = DOCUMENTS.partition(f"\n### {name}\n")[2].partition("\n### ")[0]
            missing = [field for field in part.get("properties", {}) if f"| `{field}` |" not in section]
            assert missing == [], f"{kind}: {name}"


def test_every_exit_code_is_in_the_table() -> None:
    text = (ROOT / "runner" / "commands" / "options.py").read_text()
    codes = {"0", *re.findall(r"^EXIT_\w+ = (\d+)$", text, re.MULTILINE)}
    rows = re.findall(r"^\| (\d+(?:, \d+)*) \|", COMMANDS, re.MULTILINE)
    signals = {str(128 + number) for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)}
    assert {code for row in rows for code in row.split(", ")} == codes | signals
