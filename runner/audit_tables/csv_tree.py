"""Read a table in CSV into the same tree as one in YAML, so that both are checked by the same rules."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from collector.audit.table import TableRow
from runner.yaml_input import Node, Scalar, YamlError, quote, read_bytes, suggest_word

# Lists have no place in a cell of CSV.
COLUMNS = tuple(name for name in TableRow.model_fields if name != "readings")
_TEXTS = {"device", "model", "phase", "precision", "framework", "label", "source", "peak_source"}


def read_csv(path: Path, file: str) -> Node:
    """Return the tree of a table whose first line names the columns; YamlError if it cannot be read.

    The file's name is its title and source. An empty cell is no value. `file` is the file's name in messages.
    """
    reader = csv.reader(io.StringIO(_read_text(path, file), newline=""), strict=True)
    try:
        header = next(reader, [])
        columns = _check_header([name.strip() for name in header], file)
        rows = list(_read_rows(reader, columns, file))
    except csv.Error as error:
        message = f"is not CSV: {error}; quote a text that holds commas or quotes"
        raise YamlError(message, file=file, line=reader.line_num) from None
    if not rows:
        message = "the table has no rows; write one line per figure below the first"
        raise YamlError(message, file=file, line=1)
    top = {
        "title": _make_node(path.stem, file, 1, "title"),
        "source": _make_node(path.name, file, 1, "source"),
        "rows": Node(value=rows, text="", is_quoted=False, file=file, line=2, key="rows"),
    }
    return Node(value=top, text="", is_quoted=False, file=file, line=1, key="")


def _read_text(path: Path, file: str) -> str:
    content = read_bytes(path, file, file_format="CSV")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        message = "is not UTF-8 text; save the table as CSV in UTF-8"
        raise YamlError(message, file=file, line=line) from None


def _check_header(found: list[str], file: str) -> list[str]:
    if not any(found):
        message = f"the file is empty, expected a first line with columns: {', '.join(COLUMNS)}"
        raise YamlError(message, file=file, line=1)
    for index, name in enumerate(found):
        key = f"column {name if name in COLUMNS else quote(name)}"
        if name not in COLUMNS:
            message = f"unknown column; {suggest_word(name, COLUMNS)}"
            raise YamlError(message, file=file, line=1, key=key)
        if name in found[:index]:
            message = "stands twice; remove one of the two"
            raise YamlError(message, file=file, line=1, key=key)
    return found


def _read_rows(reader: Iterator[list[str]], columns: list[str], file: str) -> Iterator[Node]:
    index = 0
    for cells in reader:
        line: int = reader.line_num  # type: ignore[attr-defined]  # csv's reader has it, its type is private
        if not any(cell.strip() for cell in cells):
            continue
        key = f"rows[{index}]"
        if len(cells) != len(columns):
            message = (
                f"found {len(cells)} cells, expected {len(columns)}, as many as the first line; quote texts with ','"
            )
            raise YamlError(message, file=file, line=line, key=key)
        nodes = {
            name: _make_node(_read_cell(name, cell.strip()), file, line, f"{key}.{name}", text=cell.strip())
            for name, cell in zip(columns, cells, strict=True)
            if cell.strip()
        }
        yield Node(value=nodes, text="", is_quoted=False, file=file, line=line, key=key)
        index += 1


def _read_cell(column: str, text: str) -> Scalar:
    """Return a number where the column takes one and `text` is one; what it should be is checked later."""
    if column in _TEXTS:
        return text
    for read_number in (int, float):
        try:
            return read_number(text)
        except ValueError:
            continue
    return text


def _make_node(value: Scalar, file: str, line: int, key: str, *, text: str | None = None) -> Node:
    return Node(value=value, text=str(value) if text is None else text, is_quoted=False, file=file, line=line, key=key)
