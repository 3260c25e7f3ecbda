"""Define a table of prices, carbon intensities and power draws, as people write it in YAML, and find machines in it."""

import datetime
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bench.schema.document import Count, Document

Price = Annotated[float, Field(ge=1e-6, le=1e12)]
"""Of an hour, a machine or a budget, in any currency: a machine that costs a million dollars, in a currency of which a
dollar buys a million."""
Watts = Annotated[float, Field(ge=0, le=1e6)]
"""Of one chip or machine, as a table states it: a rack takes a tenth of the most."""
Words = Annotated[str, Field(min_length=1, max_length=500)]
Purchase = Literal["on-demand", "spot"]
PowerKind = Literal["gpu", "vcpu"]
Currency = Annotated[str, Field(pattern=r"^[A-Z]{3}$")]


class PriceRow(Document):
    """What one machine costs per hour in one region, bought in one way."""

    cloud: Words
    """`GKE`, `EKS` or `AKS` in the shipped table; any name in a table of one's own."""
    region: Words
    machine: Words
    """The machine type, as the label `node.kubernetes.io/instance-type` of a node has it."""
    purchase: Purchase = "on-demand"
    price_per_hour: Price
    """Of the whole machine, in the currency of the table."""
    gpu: Words | None = None
    """Words that the name which NVML gives the GPU holds, such as `H100 80GB HBM3`. None: the machine has none."""
    num_gpus: Count | None = None
    """GPUs of the machine; 1 where a row with a `gpu` leaves it out."""
    cpu: Words | None = None
    """Words that the model name of the machine's CPU holds. None: not known."""
    vcpus: Count
    date: datetime.date
    """The day of the price list; the day on which it was read where the list has none."""
    source: Words
    """The address of the price list."""
    remark: Words | None = None

    @model_validator(mode="after")
    def _check_gpus(self) -> Self:
        if self.gpu is None and self.num_gpus is not None:
            raise ValueError("num_gpus: is given without `gpu`; say which GPU the machine has, or leave both out")
        return self

    @property
    def gpus_per_machine(self) -> int:
        """The number of GPUs of the machine; 0 of a CPU node."""
        return 0 if self.gpu is None else self.num_gpus or 1

    @property
    def place(self) -> str:
        """The machine with cloud, region and GPUs: `EKS us-east-1 g4dn.xlarge (T4)`, with `, spot` where it is that."""
        number = f"{self.gpus_per_machine} x " if self.gpus_per_machine > 1 else ""
        gpus = "" if self.gpu is None else f" ({number}{self.gpu})"
        return f"{self.cloud} {self.region} {self.machine}{gpus}" + ("" if self.purchase == "on-demand" else ", spot")

    def compute_hourly_price(self, num_gpus: int, *, is_whole: bool = False) -> float:
        """Return the price per hour of a machine for `num_gpus` GPUs, of which it has as many or more.

        Of a machine with more GPUs it is their share of the price, as if others paid for the rest; `is_whole`: all of
        it. A CPU node always counts whole.
        """
        if is_whole or not num_gpus:
            return self.price_per_hour
        return self.price_per_hour * num_gpus / self.gpus_per_machine


class CarbonRow(Document):
    """What the electricity of one region emits."""

    cloud: Words
    region: Words
    grams_per_kwh: Annotated[float, Field(ge=0, le=10_000)]
    """Grams of CO2 equivalent per kWh from the region's grid, averaged over `year`."""
    pue: Annotated[float, Field(ge=1, le=10)] | None = None
    """Power usage effectiveness: energy of the data centre over that of its machines. None: not known, taken as 1."""
    year: Annotated[int, Field(ge=2000, le=2100)]
    source: Words


class PowerRow(Document):
    """States how much power a GPU or a vCPU takes, for estimates where nothing was measured."""

    kind: PowerKind
    device: Words
    """Words that the name of the GPU, or the model name of the CPU, holds. `any` of a vCPU: of every CPU."""
    idle_watts: Watts | None = None
    full_watts: Annotated[float, Field(ge=0.001, le=1e6)]
    date: datetime.date
    source: Words

    @model_validator(mode="after")
    def _check_watts(self) -> Self:
        if self.kind == "vcpu" and self.idle_watts is None:
            raise ValueError("idle_watts: is missing; the estimate of a vCPU needs its power when idle and when busy")
        if self.idle_watts is not None and self.idle_watts > self.full_watts:
            raise ValueError("idle_watts: is more than full_watts; swap them")
        return self


class PriceTable(Document):
    """Prices of machines, in one currency, with the carbon and the power that belong to them."""

    title: Words
    currency: Currency = "USD"
    """Of all prices, three letters as in ISO 4217."""
    prices: Annotated[tuple[PriceRow, ...], Field(min_length=1, max_length=10_000)]
    carbon: tuple[CarbonRow, ...] = ()
    power: tuple[PowerRow, ...] = ()

    @model_validator(mode="after")
    def _check_unique(self) -> Self:
        places = [(row.cloud, row.region, row.machine, row.gpu or "", row.purchase) for row in self.prices]
        if (index := _find_repeated(places)) is not None:
            raise ValueError(f"prices[{index}]: there is a row for {self.prices[index].place} already; keep one")
        regions = [(row.cloud, row.region) for row in self.carbon]
        if (index := _find_repeated(regions)) is not None:
            raise ValueError(f"carbon[{index}]: there is a row for {' '.join(regions[index])} already; keep one")
        return self

    def find_carbon(self, cloud: str, region: str) -> CarbonRow | None:
        return next((row for row in self.carbon if (row.cloud, row.region) == (cloud, region)), None)


def _find_repeated(keys: Sequence[tuple[str, ...]]) -> int | None:
    firsts = {key: index for index, key in reversed(list(enumerate(keys)))}
    return next((index for index, key in enumerate(keys) if firsts[key] != index), None)


# A slice of a GPU is a device of its own and has no price of its own in a list of machines.
SLICE_WORD = "mig"
ANY_CPU = "any"


def find_gpu_offers(table: PriceTable, gpu: str, *, num_gpus: int = 1) -> list[PriceRow]:
    """Return the machines with at least so many GPUs of this name, the lowest price per GPU first.

    `gpu`: the name that NVML gives it, or words of it, such as `T4` or `H100`. A slice (MIG) of a GPU has no offers.
    """
    if SLICE_WORD in split_name(gpu):
        return []
    found = [
        row
        for row in table.prices
        if row.gpu is not None
        and (has_words(gpu, row.gpu) or has_words(row.gpu, gpu))
        and row.gpus_per_machine >= num_gpus
    ]
    return sorted(found, key=lambda row: row.price_per_hour / row.gpus_per_machine)


def find_cpu_offers(table: PriceTable, cpu: str) -> list[PriceRow]:
    """Return the machines without GPUs whose `cpu` is this model, the lowest price first."""
    found = [row for row in table.prices if row.gpu is None and row.cpu is not None and has_words(cpu, row.cpu)]
    return sorted(found, key=lambda row: row.price_per_hour)


def find_machine_offers(table: PriceTable, machine: str) -> list[PriceRow]:
    return [row for row in table.prices if row.machine == machine]


def find_power(table: PriceTable, kind: PowerKind, name: str) -> PowerRow | None:
    """Return the power of a GPU or of a CPU's vCPUs; of several rows the one with the most words. None: not known."""
    rows = [row for row in table.power if row.kind == kind]
    exact = [row for row in rows if row.device != ANY_CPU and has_words(name, row.device)]
    if exact:
        return max(exact, key=lambda row: len(split_name(row.device)))
    return next((row for row in rows if row.device == ANY_CPU), None)


SHIPPED_PRICES = Path(__file__).parent / "prices.yaml"


# What vendors and people put before a model's name, or leave out.
OPTIONAL_WORDS = {"nvidia", "tesla", "geforce", "quadro"}


@cache
def split_name(name: str) -> frozenset[str]:
    """Return the words of a device's name that tell it from others, folded to lower case."""
    return frozenset(re.findall(r"[a-z0-9]+", name.casefold())) - OPTIONAL_WORDS


def has_words(name: str, words: str) -> bool:
    """Return whether a device's name holds all of `words`, as whole words and whatever their case.

    `T4` is in `Tesla T4`, and `A100 40GB` in `NVIDIA A100-SXM4-40GB`; `L4` is not in `NVIDIA L40S`. The vendor's words
    may be left out.
    """
    held, wanted = split_name(name), split_name(words)
    return bool(wanted) and wanted <= held
