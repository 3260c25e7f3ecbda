"""Costs, energy and CO2 of measured cells, with values computed by hand: 1,000 samples are 15.625 steps of 64."""

from typing import Any

import pytest

from collector.costs.document import CellCost, CostDocument
from collector.costs.evaluation import CostQuestion, evaluate_costs
from collector.labels import add_labels
from collector.prices.table import PriceRow
from collector.results.collection import Collection
from collector.results.summary import summarize_cells
from factories import make_cell, make_cpu_use, make_environment, make_gpu, make_gpu_use, make_result, make_validity
from measured_runs import Collect, make_repeats
from price_tables import make_price, make_price_table

T4 = make_price("box", 0.002, gpu="T4")
FOUR = make_price("four", 0.004, gpu="T4", num_gpus=4)
PLAIN = make_price("plain", 0.0005, cpu="Xeon 2.20GHz")
ON_GPU = {
    **{"environment": make_environment(gpus=(make_gpu(),)), "gpu_use": (make_gpu_use(),)},
    "cpu_use": make_cpu_use(energy_joules=9.0),
}


def ask(*collections: Collection, prices: tuple[PriceRow, ...] = (T4, FOUR, PLAIN), **question: Any) -> CostDocument:
    return evaluate_costs(collections, make_price_table(*prices), CostQuestion(**question))


def ask_one(collection: Collection, **question: Any) -> CellCost:
    (cell,) = ask(collection, **question).cells
    return cell


@pytest.fixture
def on_gpu(collect: Collect) -> Collection:
    return collect(*make_repeats(make_cell(device="gpu"), 0.1, 0.101, 0.099, **ON_GPU))


@pytest.fixture
def on_cpu(collect: Collect) -> Collection:
    return collect(*make_repeats(make_cell(), 0.1, 0.1, 0.1, cpu_use=make_cpu_use()))


def test_a_sample_costs_the_time_of_its_step(on_gpu: Collection) -> None:
    cell = ask_one(on_gpu)
    row = summarize_cells(on_gpu).iloc[0]
    cheapest, dearer = cell.offers
    assert (cheapest.row.place, dearer.row.place) == ("X north four (4 x T4)", "X north box (T4)")
    # A quarter of 0.004 per second for one of four GPUs.
    assert cheapest.price_per_hour == pytest.approx(3.6)
    assert dearer.cost_per_1000_samples.value == pytest.approx(15.625 * row["center_step_seconds"] * 0.002)
    assert dearer.cost_per_1000_samples.low == pytest.approx(15.625 * row["interval_low_seconds"] * 0.002)
    assert dearer.cost_per_1000_samples.high == pytest.approx(15.625 * row["interval_high_seconds"] * 0.002)


def test_energy_is_what_gpu_and_cpu_counted_and_co2_follows(on_gpu: Collection) -> None:
    cell = ask_one(on_gpu)
    assert cell.energy is not None
    # 180 J in 30 steps of 64 samples, 9 J in 3; 360 g/kWh with a PUE of 1.25.
    assert cell.energy.joules_per_1000_samples.value == pytest.approx((180 / 30 + 9 / 3) / 64 * 1000)
    assert (cell.energy.covers, cell.energy.is_estimate) == (("GPU", "CPU sockets"), False)
    co2 = cell.offers[0].co2_grams_per_1000_samples
    assert co2 is not None
    assert co2.value == pytest.approx(140.625 * 1.25 * 360 / 3.6e6)


def test_energy_of_a_gpu_that_counted_nothing_is_its_full_power_at_most(collect: Collect) -> None:
    environment = make_environment(gpus=(make_gpu(),))
    validity = make_validity().model_copy(update={"unchecked": ("other processes on the GPU not observed",)})
    unseen: dict[str, Any] = {"environment": environment, "gpu_use": (), "validity": validity}
    energy = ask_one(collect(*make_repeats(make_cell(device="gpu"), 0.1, 0.1, **unseen))).energy
    assert energy is not None
    assert energy.joules_per_1000_samples.value == pytest.approx(1.5625 * 70)
    assert energy.is_estimate
    assert energy.method.startswith("GPU, estimated: at most GPUs x full power x time, with 70 W for T4 (datasheet")


def test_energy_of_a_cpu_is_estimated_by_its_formula(on_cpu: Collection) -> None:
    estimated = ask_one(on_cpu).energy
    assert estimated is not None
    # Two busy vCPUs of 4 W for 1.5625 s.
    assert estimated.joules_per_1000_samples.value == pytest.approx(8 * 1.5625)
    assert estimated.covers == ("vCPUs",)


def test_a_cell_on_more_gpus_than_any_machine_has_says_how_many_it_needs(collect: Collect) -> None:
    gpus = tuple(make_gpu(uuid=f"GPU-5c1e2f6a-0000-0000-0000-00000000000{number}") for number in range(8))
    use = tuple(make_gpu_use(uuid=gpu.uuid) for gpu in gpus)
    cell = make_cell(device="gpu", num_gpus=8)
    environment = make_environment(gpus=gpus)
    collection = collect(make_result(cell, environment=environment, gpu_use=use))
    reason = ask_one(collection, prices=(T4,)).reason
    assert reason.startswith("no price for a machine with 8 or more Tesla T4: name a machine that stands for it")


def test_a_cpu_is_priced_by_its_model_or_by_the_machine_that_stands_for_it(on_cpu: Collection) -> None:
    other = make_price("other", 0.1)
    assert [offer.row.machine for offer in ask_one(on_cpu).offers] == ["plain"]
    cell = ask_one(on_cpu, prices=(T4, other))
    assert cell.offers == ()
    assert cell.reason.startswith("no price for Intel(R) Xeon(R) CPU @ 2.20GHz: name a machine that stands for it")
    document = ask(on_cpu, prices=(T4, other), machines={"cpu": "other"})
    assert [offer.row.machine for offer in document.cells[0].offers] == ["other"]
    assert "CPU cells count as if other were as fast as what they were measured on." in document.assumptions
    large = ask(on_cpu, prices=(make_price("large", 0.1, vcpus=8),), machines={"cpu": "large"})
    assert "CPU cells that ran on 2 threads pay for all 8 vCPUs of large." in large.assumptions
    small = ask(on_cpu, prices=(make_price("small", 0.1, vcpus=1),), machines={"cpu": "small"})
    assert "CPU cells that ran on 2 threads pay for the one vCPU of small." in small.assumptions


def test_spot_cloud_and_region_choose_the_prices(on_gpu: Collection) -> None:
    spot = make_price("box", 0.001, gpu="T4", purchase="spot")
    south = make_price("box", 0.003, gpu="T4", region="south")
    prices = (T4, spot, south)
    assert [offer.row.region for offer in ask_one(on_gpu, prices=prices).offers] == ["north", "south"]
    both = ask_one(on_gpu, prices=prices, purchases=("on-demand", "spot"), region="north")
    assert [offer.row.purchase for offer in both.offers] == ["spot", "on-demand"]
    assert ask_one(on_gpu, prices=prices, cloud="Y").offers == ()
    assert ask_one(on_gpu, prices=prices, region="south").offers[0].co2_grams_per_1000_samples is None


def test_cells_that_share_their_device_are_left_out(on_gpu: Collection) -> None:
    summary = add_labels(summarize_cells(on_gpu))
    for tenants, sharing in ((2, "mps"), (1, "mig")):
        shared = summary.assign(tenants=tenants, sharing=sharing)
        document = evaluate_costs([on_gpu], make_price_table(T4), CostQuestion(), summary=shared)
        assert document.cells == ()
        assert document.assumptions[-1].startswith("1 cell with several tenants, or on a slice of a GPU, has no ")
    alone = summary.assign(tenants=1, sharing="time-slicing")
    assert len(evaluate_costs([on_gpu], make_price_table(T4), CostQuestion(), summary=alone).cells) == 1
