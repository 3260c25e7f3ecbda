"""docs/kubernetes.md: its prices are those of the price table, of machines that its commands make."""

import re
from pathlib import Path

import pytest

from collector.prices.table import find_machine_offers
from runner.price_tables import load_prices

TEXT = (Path(__file__).parents[3] / "docs" / "kubernetes.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("kind", "gpu", "vcpus"), [("a node with a T4", "T4", 4), ("a CPU node", None, 8)])
def test_a_price_is_that_of_the_machines_that_the_commands_make(kind: str, gpu: str | None, vcpus: int) -> None:
    made = set(re.findall(r"--(?:machine-type|node-type|node-vm-size) (\S+)", TEXT))
    ((row, low, high),) = re.findall(rf"^\| ({kind}\b[^|]+) \| ([\d.]+) to ([\d.]+) \|$", TEXT, re.M)
    machines = {machine for machine in made if machine in row}
    offers = [
        offer
        for machine in machines
        for offer in find_machine_offers(load_prices(), machine)
        if (offer.gpu, offer.purchase) == (gpu, "on-demand") and offer.region.startswith(("us-", "east"))
    ]

    assert {offer.cloud for offer in offers} == {"GKE", "EKS", "AKS"}
    assert {offer.machine for offer in offers} == machines
    assert f"{vcpus} vCPUs" in row
    assert {offer.vcpus for offer in offers} == {vcpus}
    prices = [offer.price_per_hour for offer in offers]
    assert (f"{min(prices):.3f}", f"{max(prices):.3f}") == (low, high)
