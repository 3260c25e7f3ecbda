"""Prices of rented alternatives: as stated, or those of a price table."""

import json
from pathlib import Path
from typing import Any

import pytest

from access_scenarios import describe_scenario
from collector.access.choices import HourlyPrice
from runner.access_scenarios.loading import load_scenario
from runner.access_scenarios.prices import look_up_prices
from runner.yaml_files.errors import YamlError

TABLE = """\
title: Ours
currency: EUR
prices:
  - {cloud: ours, region: cellar, machine: box, price_per_hour: 0.45, gpu: T4, vcpus: 8, date: 2026-01-31, source: a}
  - {cloud: ours, region: attic, machine: rack, price_per_hour: 1.6, gpu: T4, num_gpus: 4, vcpus: 8, date: 2026-01-31,
     source: b}
  - {cloud: ours, region: cellar, machine: box, purchase: spot, price_per_hour: 0.1, gpu: T4, vcpus: 8,
     date: 2026-01-31, source: c}
  - {cloud: ours, region: cellar, machine: plain, price_per_hour: 0.01, vcpus: 8, date: 2026-01-31, source: d}
"""


def look_up(folder: Path, currency: str = "EUR", **rent: Any) -> HourlyPrice:
    (folder / "prices.yaml").write_text(TABLE)
    alternatives = [{"name": "rent", "kind": "T4", "gpus": 4, "rent": rent}]
    given = describe_scenario(alternatives=alternatives, prices="prices.yaml", currency=currency)
    (folder / "ours.yaml").write_text(json.dumps(given))
    return look_up_prices(*load_scenario(str(folder / "ours.yaml")))["rent"]


@pytest.mark.parametrize(
    ("rent", "amount", "source"),
    [
        ({"price_per_hour": 0.3}, 0.3, ""),
        ({"machine": "box"}, 0.45, "ours cellar box (T4), 2026-01-31, a"),
        ({}, 0.4, "ours attic rack (4 x T4), one of its 4 GPUs, 2026-01-31, b"),  # the cheapest of the kind
        ({"spot": True, "interruptions_per_hour": 0.1}, 0.1, "ours cellar box (T4), spot, 2026-01-31, c"),
    ],
)
def test_a_price_is_as_stated_or_that_of_the_table(
    tmp_path: Path, rent: dict[str, Any], amount: float, source: str
) -> None:
    price = look_up(tmp_path, **rent)
    assert price.amount == pytest.approx(amount)
    assert price.source == source


@pytest.mark.parametrize(
    ("rent", "currency", "message"),
    [
        (
            {"machine": "barn"},
            "EUR",
            "alternatives[0].rent: the price table has no on-demand price of the machine barn",
        ),
        ({"machine": "box", "region": "attic"}, "EUR", "machine box in attic"),
        ({"machine": "plain"}, "EUR", "no on-demand price of the machine plain; give price_per_hour, or a kind"),
        ({}, "USD", "currency: found USD, and the price table is in EUR"),
    ],
)
def test_a_price_that_is_not_there_is_an_error(
    tmp_path: Path, rent: dict[str, Any], currency: str, message: str
) -> None:
    with pytest.raises(YamlError) as caught:
        look_up(tmp_path, currency, **rent)
    assert message in str(caught.value)
