"""Load the price table that comes with the tool, or a user's own."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pydantic import TypeAdapter

from bench.errors import UserError
from bench.registry import Device
from collector.prices.table import SHIPPED_PRICES, PriceTable
from runner.yaml_input import read_yaml, suggest_word, validate

EXPECTED = "a price table; give it the keys 'title', 'currency' and 'prices'"
# What a user's table leaves out is that of the shipped one: grids and chips are the same for everybody.
SHARED_KEYS = ("carbon", "power")
_ADAPTER = TypeAdapter(PriceTable)


def load_prices(path: Path | None = None) -> PriceTable:
    """Return the price table in a YAML file; the shipped one if `path` is None.

    A table of one's own takes carbon and power from the shipped one where it has no such key. UserError with file,
    line and key where the file cannot be read or is wrong.
    """
    tree = read_yaml(path or SHIPPED_PRICES, SHIPPED_PRICES.name if path is None else str(path), expected=EXPECTED)
    if path is not None and not tree.children.keys() >= set(SHARED_KEYS):
        shipped = read_yaml(SHIPPED_PRICES, SHIPPED_PRICES.name, expected=EXPECTED).children
        tree = replace(tree, value={**{key: shipped[key] for key in SHARED_KEYS}, **tree.children})
    return validate(tree, _ADAPTER, "docs/cost.md")


def check_machines(table: PriceTable, machines: Mapping[Device, str], path: Path | None) -> None:
    known = list(dict.fromkeys(row.machine for row in table.prices))
    for device, machine in machines.items():
        if machine not in known:
            file = SHIPPED_PRICES.name if path is None else path
            raise UserError(
                f"--machine {device}={machine}: {file} has no such machine type; {suggest_word(machine, known)}"
            )


def check_place(table: PriceTable, cloud: str | None, region: str | None, path: Path | None) -> None:
    file = SHIPPED_PRICES.name if path is None else path
    rows = [row for row in table.prices if cloud in (None, row.cloud)]
    if not rows:
        known = sorted({row.cloud for row in table.prices})
        raise UserError(f"--cloud {cloud}: {file} has no prices of it; {suggest_word(str(cloud), known)}")
    if region is not None and all(row.region != region for row in rows):
        known = sorted({row.region for row in rows})
        where = "" if cloud is None else f" in {cloud}"
        raise UserError(f"--region {region}: {file} has no prices of it{where}; {suggest_word(region, known)}")
