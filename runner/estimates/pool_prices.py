"""Find what a node of each pool costs per hour: by the machine type that the user names, else by the profile."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.errors import UserError
from bench.registry import Device
from collector.prices.table import PriceTable, find_machine_offers
from runner.price_tables.loading import check_machines, load_prices
from runner.profiles.model import Profile


@dataclass(frozen=True, kw_only=True)
class PoolPrice:
    """The price of a node."""

    per_hour: float
    currency: str
    source: str
    """Where it is from, in words."""


def find_pool_prices(
    profile: Profile | None, machines: Mapping[Device, str], prices: Path | None
) -> dict[Device, PoolPrice]:
    """Return the price of each pool that has one. Raise UserError where the prices have different currencies.

    `machines`: machine types by device, looked up in the price table `prices` (None: the shipped one), on demand, in
    the cheapest region. They go before the profile's `price_per_hour`.
    """
    found: dict[Device, PoolPrice] = {}
    if profile is not None:
        for device, pool in profile.pools.items():
            if pool.price_per_hour is not None:
                source = f"profile {profile.name}"
                found[device] = PoolPrice(per_hour=pool.price_per_hour, currency=profile.currency, source=source)
    if machines:
        table = load_prices(prices)
        check_machines(table, machines, prices)
        found |= {device: _find_price(table, device, machine) for device, machine in machines.items()}
    currencies = sorted({price.currency for price in found.values()})
    if len(currencies) > 1:
        raise UserError(
            f"--machine: its price is in {table.currency}, another one of the profile in another currency "
            f"({', '.join(currencies)}); name the machines of all pools, or none"
        )
    return found


def price_profile(profile: Profile, prices: Mapping[Device, PoolPrice]) -> Profile:
    """Return the profile with these prices in its pools, so that the cap on the cost of a run can use them."""
    pools = {
        device: pool.model_copy(update={"price_per_hour": prices[device].per_hour}) if device in prices else pool
        for device, pool in profile.pools.items()
    }
    currency = next((price.currency for price in prices.values()), profile.currency)
    return profile.model_copy(update={"pools": pools, "currency": currency})


def _find_price(table: PriceTable, device: Device, machine: str) -> PoolPrice:
    """Return the cheapest on-demand price of a machine type, with a GPU for the pool `gpu` and without for `cpu`."""
    rows = [
        row
        for row in find_machine_offers(table, machine)
        if row.purchase == "on-demand" and (row.gpu is not None) == (device == "gpu")
    ]
    if not rows:
        kind = "with a GPU" if device == "gpu" else "without a GPU"
        raise UserError(f"--machine {device}={machine}: the price table has no on-demand price of it {kind}")
    row = min(rows, key=lambda found: found.price_per_hour)
    return PoolPrice(per_hour=row.price_per_hour, currency=table.currency, source=f"{row.place}, {row.date}")
