"""What repeats take and cost: by what they or the nearest cells took before, or by a guess."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bench.errors import UserError
from bench.registry import Device
from bench.schema import Cell, PlannedCell, Run
from bench.store import Store
from factories import START, make_cell, make_failed_result, make_result, make_run, put_documents
from runner.estimates import (
    NOT_INCLUDED,
    Duration,
    PoolPrice,
    describe_estimates,
    estimate_repeats,
    find_pool_prices,
    read_durations,
)
from runner.matrix import Repeat
from runner.profiles.loading import find_profile
from runner.profiles.model import Profile

KNOWN = make_cell()


def put(store: Store, run_id: str, *seconds: float, cell: Cell = KNOWN, day: int = 0, **fields: Any) -> Run:
    """Store a run of one cell whose repeats took so many seconds from start to end."""
    run = make_run([cell], repeats=len(seconds), run_id=run_id, created_at=START + timedelta(days=day), **fields)
    results = [
        make_result(cell, repeat=number, run_id=run_id, started_at=START, finished_at=START + timedelta(seconds=taken))
        for number, taken in enumerate(seconds, start=1)
    ]
    put_documents(store, run, results)
    return run


def read(store: Store, *cells: Cell) -> dict[str, tuple[float, bool]]:
    found = read_durations(store, make_run(cells), lambda _: True)
    return {cell_id: (one.seconds, one.is_own) for cell_id, one in found.items()}


def test_the_median_of_what_ended_well_counts(store: Store) -> None:
    put(store, "first", 20.0, 40.0)
    put(store, "second", 90.0, day=1)
    failed = make_failed_result(KNOWN, run_id="bad", started_at=START, finished_at=START + timedelta(hours=1))
    put_documents(store, make_run([KNOWN], run_id="bad"), [failed])
    assert read(store, KNOWN) == {KNOWN.cell_id: (40.0, True)}


def test_the_nearest_cells_say_how_long_an_unknown_one_takes(store: Store) -> None:
    put(store, "batch", 10.0, cell=make_cell(batch_size=8))
    put(store, "phase", 90.0, cell=make_cell(batch_size=8, phase="infer", precision="bf16"), day=1)
    put(store, "model", 500.0, cell=make_cell(model="vgg16"), day=2)
    put(store, "framework", 300.0, cell=make_cell(framework="jax", mode="compiled"), day=2)
    wanted, other = make_cell(batch_size=16), make_cell(device="gpu")
    new = make_cell(framework="jax", mode="compiled", phase="infer")
    assert read(store, wanted, other, new) == {wanted.cell_id: (10.0, False), new.cell_id: (300.0, False)}


CPU, OTHER_CPU, GPU = make_cell(), make_cell(batch_size=8), make_cell(device="gpu")
GUESS = "nothing was measured on this device here before, and large models take longer"
NEAR = "as the nearest cells on this device took here"


def make_repeats(cell: Cell, number: int = 3, timeout_seconds: float = 600.0) -> list[Repeat]:
    planned = PlannedCell(cell=cell, repeats=number, timeout_seconds=timeout_seconds)
    return [Repeat(planned=planned, number=one) for one in range(1, number + 1)]


@pytest.mark.parametrize(
    ("own", "near", "lines"),
    [
        (  # six repeats of 27 s and three of 16 s
            {},
            {},
            [
                f"cpu: 6 repeats take about 3 min, at most 1 h 0 min (a guess, 27 s each: {GUESS})",
                f"gpu: 3 repeats take about 48 s, at most 30 min (a guess, 16 s each: {GUESS})",
            ],
        ),
        (  # three repeats of 100 s and three of 20 s; three of 10 s
            {CPU: 100.0},
            {OTHER_CPU: 20.0, GPU: 10.0},
            [
                f"cpu: 6 repeats take about 6 min, at most 1 h 0 min (3 as they took here before; 3 {NEAR})",
                f"gpu: 3 repeats take about 30 s, at most 30 min ({NEAR})",
            ],
        ),
        ({CPU: 1000.0}, {OTHER_CPU: 601.0}, ["cpu: 6 repeats take about 1 h 0 min, ", "gpu: "]),  # no more than limits
    ],
)
def test_repeats_take_what_they_or_the_nearest_took_or_a_guess(
    own: dict[Cell, float], near: dict[Cell, float], lines: list[str]
) -> None:
    repeats = [repeat for cell in (CPU, OTHER_CPU, GPU) for repeat in make_repeats(cell)]
    durations = {cell.cell_id: Duration(seconds=seconds, is_own=True) for cell, seconds in own.items()}
    durations |= {cell.cell_id: Duration(seconds=seconds, is_own=False) for cell, seconds in near.items()}
    found = list(describe_estimates(estimate_repeats(repeats, durations, {})))
    assert all(line.startswith(expected) for line, expected in zip(found, lines, strict=True)), found


def make_price(per_hour: float) -> PoolPrice:
    return PoolPrice(per_hour=per_hour, currency="EUR", source="books")


def test_what_repeats_cost_stands_beside_their_time_and_is_summed_where_all_have_a_price() -> None:
    """Two of 0.1 h, and three of 0.2 h."""
    repeats = [*make_repeats(CPU, 2, 3600), *make_repeats(GPU, 3, 7200)]
    durations = {CPU.cell_id: Duration(seconds=360.0, is_own=True), GPU.cell_id: Duration(seconds=720.0, is_own=True)}
    prices: dict[Device, PoolPrice] = {"cpu": make_price(0.5), "gpu": make_price(2.0)}
    lines = list(describe_estimates(estimate_repeats(repeats, durations, prices), max_cost=1.0))
    assert lines[1:] == [
        "gpu: 3 repeats take about 36 min, at most 6 h 0 min (as they took here before); about 1.20 EUR, at most 12.00 "
        "(2 per hour, books)",
        f"in all: about 0.80 node-hours, at most 8.00; about 1.30 EUR, at most 13.00; {NOT_INCLUDED}",
        "--max-cost 1: the run would end before all of it is measured",
    ]
    del prices["cpu"]
    lines = list(describe_estimates(estimate_repeats(repeats, durations, prices), max_cost=1.0))
    assert lines[2:] == ["no price of all: name the others with --machine, or with price_per_hour in the profile"]
    assert list(describe_estimates([])) == []


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
    assert (found["gpu"].per_hour, found["gpu"].source) == (0.539999, "GKE us-central1 n1-standard-4 (T4), 2026-11-22")
    assert find_pool_prices(load_profile(gpu=0.6), {}, None).keys() == {"gpu"}
    assert find_pool_prices(None, {"cpu": "n1-standard-4"}, None)["cpu"].per_hour == 0.189999


def test_prices_of_two_currencies_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "prices.yaml"
    path.write_text(
        "title: Ours\ncurrency: EUR\nprices:\n"
        "  - {cloud: a, region: b, machine: box, price_per_hour: 1, gpu: T4, vcpus: 4, date: 2026-01-01, source: c}\n"
    )
    assert find_pool_prices(load_profile(), {"gpu": "box"}, path)["gpu"].currency == "EUR"
    with pytest.raises(UserError, match=r"its price is in EUR, another one of the profile in another currency"):
        find_pool_prices(load_profile(cpu=0.4), {"gpu": "box"}, path)


@pytest.mark.parametrize(("device", "kind"), [("gpu", "with a GPU"), ("cpu", "without a GPU")])
def test_a_machine_type_without_a_price_is_one_message(device: Device, kind: str) -> None:
    machine = {"gpu": "m6i.xlarge", "cpu": "g4dn.xlarge"}[device]
    with pytest.raises(UserError, match=f"{device}={machine}: the price table has no on-demand price of it {kind}"):
        find_pool_prices(None, {device: machine}, None)
