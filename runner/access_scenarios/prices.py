"""Look up what the rented alternatives of a scenario cost: as stated, or in the price table."""

from collections.abc import Sequence
from pathlib import Path

from collector.access.choices import HourlyPrice
from collector.access.scenario import Alternative, Rent, Scenario
from collector.prices.offers import find_gpu_offers, find_machine_offers
from collector.prices.table import PriceRow, PriceTable, Purchase
from runner.price_tables.loading import load_prices
from runner.yaml_files.errors import ErrorKind
from runner.yaml_files.node import Node
from runner.yaml_files.wording import join_words


def look_up_prices(scenario: Scenario, tree: Node) -> dict[str, HourlyPrice]:
    """Return the price of an hour of one GPU, by the name of each rented alternative.

    YamlError, at its place in `tree`, where the price table has none. A path of a table is taken from the directory of
    the scenario's file.
    """
    rented = [(place, found) for place, found in enumerate(scenario.alternatives) if found.rent is not None]
    table = None
    prices = {}
    for place, alternative in rented:
        rent = alternative.rent
        assert rent is not None
        if rent.price_per_hour is not None:
            prices[alternative.name] = HourlyPrice(amount=rent.price_per_hour)
            continue
        table = table or _load_table(scenario, tree)
        node = tree.find_nearest(f"alternatives[{place}].rent")
        prices[alternative.name] = _find_price(table, alternative, rent, node)
    return prices


def _load_table(scenario: Scenario, tree: Node) -> PriceTable:
    path = None if scenario.prices is None else Path(tree.file).parent / scenario.prices
    table = load_prices(path)
    if table.currency != scenario.currency:
        message = (
            f"found {scenario.currency}, and the price table is in {table.currency}; state prices, or use its currency"
        )
        raise tree.find_nearest("currency").error(ErrorKind.CONFLICT, message, key="currency")
    return table


def _find_price(table: PriceTable, alternative: Alternative, rent: Rent, node: Node) -> HourlyPrice:
    purchase: Purchase = "spot" if rent.spot else "on-demand"
    offers = [row for row in _list_offers(table, alternative, rent) if row.purchase == purchase]
    if not offers:
        raise node.error(ErrorKind.NOT_FOUND, _explain_missing(table, alternative, rent, purchase))
    row = min(offers, key=lambda row: row.compute_hourly_price(1))
    part = f", one of its {row.gpus_per_machine} GPUs" if row.gpus_per_machine > 1 else ""
    return HourlyPrice(amount=row.compute_hourly_price(1), source=f"{row.place}{part}, {row.date}, {row.source}")


def _list_offers(table: PriceTable, alternative: Alternative, rent: Rent) -> Sequence[PriceRow]:
    if rent.machine is not None:
        return [row for row in find_machine_offers(table, rent.machine, rent.region) if row.gpu is not None]
    return find_gpu_offers(table, alternative.kind)


def _explain_missing(table: PriceTable, alternative: Alternative, rent: Rent, purchase: Purchase) -> str:
    what = f"machine {rent.machine}" if rent.machine is not None else f"GPU {alternative.kind}"
    where = f" in {rent.region}" if rent.region is not None else ""
    gpus = sorted({row.gpu for row in table.prices if row.gpu is not None and row.purchase == purchase})
    return (
        f"the price table has no {purchase} price of the {what}{where}; give price_per_hour, or a kind or machine that "
        f"it has; its GPUs are {join_words(gpus)}"
    )
