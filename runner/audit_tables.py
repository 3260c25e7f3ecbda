"""Load a table that is audited from YAML or CSV; what is wrong becomes one error with file, line and key."""

import csv
import io
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pydantic import TypeAdapter

from bench.errors import UserError
from collector.audit.claims import list_shipped_tables, load_study
from collector.audit.table import AuditTable, TableRow, UnknownDeviceError, find_device
from runner.yaml_input import Node, Value, YamlError, quote, read_bytes, read_yaml, suggest_word, validate

# Lists have no place in a cell of CSV.
COLUMNS = tuple(name for name in TableRow.model_fields if name != "readings")
_TEXTS = {"device", "model", "phase", "precision", "framework", "label", "source", "peak_source"}


def read_csv(path: Path, file: str) -> Node:
    """Return the tree of a table whose first line names the columns; YamlError if it cannot be read.

    The file's name is its title and source. An empty cell is no value. `file` is the file's name in messages.
    """
    try:
        text = read_bytes(path, file, file_format="CSV").decode("utf-8-sig")
    except UnicodeDecodeError:
        raise YamlError("is not UTF-8 text; save the table as CSV in UTF-8", file=file) from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        lines = [(reader.line_num, [cell.strip() for cell in cells]) for cells in reader]
    except csv.Error as error:
        message = f"is not CSV: {error}; quote a text that holds commas or quotes"
        raise YamlError(message, file=file, line=reader.line_num) from None
    lines = [(line, cells) for line, cells in lines if any(cells)]
    if len(lines) < 2:
        message = f"the table has no rows, expected a first line with columns ({', '.join(COLUMNS)}) and one for each"
        raise YamlError(message, file=file, line=1)
    (_, columns), *others = lines
    for index, name in enumerate(columns):
        if name not in COLUMNS or name in columns[:index]:
            problem = f"unknown column; {suggest_word(name, COLUMNS)}"
            message = problem if name not in COLUMNS else "stands twice; remove one of the two"
            key = f"column {name if name in COLUMNS else quote(name)}"
            raise YamlError(message, file=file, line=1, key=key)
    rows = []
    for index, (line, cells) in enumerate(others):
        row = _make_node([], file, line, f"rows[{index}]")
        if len(cells) != len(columns):
            count = f"found {len(cells)} cells, expected {len(columns)}, as many as the first line"
            raise row.error(f"{count}; quote texts with ','")
        found = {
            name: replace(_make_node(_read_cell(name, cell), file, line, f"{row.key}.{name}"), text=cell)
            for name, cell in zip(columns, cells, strict=True)
            if cell
        }
        rows.append(replace(row, value=found))
    top: dict[str, Value] = {"title": path.stem, "source": path.name, "rows": rows}
    return _make_node({key: _make_node(value, file, 1, key) for key, value in top.items()}, file, 1, "")


def _read_cell(column: str, text: str) -> Value:
    for read_number in () if column in _TEXTS else (int, float):
        with suppress(ValueError):
            return read_number(text)
    return text


def _make_node(value: Value, file: str, line: int, key: str) -> Node:
    return Node(value=value, text=str(value), file=file, line=line, key=key)


EXPECTED = "a table; give it the keys 'title', 'source' and 'rows'"
_ADAPTER = TypeAdapter(AuditTable)


def load_table(name: str) -> AuditTable:
    """Return a shipped table, or that in a YAML or CSV file; UserError with file, line, and key if it is wrong.

    All that the audit needs is checked: sizes fit the models, and the device of every row is known.
    """
    shipped = list_shipped_tables()
    if name in shipped:
        path = shipped[name]
        return load_study() if path is None else _load(path, path.name)
    if Path(name).suffix not in (".yaml", ".yml", ".csv") and not os.path.isdir(name):
        raise UserError(
            f"{name}: is no table; {suggest_word(name, list(shipped))}, or give the path of a .yaml or .csv file"
        )
    return _load(Path(name), name)


def _load(path: Path, file: str) -> AuditTable:
    tree = read_csv(path, file) if path.suffix == ".csv" else read_yaml(path, file, expected=EXPECTED)
    entries = dict(tree.children)
    if (defaults := entries.pop("defaults", None)) is not None:
        if not isinstance(defaults.value, dict):
            raise defaults.error("found no keys, expected columns of the rows with their values")
        if (rows := entries.get("rows")) is not None and isinstance(rows.value, list):
            filled = [
                replace(row, value=defaults.value | row.value) if isinstance(row.value, dict) else row
                for row in rows.value
            ]
            entries["rows"] = replace(rows, value=filled)
        tree = replace(tree, value=entries)
    table = validate(tree, _ADAPTER, "docs/audit.md")
    for index, row in enumerate(table.rows):
        try:
            find_device(table, row)
        except UnknownDeviceError as error:
            key = f"rows[{index}].device"
            raise tree.find_nearest(key).error(str(error), key=key) from None
    return table


def describe_shipped_table(name: str) -> str:
    table = load_table(name)
    return f"{table.title}, {len(table.rows)} rows"
