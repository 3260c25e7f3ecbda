"""What tenants do to each other: expected values are computed by hand from the steps that the tenants took."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bench.schema import Cell, Result
from collector.results.frames import Row, list_rows
from collector.sharing import SHARING_COLUMNS, tabulate_sharing
from factories import make_environment, make_failed_result, make_gpu, make_gpu_use, make_result, make_validity
from measured_runs import Collect, make_repeats
from shared_runs import TRAINING, make_fallen_result, make_gpu_cell, make_tenants_result

ALONE = make_gpu_cell()
"""Batches of 64."""


def measure_alone(cell: Cell, seconds: float = 0.1, **overrides: Any) -> list[Result]:
    """Return three repeats alone, 1 % apart."""
    return make_repeats(cell, seconds, 1.01 * seconds, 0.99 * seconds, **overrides)


def tabulate(collect: Collect, *results: Result, **options: Any) -> list[Row]:
    return list_rows(tabulate_sharing(collect(*results), **options))


def test_a_run_without_tenants_has_no_rows(collect: Collect) -> None:
    frame = tabulate_sharing(collect(*measure_alone(ALONE)))
    assert (list(frame.columns), len(frame)) == (list(SHARING_COLUMNS), 0)


def test_tenants_are_held_against_the_same_cell_alone(collect: Collect) -> None:
    cell = make_gpu_cell(tenants=2)
    shared = [make_tenants_result(cell, [0.2] * 4, [0.25] * 3, repeat=repeat) for repeat in (1, 2, 3)]
    (row,) = tabulate(collect, *measure_alone(ALONE), *shared)
    center = (0.1 * 0.101 * 0.099) ** (1 / 3)
    assert (row["alone_cell_id"], row["num_counted"]) == (ALONE.cell_id, 3)
    assert pd.isna(row["not_compared"])
    assert row["alone_samples_per_s"] == pytest.approx(64 / center)
    assert row["tenant_samples_per_s"] == pytest.approx(64 / math.sqrt(0.2 * 0.25))
    assert row["role_samples_per_s"] == pytest.approx(64 / 0.2 + 64 / 0.25)
    assert row["slowdown"] == pytest.approx(math.sqrt(0.2 * 0.25) / center)
    assert row["slowest_slowdown"] == pytest.approx(0.25 / center)
    assert row["aggregate_ratio"] == pytest.approx(center / 0.2 + center / 0.25)
    assert row["jain_index"] == pytest.approx((5 + 4) ** 2 / (2 * (5**2 + 4**2)))
    # The tenants do not vary, so the interval is that of the work alone.
    spread = np.log([0.1, 0.101, 0.099]).std(ddof=1) / math.sqrt(3)
    factor = math.exp(4.302653 * spread)  # Student's 97.5 % quantile for two degrees of freedom
    assert row["slowdown_low"] == pytest.approx(row["slowdown"] / factor, rel=1e-6)
    assert row["aggregate_ratio_high"] == pytest.approx(row["aggregate_ratio"] * factor, rel=1e-6)
    assert (row["joint_low"], row["joint_high"]) == (row["aggregate_ratio_low"], row["aggregate_ratio_high"])  # of one
    assert row["decision"] == "less"


def test_percentiles_are_those_of_each_repeats_pooled_steps_where_it_has_enough(collect: Collect) -> None:
    cells = [make_gpu_cell(tenants=2), make_gpu_cell(tenants=2, batch_size=8)]
    first, second = [0.1] * 60, [0.1, 0.2] * 30
    results = [
        result
        for repeat, few in ((1, 50), (2, 49))
        for result in (
            make_result(ALONE, repeat=repeat, step_seconds=[0.05] * 99 + [0.15]),
            make_tenants_result(cells[0], first, second, repeat=repeat),
            make_result(make_gpu_cell(batch_size=8), repeat=repeat, step_seconds=[0.1] * 19),
            make_tenants_result(cells[1], [0.2] * few, [0.2] * few, repeat=repeat),
        )
    ]
    enough, few = tabulate(collect, *results)
    assert enough["p50_step_seconds"] == 0.1
    assert enough["p95_step_seconds"] == pytest.approx(np.quantile([*first, *second], 0.95))
    assert enough["p99_ratio"] == pytest.approx(0.2 / np.quantile([0.05] * 99 + [0.15], 0.99))
    assert enough["p50_ratio_low"] == pytest.approx(2.0)
    assert (few["p95_step_seconds"], few["p50_ratio"]) == pytest.approx((0.2, 2.0))
    assert all(pd.isna(few[name]) for name in ("p99_step_seconds", "p95_ratio"))  # alone has 19 steps


def test_different_work_is_held_against_itself_alone_each(collect: Collect) -> None:
    infer, train = make_gpu_cell(phase="infer", batch_size=1), make_gpu_cell(batch_size=32)
    mixed = make_gpu_cell(phase="infer", batch_size=1, tenants=3, neighbour=TRAINING)
    use = make_gpu_use(energy_joules=30.0, num_steps=30, power_watts=(10.0,) * 3)  # 1 J a step
    results = [
        result
        for repeat in (1, 2)
        for result in (
            make_result(infer, repeat=repeat, step_seconds=(0.01,) * 3, gpu_use=(use,)),
            make_result(train, repeat=repeat, step_seconds=(0.05,) * 3, gpu_use=(use,)),
            make_tenants_result(mixed, [0.04] * 3, [0.1] * 3, [0.2] * 3, watts=70.0, repeat=repeat),
        )
    ]
    own, others = tabulate(collect, *results)
    assert [(row["role"], row["num_role_tenants"]) for row in (own, others)] == [("cell", 1), ("neighbour", 2)]
    assert [row["alone_cell_id"] for row in (own, others)] == [infer.cell_id, train.cell_id]
    assert own["neighbour"] == "conv6 train batch 32 size 32 fp32 eager"
    assert own["slowdown"] == pytest.approx(4.0)
    assert others["slowdown"] == pytest.approx(math.sqrt(2.0 * 4.0))
    assert others["slowest_slowdown"] == pytest.approx(4.0)
    shares = (0.25, 0.5, 0.25)
    for row in (own, others):
        assert row["aggregate_ratio"] == pytest.approx(sum(shares))
        assert row["jain_index"] == pytest.approx(1 / (3 * (0.25**2 + 0.5**2 + 0.25**2)))
        # In a second: 25 inferences of 1 J, and 15 training steps of 1 J, which took 70 J.
        assert row["energy_ratio"] == pytest.approx(70 / (25 * 1 + (10 + 5) * 1))
        assert row["joules_per_sample"] == pytest.approx(70 / (25 + 32 * (10 + 5)))
    assert own["p50_ratio"] == pytest.approx(4.0)


def test_memory_is_the_largest_of_a_tenant_and_the_sum_of_all(collect: Collect) -> None:
    (row,) = tabulate(collect, make_tenants_result(make_gpu_cell(tenants=2), [0.2], [0.2]))
    assert (row["tenant_peak_bytes"], row["role_peak_bytes"]) == (2**30, 2 * 2**30)
    assert row["device_peak_bytes"] == 9 * 2**30


def test_tenants_that_fell_out_of_memory_are_counted_and_their_repeats_enter_no_figure(collect: Collect) -> None:
    cell = make_gpu_cell(tenants=4)
    fallen = [
        make_fallen_result(cell, "ok", "ok", "ok", "oom", repeat=1),
        make_fallen_result(cell, "oom", "ok", "oom", "oom", repeat=2),
    ]
    (row,) = tabulate(collect, *measure_alone(ALONE), *fallen)
    assert (row["num_fallen_repeats"], row["fallen"]) == (2, "1 to 3 of 4 tenants in 2 repeats")
    assert (row["num_ok"], row["not_compared"]) == (0, "no ok repeat (2 oom, 1 missing)")
    assert pd.isna(row["tenant_samples_per_s"])


NEWER = make_environment(gpus=(make_gpu(),), versions={"torch": "2.12.0"})
OTHER_CARD = make_environment(gpus=(make_gpu(name="L4"),))
OTHER_PYTHON = make_environment(gpus=(make_gpu(),), python_version="3.12.1")


@pytest.mark.parametrize(
    ("alone", "reason"),
    [
        ([], "the run has no cell that is the cell alone (tenants 1, the whole device)"),
        (measure_alone(make_gpu_cell(batch_size=8)), "the run has no cell that is the cell alone"),
        (measure_alone(make_gpu_cell(sharing="mps")), "the run has no cell that is the cell alone"),
        ([make_failed_result(ALONE)], "no ok repeat of the cell alone"),
        (measure_alone(ALONE, environment=OTHER_CARD), "the hardware of the cell alone differs"),
        (measure_alone(ALONE, environment=NEWER), "the framework's versions differ, 2.11.0 and 2.12.0 alone"),
        (
            measure_alone(ALONE, validity=make_validity("contaminated")),
            "no repeat of the cell alone was measured under",
        ),
    ],
)
def test_a_comparison_that_cannot_be_made_says_why(collect: Collect, alone: list[Result], reason: str) -> None:
    cell = make_gpu_cell(tenants=2)
    rows = tabulate(collect, *alone, *(make_tenants_result(cell, [0.2], [0.2], repeat=repeat) for repeat in (1, 2)))
    row = next(found for found in rows if found["tenants"] == 2)
    assert row["not_compared"].startswith(reason)
    assert row["tenant_samples_per_s"] == pytest.approx(320)
    assert pd.isna(row["slowdown"])
    assert pd.isna(row["aggregate_ratio"])


def test_disturbed_repeats_are_not_compared(collect: Collect) -> None:
    cell, disturbed = make_gpu_cell(tenants=2), make_validity("contaminated")
    shared = [make_tenants_result(cell, [0.2], [0.2], validity=disturbed, repeat=repeat) for repeat in (1, 2)]
    results = [*measure_alone(ALONE), *shared]
    (row,) = tabulate(collect, *results)
    assert row["not_compared"] == "no repeat was measured under sound conditions"


def test_of_several_measurements_alone_the_one_in_the_same_environment_counts(collect: Collect) -> None:
    alone = [
        *(make_result(ALONE, repeat=n, step_seconds=(0.3,) * 3, environment=OTHER_PYTHON) for n in (1, 2)),
        make_result(ALONE, repeat=3, step_seconds=(0.1,) * 3),
    ]
    (row,) = tabulate(collect, *alone, make_tenants_result(make_gpu_cell(tenants=2), [0.2], [0.2]))
    assert row["slowdown"] == pytest.approx(2.0)
    assert row["note"] == "one repeat counts: no interval"
