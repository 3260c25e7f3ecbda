"""Which machines of a price table have a device, and what their hours cost."""

from datetime import date
from typing import Any

import pytest

from collector.prices.table import (
    PowerRow,
    PriceRow,
    PriceTable,
    find_cpu_offers,
    find_gpu_offers,
    find_power,
    has_words,
)
from price_tables import SECOND, make_price


def make_row(machine: str, price: float, **fields: Any) -> PriceRow:
    return make_price(machine, price / SECOND, **fields)


TABLE = PriceTable(
    title="Books",
    prices=(
        make_row("one", 5.0, gpu="H100 80GB HBM3"),
        make_row("eight", 32.0, gpu="H100 80GB HBM3", num_gpus=8),
        make_row("one", 2.0, gpu="H100 80GB HBM3", purchase="spot"),
        make_row("nvl", 3.0, gpu="H100 NVL"),
        make_row("small", 0.5, gpu="T4"),
        make_row("xeon", 0.4, cpu="Platinum 8481C"),
        make_row("other", 0.3),
        make_row("xeon", 0.6, cpu="Platinum 8481C", region="south"),
    ),
)


def test_offers_of_a_gpu_come_by_their_price_per_gpu() -> None:
    offers = find_gpu_offers(TABLE, "NVIDIA H100 80GB HBM3")
    assert [(row.machine, row.purchase) for row in offers] == [
        ("one", "spot"),
        ("eight", "on-demand"),
        ("one", "on-demand"),
    ]
    assert [row.compute_hourly_price(1) for row in offers] == [2.0, 4.0, 5.0]


def test_a_cell_on_several_gpus_needs_a_machine_that_has_them() -> None:
    (row,) = find_gpu_offers(TABLE, "NVIDIA H100 80GB HBM3", num_gpus=2)
    assert (row.machine, row.compute_hourly_price(2)) == ("eight", 8.0)
    assert row.compute_hourly_price(2, is_whole=True) == 32.0


def test_a_slice_of_a_gpu_has_no_price() -> None:
    assert find_gpu_offers(TABLE, "NVIDIA H100 80GB HBM3 MIG 1g.10gb") == []


def test_a_cpu_is_found_by_its_model_alone() -> None:
    offers = find_cpu_offers(TABLE, "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz")
    assert [(row.machine, row.region) for row in offers] == [("xeon", "north"), ("xeon", "south")]
    assert offers[0].compute_hourly_price(0) == 0.4
    assert find_cpu_offers(TABLE, "Intel(R) Xeon(R) Gold 6148") == []


def test_the_power_with_the_most_words_counts_and_any_cpu_is_the_rest() -> None:
    def make_power(device: str, kind: str, watts: float) -> dict[str, object]:
        return {"kind": kind, "device": device, "idle_watts": 1.0, "full_watts": watts}

    rows = [("A100", "gpu", 400.0), ("A100 PCIe", "gpu", 300.0), ("any", "vcpu", 3.5), ("Gold 6148", "vcpu", 4.0)]
    power = tuple(
        PowerRow.model_validate(make_power(*row) | {"date": date(2026, 1, 1), "source": "books"}) for row in rows
    )
    table = TABLE.model_copy(update={"power": power})
    found = [
        find_power(table, "gpu", "NVIDIA A100-SXM4-40GB"),
        find_power(table, "gpu", "NVIDIA A100 PCIe"),
        find_power(table, "vcpu", "Intel Xeon Gold 6148"),
        find_power(table, "vcpu", "AMD EPYC"),
        find_power(table, "gpu", "Tesla T4"),
    ]
    assert [row and row.full_watts for row in found] == [400.0, 300.0, 4.0, 3.5, None]


@pytest.mark.parametrize(
    ("name", "words", "expected"),
    [
        ("Tesla T4", "T4", True),
        ("NVIDIA A100-SXM4-40GB", "A100 40GB", True),
        ("NVIDIA A100-SXM4-80GB", "A100 40GB", False),
        ("NVIDIA L40S", "L4", False),
        ("NVIDIA H100 PCIe", "H100 80GB HBM3", False),
        ("NVIDIA H200", "nvidia h200", True),
        ("NVIDIA H200", "nvidia", False),
    ],
)
def test_a_name_holds_whole_words(name: str, words: str, expected: bool) -> None:
    assert has_words(name, words) is expected
