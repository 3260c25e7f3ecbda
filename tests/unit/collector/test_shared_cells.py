"""No comparison, claim, audit or night takes a cell with tenants for the same cell alone."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from audit_tables import audit_row, make_row
from bench.schema import Cell, Result
from collector.audit.claims import gather_context
from collector.comparisons import compare_all
from collector.nights.detection import READ_COLUMNS, read_nights
from collector.results.frames import SHARING_FIELDS
from collector.results.load import join_results
from collector.results.summary import summarize_cells
from collector.tables.environments import tabulate_machines
from factories import make_cell, make_environment, make_gpu
from measured_runs import Collect, collect_results, make_repeats
from shared_runs import TRAINING, make_gpu_cell, make_tenants_result

OTHER_CARD = make_environment(gpus=(make_gpu(uuid="GPU-2"),))


def share(cell: Cell, seconds: float, **overrides: Any) -> list[Result]:
    """Return three repeats of a cell whose tenants' steps take so long, 1 % apart."""
    return [
        make_tenants_result(cell, *([factor * seconds] * 3 for _ in range(cell.tenants)), repeat=number, **overrides)
        for number, factor in enumerate((1.0, 1.01, 0.99), start=1)
    ]


@pytest.mark.parametrize("fields", [{"tenants": 4}, {"tenants": 2, "neighbour": TRAINING}, {"sharing": "mps"}])
def test_sides_of_a_comparison_have_equal_tenants(collect: Collect, fields: dict[str, Any]) -> None:
    shared = make_gpu_cell(**fields)
    make = share if shared.tenants > 1 else lambda cell, seconds: make_repeats(cell, seconds, seconds)
    others = [make_gpu_cell(mode="compiled"), make_gpu_cell(precision="tf32"), make_gpu_cell(num_gpus=2), make_cell()]
    alone = [result for cell in others for result in make_repeats(cell, 0.1, 0.1)]
    pairs = compare_all(summarize_cells(collect(*make(shared, 0.4), *alone)))
    assert sum(map(len, pairs.values())) == 0
    compiled = make_gpu_cell(**(fields | {"mode": "compiled"}))
    pairs = compare_all(summarize_cells(collect(*make(shared, 0.4), *make(compiled, 0.2), *alone)))
    assert {name: len(found) for name, found in pairs.items() if len(found)} == {"modes": 1}
    assert pairs["modes"]["ratio"].to_list() == pytest.approx([2.0])
    assert set(SHARING_FIELDS) < set(pairs["modes"].columns)


def test_a_claim_rests_on_cells_that_had_their_device_to_themselves(collect: Collect) -> None:
    def gather(tenants: int) -> pd.DataFrame:
        cells = [make_gpu_cell(tenants=tenants), make_cell(tenants=tenants)]
        make = share if tenants > 1 else lambda cell, seconds: make_repeats(cell, seconds, seconds)
        results = [result for cell in cells for result in make(cell, 0.1)]
        return gather_context(summarize_cells(collect(*results))).pairs["speedups"]

    assert len(gather(1)) == 1
    assert len(gather(2)) == 0


def test_an_audited_figure_is_not_held_against_a_cell_with_tenants(tmp_path: Path) -> None:
    row = make_row(device="T4", model="resnet50", batch_size=64, framework="PyTorch", seconds=None, milliseconds=150.0)
    fields: dict[str, Any] = {"model": "resnet50", "input_size": 224, "num_classes": 1000, "phase": "infer"}
    shared = summarize_cells(collect_results(tmp_path / "a", *share(make_gpu_cell(tenants=2, **fields), 0.15)))
    alone = summarize_cells(collect_results(tmp_path / "b", *make_repeats(make_gpu_cell(**fields), 0.149, 0.15, 0.151)))
    assert audit_row(row, summary=shared).measured.verdict == "not tested"
    assert audit_row(row, summary=alone).measured.verdict == "reproduced"


def test_a_cell_with_tenants_has_a_series_of_its_own_over_the_nights(collect: Collect) -> None:
    cells = [make_gpu_cell(), make_gpu_cell(tenants=2)]
    collection = collect(*make_repeats(cells[0], 0.1), *share(cells[1], 0.3))
    run = collection.run
    nights = read_nights({run.run_id: run}, join_results([collection], READ_COLUMNS))[run.run_id]
    assert {key.cell.tenants: len(night.logs) for key, night in nights.items()} == {1: 1, 2: 3}


def test_a_machine_that_measured_tenants_is_not_slower_than_one_that_measured_the_cell_alone(collect: Collect) -> None:
    results = [
        *make_repeats(make_gpu_cell(), 0.1, 0.1, 0.1),
        *share(make_gpu_cell(tenants=2), 0.3, environment=OTHER_CARD),
    ]
    machines = tabulate_machines(collect(*results).results)
    assert len(machines) == 2
    assert machines["time_factor"].isna().all()
