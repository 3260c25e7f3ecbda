"""What a node of a pool costs: by its machine type, else by the profile."""

from pathlib import Path

import pytest

from bench.errors import UserError
from runner.estimates import find_pool_prices, price_profile
from runner.profiles.loading import find_profile
from runner.profiles.model import Profile


def load_profile(**prices: float) -> Profile:
    profile = find_profile("gke", "")
    pools = {
        device: pool.model_copy(update={"price_per_hour": prices.get(device)}) for device, pool in profile.pools.items()
    }
    return profile.model_copy(update={"pools": pools})


def test_a_machine_type_goes_before_the_profile() -> None:
    found = find_pool_prices(load_profile(cpu=0.4, gpu=0.6), {"gpu": "n1-standard-4"}, None)
    assert (found["cpu"].per_hour, found["cpu"].source) == (0.4, "profile gke")
    # The row with the T4, not that of the bare machine.
    assert (found["gpu"].per_hour, found["gpu"].source) == (
        0.539999,
        "GKE us-central1 n1-standard-4 (T4), 2026-11-22",
    )
    assert find_pool_prices(load_profile(gpu=0.6), {}, None).keys() == {"gpu"}
    assert find_pool_prices(None, {"cpu": "n1-standard-4"}, None)["cpu"].per_hour == 0.189999


def test_the_cheapest_region_counts() -> None:
    (price,) = find_pool_prices(None, {"cpu": "n2-standard-8"}, None).values()
    assert price.source.startswith("GKE us-central1 ")


def test_a_profile_takes_the_prices() -> None:
    profile = load_profile(cpu=0.4)
    priced = price_profile(profile, find_pool_prices(profile, {"gpu": "g4dn.xlarge"}, None))
    assert {device: pool.price_per_hour for device, pool in priced.pools.items()} == {"cpu": 0.4, "gpu": 0.526}
    assert priced.currency == "USD"


def test_prices_of_two_currencies_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "prices.yaml"
    path.write_text(
        "title: Ours\ncurrency: EUR\nprices:\n"
        "  - {cloud: a, region: b, machine: box, price_per_hour: 1, gpu: T4, vcpus: 4, date: 2026-01-01, source: c}\n"
    )
    assert find_pool_prices(load_profile(), {"gpu": "box"}, path)["gpu"].currency == "EUR"
    with pytest.raises(UserError, match=r"its price is in EUR, another one of the profile in another currency"):
        find_pool_prices(load_profile(cpu=0.4), {"gpu": "box"}, path)


@pytest.mark.parametrize(
    ("device", "machine", "message"),
    [
        ("gpu", "g4dn.large", "has no such machine type; did you mean 'g4dn.xlarge'?"),
        ("gpu", "m6i.xlarge", "the price table has no on-demand price of it with a GPU"),
        ("cpu", "g4dn.xlarge", "the price table has no on-demand price of it without a GPU"),
    ],
)
def test_a_machine_type_without_a_price_is_one_message(device: str, machine: str, message: str) -> None:
    machines = {"gpu": {"gpu": machine}, "cpu": {"cpu": machine}}[device]
    with pytest.raises(UserError, match=f"--machine {device}={machine}: ") as caught:
        find_pool_prices(None, machines, None)  # type: ignore[arg-type]
    assert message in str(caught.value)
