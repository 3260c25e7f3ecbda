"""Makes price tables for tests, with prices and powers that are easy to compute with by hand."""

from datetime import date
from typing import Any

from collector.prices.table import CarbonRow, PowerRow, PriceRow, PriceTable

SECOND = 3600.0
"""The price per hour of a machine that costs 1 per second."""


def make_price(machine: str, price_per_second: float, **overrides: Any) -> PriceRow:
    """Return a machine of the cloud X in the region north; any field can be overridden."""
    fields: dict[str, Any] = {
        "cloud": "X",
        "region": "north",
        "machine": machine,
        "price_per_hour": price_per_second * SECOND,
        "vcpus": 2,
        "date": date(2026, 1, 1),
        "source": "our books",
    }
    return PriceRow(**(fields | overrides))


def make_price_table(*prices: PriceRow) -> PriceTable:
    """Return these prices, a grid of 360 g/kWh in north with a PUE of 1.25, and a vCPU of 1 W idle and 4 W busy."""
    day = date(2026, 1, 1)
    return PriceTable(
        title="Books",
        currency="EUR",
        prices=prices,
        carbon=(CarbonRow(cloud="X", region="north", grams_per_kwh=360, pue=1.25, year=2025, source="grid"),),
        power=(
            PowerRow(kind="vcpu", device="any", idle_watts=1, full_watts=4, date=day, source="meter"),
            PowerRow(kind="gpu", device="T4", full_watts=70, date=day, source="datasheet"),
        ),
    )
