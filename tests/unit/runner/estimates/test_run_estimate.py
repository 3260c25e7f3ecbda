"""Node-hours and prices of repeats, by hand."""

import pytest

from bench.registry import Device
from bench.schema import Cell, PlannedCell
from factories import make_cell
from runner.estimates import NOT_INCLUDED, PoolPrice, describe_costs, estimate_repeats
from runner.matrix.plan import Repeat

ON_CPU, ON_GPU, UNKNOWN = make_cell(), make_cell(device="gpu"), make_cell(device="gpu", batch_size=8)


def make_repeats(cell: Cell, number: int, timeout_seconds: float) -> list[Repeat]:
    planned = PlannedCell(cell=cell, repeats=number, timeout_seconds=timeout_seconds)
    return [Repeat(planned=planned, number=one) for one in range(1, number + 1)]


def make_prices(**per_hour: float) -> dict[Device, PoolPrice]:
    devices: tuple[Device, ...] = ("cpu", "gpu")
    return {
        device: PoolPrice(per_hour=per_hour[device], currency="EUR", source="books")
        for device in devices
        if device in per_hour
    }


def test_known_cells_count_by_their_results_and_others_by_their_limits() -> None:
    repeats = [*make_repeats(ON_CPU, 2, 3600), *make_repeats(ON_GPU, 3, 7200), *make_repeats(UNKNOWN, 1, 1800)]
    durations = {ON_CPU.cell_id: 360.0, ON_GPU.cell_id: 720.0}
    cpu, gpu = estimate_repeats(repeats, durations, prices=make_prices(cpu=0.5, gpu=2.0))
    # Two of 0.1 h; three of 0.2 h and one of half an hour.
    assert [cpu.expected_hours, cpu.most_hours, cpu.expected_cost] == pytest.approx([0.2, 2.0, 0.1])
    assert [gpu.expected_hours, gpu.most_hours, gpu.expected_cost] == pytest.approx([1.1, 6.5, 2.2])
    assert (cpu.num_known, gpu.num_known, gpu.num_repeats) == (2, 3, 4)
    assert list(describe_costs([cpu, gpu], max_cost=2.0)) == [
        "cpu: 2 repeats take about 0.20 node-hours, at most 2.00, 2 of them by earlier results; about 0.10 EUR, "
        "at most 1.00 (0.5 per hour, books)",
        "gpu: 4 repeats take about 1.10 node-hours, at most 6.50, 3 of them by earlier results; about 2.20 EUR, "
        "at most 13.00 (2 per hour, books)",
        f"in all: about 1.30 node-hours, at most 8.50; about 2.30 EUR, at most 14.00; {NOT_INCLUDED}",
        "--max-cost 2: the run would end before all of it is measured",
    ]


def test_a_repeat_never_counts_more_than_its_limit() -> None:
    (pool,) = estimate_repeats(make_repeats(ON_CPU, 1, 60), {ON_CPU.cell_id: 600.0})
    assert pool.expected_hours == pytest.approx(60 / 3600)


def test_without_a_price_there_is_no_sum_of_money() -> None:
    repeats = [*make_repeats(ON_CPU, 1, 3600), *make_repeats(ON_GPU, 1, 3600)]
    lines = list(describe_costs(estimate_repeats(repeats, {}, prices=make_prices(gpu=2.0)), max_cost=0.1))
    assert lines == [
        "cpu: 1 repeats take at most 1.00 node-hours, by their time limits; no price: give --machine, or "
        "price_per_hour in the profile",
        "gpu: 1 repeats take at most 1.00 node-hours, by their time limits; at most 2.00 EUR (2 per hour, books)",
        f"in all: at most 2.00 node-hours; {NOT_INCLUDED}",
    ]
    assert list(describe_costs([])) == []
