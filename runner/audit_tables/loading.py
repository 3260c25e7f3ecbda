"""Find and load tables that are audited; whatever is wrong becomes one error with file, line, row and column."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pydantic import TypeAdapter

from bench.errors import UserError
from collector.audit.devices import UnknownDeviceError, find_device
from collector.audit.shipped import list_shipped_tables, make_study_table
from collector.audit.table import AuditTable
from runner.audit_tables.csv_tree import read_csv
from runner.yaml_input import Node, NodeValidator, YamlError, read_yaml, suggest_word

DOCUMENTATION = "docs/audit.md"
EXPECTED = "a table; give it the keys 'title', 'source' and 'rows'"
_VALIDATOR = NodeValidator(TypeAdapter(AuditTable), is_null_absent=True, documentation=DOCUMENTATION)
_ROW_KEY = re.compile(r"rows\[(\d+)\](?:\.(.+))?")


def load_table(name: str) -> AuditTable:
    """Return a shipped table, or that in a YAML or CSV file; UserError with file, line, row and column if it is wrong.

    All that the audit needs is checked: sizes fit the models, and the device of every row is known.
    """
    shipped = list_shipped_tables()
    if name in shipped:
        path = shipped[name]
        return make_study_table() if path is None else _load(path, path.name)
    if Path(name).suffix not in (".yaml", ".yml", ".csv") and not os.path.isdir(name):
        raise UserError(
            f"{name}: is no table; {suggest_word(name, list(shipped))}, or give the path of a .yaml or .csv file"
        )
    return _load(Path(name), name)


def _load(path: Path, file: str) -> AuditTable:
    with _naming_rows():
        tree = read_csv(path, file) if path.suffix == ".csv" else read_yaml(path, file, expected=EXPECTED)
        tree = _fill_defaults(tree)
        table = _VALIDATOR.validate(tree)
        _check_devices(table, tree)
    return table


@contextmanager
def _naming_rows() -> Iterator[None]:
    """Turn the key of an error, such as `rows[2].phase`, into the row and the column of the table."""
    try:
        yield
    except YamlError as error:
        found = _ROW_KEY.fullmatch(error.key)
        if found is None:
            raise
        row = f"row {int(found[1]) + 1}"
        key = f"{row}, column {found[2]}" if found[2] else row
        raise YamlError(error.message, file=error.file, line=error.line, key=key) from None


def _fill_defaults(tree: Node) -> Node:
    """Return the tree with what `defaults` says put into the rows that do not say it themselves."""
    rows, defaults = tree.find_child("rows"), tree.find_child("defaults")
    if not isinstance(tree.value, dict):
        raise tree.error(f"found no keys, expected {EXPECTED}")
    if defaults is None:
        return tree
    if not isinstance(defaults.value, dict):
        raise defaults.error("found no keys, expected columns of the rows with their values")
    entries = {key: value for key, value in tree.value.items() if key != "defaults"}
    if rows is not None and isinstance(rows.value, list):
        filled = [
            replace(row, value=defaults.value | row.value) if isinstance(row.value, dict) else row for row in rows.value
        ]
        entries["rows"] = replace(rows, value=filled)
    return replace(tree, value=entries)


def _check_devices(table: AuditTable, tree: Node) -> None:
    """Raise YamlError at the first row whose device is not known."""
    for index, row in enumerate(table.rows):
        try:
            find_device(table, row)
        except UnknownDeviceError as error:
            rows = tree.find_child("rows")
            place = rows and rows.find_child(index)
            node = (place and place.find_child("device")) or tree
            raise node.error(str(error), key=f"rows[{index}].device") from None


def describe_shipped_table(name: str) -> str:
    """Return the title of a shipped table and the number of its rows."""
    table = load_table(name)
    return f"{table.title}, {len(table.rows)} rows"
