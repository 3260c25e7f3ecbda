"""Find the machines of a price table on which a measured device, or a device by its name, can be had."""

from collections.abc import Iterable

from collector.device_names import has_words, split_name
from collector.prices.table import PowerKind, PowerRow, PriceRow, PriceTable, Purchase

# A slice of a GPU is a device of its own and has no price of its own in a list of machines.
SLICE_WORD = "mig"
ANY_CPU = "any"


def find_gpu_offers(
    table: PriceTable, gpu: str, *, num_gpus: int = 1, purchases: Iterable[Purchase] = ("on-demand", "spot")
) -> list[PriceRow]:
    """Return the machines with at least so many GPUs of this name, the lowest price per GPU first.

    `gpu`: the name that NVML gives it, or words of it, such as `T4` or `H100`. A slice (MIG) of a GPU has no offers.
    """
    if SLICE_WORD in split_name(gpu):
        return []
    allowed = set(purchases)
    found = [
        row
        for row in table.prices
        if row.gpu is not None
        and (has_words(gpu, row.gpu) or has_words(row.gpu, gpu))
        and row.gpus_per_machine >= num_gpus
        and row.purchase in allowed
    ]
    return sorted(found, key=lambda row: row.price_per_hour / row.gpus_per_machine)


def find_cpu_offers(
    table: PriceTable, cpu: str, *, purchases: Iterable[Purchase] = ("on-demand", "spot")
) -> list[PriceRow]:
    """Return the machines without GPUs whose `cpu` is this model, the lowest price first."""
    allowed = set(purchases)
    found = [
        row
        for row in table.prices
        if row.gpu is None and row.cpu is not None and has_words(cpu, row.cpu) and row.purchase in allowed
    ]
    return sorted(found, key=lambda row: row.price_per_hour)


def find_machine_offers(table: PriceTable, machine: str, region: str | None = None) -> list[PriceRow]:
    """Return the rows of a machine type, in one region or in all."""
    return [row for row in table.prices if row.machine == machine and region in (None, row.region)]


def find_power(table: PriceTable, kind: PowerKind, name: str) -> PowerRow | None:
    """Return the power of a GPU or of a CPU's vCPUs; of several rows the one with the most words. None: not known."""
    rows = [row for row in table.power if row.kind == kind]
    exact = [row for row in rows if row.device != ANY_CPU and has_words(name, row.device)]
    if exact:
        return max(exact, key=lambda row: len(split_name(row.device)))
    return next((row for row in rows if row.device == ANY_CPU), None)
