"""Load what `audit` and `access` work on: a table or a scenario, the user's own or one that comes with the tool."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pydantic import TypeAdapter

import collector.access
from bench.errors import UserError
from collector.access.scenario import Alternative, Scenario
from collector.audit.claims import list_shipped_tables, load_study
from collector.audit.table import AuditTable
from collector.files import read_csv
from collector.prices.table import PriceTable, find_gpu_offers, find_machine_offers
from runner.price_tables import load_prices
from runner.yaml_input import Node, Value, join_words, read_yaml, suggest_word, validate

SHIPPED_SCENARIOS = {path.stem: path for path in sorted(Path(collector.access.__path__[0]).glob("scenarios/*.yaml"))}
_SCENARIO_KEYS = "a scenario; give it the keys 'question', 'job_hours_on', 'kinds', 'users' and 'alternatives'"
_TABLE_KEYS = "a table; give it the keys 'title', 'source' and 'rows'"
_TEXT_COLUMNS = {"device", "model", "phase", "precision", "framework", "label", "source", "peak_source"}
_SCENARIO, _TABLE = TypeAdapter(Scenario), TypeAdapter(AuditTable)


def _find_file(name: str, shipped: Mapping[str, Path], what: str, *suffixes: str) -> Path:
    if name in shipped:
        return shipped[name]
    path = Path(name)
    if path.suffix not in suffixes and not path.is_dir():
        expected = " or ".join(suffix for suffix in suffixes if suffix != ".yml")
        raise UserError(
            f"{name}: is no {what}; {suggest_word(name, list(shipped))}, or give the path of a {expected} file"
        )
    return path


def load_table(name: str) -> AuditTable:
    """Return a shipped table, or that in a YAML or CSV file; UserError with file, line and key if it is wrong."""
    shipped = list_shipped_tables()
    path = _find_file(name, shipped, "table", ".yaml", ".yml", ".csv")
    if path == shipped["study"]:
        return load_study()
    tree = _read_csv_rows(path) if path.suffix == ".csv" else read_yaml(path, name, expected=_TABLE_KEYS)
    return validate(_fill_rows(tree), _TABLE, "docs/audit.md")


def _read_csv_rows(path: Path) -> Node:
    """Return the tree of a table whose first line names the columns; the file's name is its title and source."""
    (_, columns), *lines = read_csv(path)
    rows: list[Node] = []
    for line, cells in lines:
        place = Node(value=None, text="", file=str(path), line=line, key=f"rows[{len(rows)}]")
        found = {
            name: replace(place, value=_read_cell(name, cell), text=cell, key=f"{place.key}.{name}")
            for name, cell in zip(columns, cells, strict=True)
            if cell
        }
        rows.append(replace(place, value=found))
    top: dict[str, Value] = {"title": path.stem, "source": path.name, "rows": rows}
    place = Node(value=None, text="", file=str(path), line=1, key="")
    return replace(place, value={key: replace(place, value=value, key=key) for key, value in top.items()})


def _read_cell(column: str, text: str) -> Value:
    for read_number in () if column in _TEXT_COLUMNS else (int, float):
        with suppress(ValueError):
            return read_number(text)
    return text


def _fill_rows(tree: Node) -> Node:
    """Return the tree of a table without `defaults`, each of its columns in every row that lacks it."""
    entries = dict(tree.children)
    defaults, rows = entries.pop("defaults", None), entries.get("rows")
    if defaults is None or rows is None or not isinstance(rows.value, list):
        return tree
    if not isinstance(defaults.value, dict):
        raise defaults.error("found no keys, expected columns of the rows with their values")
    filled = [
        replace(row, value=defaults.value | row.value) if isinstance(row.value, dict) else row for row in rows.value
    ]
    return replace(tree, value=entries | {"rows": replace(rows, value=filled)})


def load_scenario(name: str) -> Scenario:
    """Return a shipped scenario or a YAML file's, with a price for all that is rented."""
    path = _find_file(name, SHIPPED_SCENARIOS, "scenario", ".yaml", ".yml")
    tree = read_yaml(path, name, expected=_SCENARIO_KEYS)
    scenario = validate(tree, _SCENARIO, "docs/access.md")
    table, alternatives = load_prices(), dict(scenario.alternatives)
    for key, alternative in scenario.alternatives.items():
        if alternative.rent is not None and alternative.rent.price_per_hour is None:
            if table.currency != scenario.currency:
                message = f"found {scenario.currency}, and the price table is in {table.currency}; state all prices"
                raise tree.find_nearest("currency").error(message, key="currency")
            alternatives[key] = _look_up(alternative, table, tree.find_nearest(f"alternatives.{key}.rent"))
    return scenario.model_copy(update={"alternatives": alternatives})


def _look_up(alternative: Alternative, table: PriceTable, node: Node) -> Alternative:
    """Return a rented alternative with the lowest price that the table has for it, and the source of that."""
    rent = alternative.rent
    assert rent is not None
    purchase = "spot" if rent.interruptions_per_hour else "on-demand"
    rows = find_machine_offers(table, rent.machine) if rent.machine else find_gpu_offers(table, alternative.kind)
    offers = [row for row in rows if row.gpu and row.purchase == purchase and rent.region in (None, row.region)]
    if not offers:
        gpus = join_words(sorted({row.gpu for row in table.prices if row.gpu and row.purchase == purchase}))
        message = f"the price table has no {purchase} price of this kind, machine and region; give price_per_hour"
        raise node.error(f"{message}, or one that it has; its GPUs are {gpus}")
    row = min(offers, key=lambda row: row.compute_hourly_price(1))
    part = f", one of its {row.gpus_per_machine} GPUs" if row.gpus_per_machine > 1 else ""
    given = {"price_per_hour": row.compute_hourly_price(1), "source": f"{row.place}{part}, {row.date}, {row.source}"}
    return alternative.model_copy(update={"rent": rent.model_copy(update=given)})
