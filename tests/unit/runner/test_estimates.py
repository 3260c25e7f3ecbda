"""What repeats take and cost: by what they or the nearest cells took before, by a guess, or by their limits."""

from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bench.errors import UserError
from bench.schema import Cell, Cluster, PlannedCell, Run
from bench.store import Store
from factories import START, make_cell, make_failed_result, make_result, make_run, put_documents
from runner.estimates import (
    NOT_INCLUDED,
    PoolPrice,
    describe_costs,
    estimate_repeats,
    find_pool_prices,
    is_at_place,
    price_profile,
    read_alike_runs,
    read_durations,
    read_near_durations,
)
from runner.matrix.plan import Repeat
from runner.profiles.loading import find_profile
from runner.profiles.model import Profile

KNOWN, OTHER = make_cell(), make_cell(batch_size=8)


def put(store: Store, run_id: str, *seconds: float, cell: Cell = KNOWN, day: int = 0, **fields: Any) -> Run:
    """Store a run of one cell whose repeats took so many seconds from start to end."""
    run = make_run([cell], repeats=len(seconds), run_id=run_id, created_at=START + timedelta(days=day), **fields)
    results = [
        make_result(cell, repeat=number, run_id=run_id, started_at=START, finished_at=START + timedelta(seconds=taken))
        for number, taken in enumerate(seconds, start=1)
    ]
    put_documents(store, run, results)
    return run


def read_all(store: Store) -> list[Run]:
    return read_alike_runs(store, lambda _: True)


def test_the_median_of_what_ended_well_counts(store: Store) -> None:
    put(store, "first", 20.0, 40.0)
    put(store, "second", 90.0, day=1)
    failed = make_failed_result(KNOWN, run_id="bad", started_at=START, finished_at=START + timedelta(hours=1))
    put_documents(store, make_run([KNOWN], run_id="bad"), [failed])
    assert read_durations(store, read_all(store), make_run([KNOWN, OTHER])) == {KNOWN.cell_id: 40.0}


def test_the_nearest_cells_say_how_long_an_unknown_one_takes(store: Store) -> None:
    put(store, "batch", 10.0, cell=make_cell(batch_size=8))
    put(store, "phase", 90.0, cell=make_cell(batch_size=8, phase="infer", precision="bf16"), day=1)
    put(store, "model", 500.0, cell=make_cell(model="vgg16"), day=2)
    put(store, "framework", 500.0, cell=make_cell(framework="jax", mode="compiled"), day=2)
    wanted, other = make_cell(batch_size=16), make_cell(device="gpu")
    found = read_near_durations(store, read_all(store), make_run([wanted, other]), {})
    assert found == {wanted.cell_id: 10.0}
    assert read_near_durations(store, read_all(store), make_run([wanted]), {wanted.cell_id}) == {}


def test_runs_at_other_places_say_nothing(store: Store) -> None:
    def make_cluster(context: str) -> Cluster:
        return Cluster(context=context, namespace="bench", profile="gke")

    here = put(store, "here", 10.0)
    put(store, "elsewhere", 99.0, hostname="bench-2")
    put(store, "cluster", 50.0, executor="kubernetes", cluster=make_cluster("lab"))
    assert read_durations(store, read_alike_runs(store, partial(is_at_place, here)), here) == {KNOWN.cell_id: 10.0}
    there = make_run([KNOWN], executor="kubernetes", cluster=make_cluster("lab"), hostname="laptop")
    assert read_durations(store, read_alike_runs(store, partial(is_at_place, there)), there) == {KNOWN.cell_id: 50.0}
    assert not is_at_place(there, make_run(executor="kubernetes", cluster=make_cluster("other")))


CPU, OTHER_CPU, GPU = make_cell(), make_cell(batch_size=8), make_cell(device="gpu")
GUESS = "nothing like them was measured here before, and large models take longer"
NEAR = "as the nearest cells of the same model, framework and device took here"


def make_repeats(cell: Cell, number: int = 3, timeout_seconds: float = 600.0) -> list[Repeat]:
    planned = PlannedCell(cell=cell, repeats=number, timeout_seconds=timeout_seconds)
    return [Repeat(planned=planned, number=one) for one in range(1, number + 1)]


@pytest.mark.parametrize(
    ("durations", "near", "lines"),
    [
        (  # six repeats of 27 s and three of 16 s
            {},
            {},
            [
                f"cpu: 6 repeats take about 3 min (a guess, 27 s each: {GUESS})",
                f"gpu: 3 repeats take about 48 s (a guess, 16 s each: {GUESS})",
            ],
        ),
        (  # three repeats of 100 s, and three that count as much; three of 40 s
            {CPU.cell_id: 100.0, GPU.cell_id: 40.0},
            {},
            [
                "cpu: 6 repeats take about 10 min (3 as they took here before; 3 as the mean of the others)",
                "gpu: 3 repeats take about 2 min (as they took here before)",
            ],
        ),
        (  # three repeats of 100 s and three of 20 s; three of 10 s
            {CPU.cell_id: 100.0},
            {OTHER_CPU.cell_id: 20.0, GPU.cell_id: 10.0},
            [
                f"cpu: 6 repeats take about 6 min (3 as they took here before; 3 {NEAR})",
                f"gpu: 3 repeats take about 30 s ({NEAR})",
            ],
        ),
        ({CPU.cell_id: 1000.0}, {}, ["cpu: 6 repeats take about 1 h 0 min", "gpu: "]),  # no more than their limits
    ],
)
def test_repeats_here_take_what_they_or_the_nearest_took_or_a_guess(
    durations: dict[str, float], near: dict[str, float], lines: list[str]
) -> None:
    repeats = [repeat for cell in (CPU, OTHER_CPU, GPU) for repeat in make_repeats(cell)]
    found = [one.describe_wait() for one in estimate_repeats(repeats, durations, near=near)]
    assert all(line.startswith(expected) for line, expected in zip(found, lines, strict=True)), found


def make_price(per_hour: float) -> PoolPrice:
    return PoolPrice(per_hour=per_hour, currency="EUR", source="books")


def test_on_nodes_known_cells_count_by_their_results_and_others_by_their_limits() -> None:
    """Two of 0.1 h; three of 0.2 h and one of half an hour."""
    unknown = make_cell(device="gpu", batch_size=8)
    repeats = [*make_repeats(CPU, 2, 3600), *make_repeats(GPU, 3, 7200), *make_repeats(unknown, 1, 1800)]
    durations = {CPU.cell_id: 360.0, GPU.cell_id: 720.0}
    prices = {"cpu": make_price(0.5), "gpu": make_price(2.0)}
    assert list(describe_costs(estimate_repeats(repeats, durations, prices=prices), max_cost=2.0)) == [  # type: ignore[arg-type]
        "cpu: 2 repeats take about 0.20 node-hours, at most 2.00, 2 of them by earlier results; about 0.10 EUR, "
        "at most 1.00 (0.5 per hour, books)",
        "gpu: 4 repeats take about 1.10 node-hours, at most 6.50, 3 of them by earlier results; about 2.20 EUR, "
        "at most 13.00 (2 per hour, books)",
        f"in all: about 1.30 node-hours, at most 8.50; about 2.30 EUR, at most 14.00; {NOT_INCLUDED}",
        "--max-cost 2: the run would end before all of it is measured",
    ]


def test_without_a_price_there_is_no_sum_of_money() -> None:
    repeats = [*make_repeats(CPU, 1, 3600), *make_repeats(GPU, 1, 3600)]
    assert list(describe_costs(estimate_repeats(repeats, {}, prices={"gpu": make_price(2.0)}), max_cost=0.1)) == [
        "cpu: 1 repeats take at most 1.00 node-hours, by their time limits; no price: give --machine, or "
        "price_per_hour in the profile",
        "gpu: 1 repeats take at most 1.00 node-hours, by their time limits; at most 2.00 EUR (2 per hour, books)",
        f"in all: at most 2.00 node-hours; {NOT_INCLUDED}",
    ]
    assert list(describe_costs([])) == []


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
