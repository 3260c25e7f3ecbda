"""Price tables that users write: what they take from the shipped table, and the file, line and key of every error."""

from datetime import date
from pathlib import Path

import pytest

from collector.prices.table import PriceTable
from runner.price_tables import load_prices
from runner.yaml_input import YamlError

TOP = "title: Ours\ncurrency: EUR\n"
ROW = (
    "{cloud: ours, region: cellar, machine: box, price_per_hour: 0.5, gpu: T4, vcpus: 8, date: 2026-01-31, "
    "source: our books}"
)


def load(tmp_path: Path, text: str) -> PriceTable:
    path = tmp_path / "prices.yaml"
    path.write_text(text)
    return load_prices(path)


def test_a_table_of_ones_own_has_its_own_prices_and_the_shipped_carbon_and_power(tmp_path: Path) -> None:
    table = load(tmp_path, f"{TOP}prices:\n  - {ROW}\n")
    (row,) = table.prices
    assert (table.currency, row.place, row.price_per_hour) == ("EUR", "ours cellar box (T4)", 0.5)
    assert (row.date, row.purchase, row.gpus_per_machine) == (date(2026, 1, 31), "on-demand", 1)
    assert table.carbon == load_prices().carbon
    assert table.power == load_prices().power


def test_what_a_table_has_itself_replaces_the_shipped(tmp_path: Path) -> None:
    carbon = "carbon: [{cloud: ours, region: cellar, grams_per_kwh: 20, year: 2025, source: our supplier}]\n"
    table = load(tmp_path, f"{TOP}{carbon}power: []\nprices: [{ROW}]\n")
    found = table.find_carbon("ours", "cellar")
    assert found is not None
    assert (found.grams_per_kwh, found.pue, len(table.carbon), table.power) == (20, None, 1, ())


ERRORS = [
    (f"{TOP}prices:\n- {ROW.replace('0.5', '-1')}", 4, "prices[0].price_per_hour", "greater than"),
    (f"{TOP}prices:\n- {ROW.replace('2026-01-31', 'May')}", 4, "prices[0].date", "YYYY-MM-DD"),
    (f"{TOP}prices:\n- {ROW.replace('gpu: T4', 'num_gpus: 2')}", 4, "prices[0].num_gpus", "`gpu`"),
    (f"{TOP}prices:\n- {ROW}\n- {ROW}", 5, "prices[1]", "ours cellar box (T4) already"),
    (f"{TOP}prices: [{ROW}]\ncarbon:\n- {{cloud: a}}", 5, "carbon[0].region", "docs/cost.md"),
    (f"title: x\ncurrency: euro\nprices: [{ROW}]", 2, "currency", "such as USD"),
    ("- 1", 1, "", "'title', 'currency' and 'prices'"),
]


@pytest.mark.parametrize(("text", "line", "key", "words"), ERRORS)
def test_an_error_names_file_line_and_key(tmp_path: Path, text: str, line: int, key: str, words: str) -> None:
    with pytest.raises(YamlError) as caught:
        load(tmp_path, text)
    error = caught.value
    assert (error.file, error.line, error.key) == (str(tmp_path / "prices.yaml"), line, key)
    assert words in error.message


def test_every_row_of_the_shipped_table_has_a_source_and_a_carbon_intensity() -> None:
    table = load_prices()
    assert table.currency == "USD"
    sources = [row.source for rows in (table.prices, table.carbon, table.power) for row in rows]
    assert [source for source in sources if not source.startswith("https://")] == []
    assert [row.place for row in table.prices if table.find_carbon(row.cloud, row.region) is None] == []


def test_the_shipped_table_prices_the_devices_that_it_promises() -> None:
    table = load_prices()
    gpus = {row.gpu.split()[0] for row in table.prices if row.gpu is not None}
    assert gpus == {"T4", "L4", "A10G", "A100", "H100", "H200"}
    clouds = ["GKE", "EKS", "AKS"]
    assert [cloud for cloud in clouds if any(row.gpu is None and row.cloud == cloud for row in table.prices)] == clouds
    assert [cloud for cloud in clouds if any(row.gpu == "T4" and row.cloud == cloud for row in table.prices)] == clouds


def test_spot_is_never_dearer_than_on_demand() -> None:
    rows = {
        (row.cloud, row.region, row.machine, row.gpu, row.purchase): row.price_per_hour for row in load_prices().prices
    }
    pairs = [(price, rows.get((*key[:4], "on-demand"))) for key, price in rows.items() if key[4] == "spot"]
    assert len(pairs) == 12
    assert all(demand is None or spot < demand for spot, demand in pairs)
