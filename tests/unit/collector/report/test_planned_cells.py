"""Every combination of work and program is marked: how its cells ended, or that none was planned."""

from pathlib import Path
from typing import get_args

from bench.registry import Mode
from bench.schema import LeftOutCell, Precision
from bench.store import Store
from collector.analysis import analyze_run
from collector.labels import MODE_WORDS, PRECISION_WORDS
from collector.report.planned_cells import MAX_LINKED, PlannedTable, tabulate_planned
from collector.results.load import load_run
from factories import make_cell, make_failed_result, make_result, make_run, make_validity, put_documents
from measured_runs import Collect, make_repeats

GRAPH = {"framework": "tensorflow", "mode": "graph"}


def read_marks(table: PlannedTable) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Return the signs and texts of each work and program that has a cell."""
    return {
        (work, program): [(mark.sign, mark.text) for mark in marks]
        for work, places in table.rows
        for program, marks in zip(table.programs, places, strict=True)
        if marks[0].address
    }


def test_each_way_to_end_has_its_sign_and_its_reason(tmp_path: Path) -> None:
    failed, unsound, left_out = make_cell(**GRAPH), make_cell(phase="infer"), make_cell(phase="infer", **GRAPH)
    missing = make_cell(framework="jax", mode="compiled")
    results = [
        *make_repeats(make_cell(), 0.1, 0.1),
        make_result(make_cell(batch_size=1), repeat=1),
        make_failed_result(make_cell(batch_size=1), repeat=2),
        *(make_failed_result(failed, repeat=repeat, status="oom") for repeat in (1, 2)),
        *make_repeats(unsound, 0.1, 0.1, validity=make_validity("throttled")),
    ]
    cells = [*dict.fromkeys(result.cell for result in results), missing]
    run = make_run(cells, repeats=2, left_out=[LeftOutCell(cell=left_out, reason="no room")])
    store = Store.open(f"file://{tmp_path}")
    put_documents(store, run, results)
    table = tabulate_planned(analyze_run(load_run(store, run.run_id)))
    assert read_marks(table) == {
        ("conv6 train", "PyTorch eager"): [("✓", "batch 1: 1 of 2 counts; 1 failed"), ("✓", "batch 64")],
        ("conv6 train", "TensorFlow graph"): [("✕", "batch 64: 2 oom")],
        ("conv6 train", "JAX compiled"): [("?", "batch 64: 2 missing")],
        ("conv6 infer", "PyTorch eager"): [("!", "batch 64: none of 2 sound; 2 throttled")],
        ("conv6 infer", "TensorFlow graph"): [("∅", "batch 64: no room")],
    }
    assert [sign for sign, _ in table.signs] == ["✓", "!", "✕", "?", "∅", "–"]
    assert table.summary == (
        "6 cells: 2 measured, 1 measured, without a sound repeat, 1 failed, 1 without a result, 1 left out."
    )


def test_a_link_of_one_cell_opens_it_and_one_of_many_filters_the_overview(collect: Collect) -> None:
    few = make_repeats(make_cell(**GRAPH), 0.1)
    many = [result for size in range(1, MAX_LINKED + 2) for result in make_repeats(make_cell(batch_size=size), 0.1)]
    table = tabulate_planned(analyze_run(collect(*few, *many, repeats=1)))
    addresses = {mark.text: mark.address for _, places in table.rows for marks in places for mark in marks}
    assert addresses["batch 64"] == f"cell?cell={few[0].cell_id}"
    assert addresses[f"{MAX_LINKED + 1} cells"] == (
        "overview?f.model=conv6&f.phase=train&f.device=CPU&f.framework=PyTorch&f.mode=eager&f.precision=fp32"
    )


def test_work_and_programs_without_a_cell_are_named_once(collect: Collect) -> None:
    """Leave out empty rows and columns: with four of sixteen programs planned, the table was wider than a screen."""
    cells = make_cell(), make_cell(device="gpu", phase="infer", precision="bf16")
    table = tabulate_planned(analyze_run(collect(*(one for cell in cells for one in make_repeats(cell, 0.1, 0.1)))))
    assert [work for work, _ in table.rows] == ["conv6 train, CPU", "conv6 infer, GPU"]
    assert table.programs == ("PyTorch eager, fp32", "PyTorch eager, bf16")
    assert dict(table.idle) == {
        "Programs that no cell was planned of": ("PyTorch compiled, fp32", "PyTorch compiled, bf16"),
        "Work that no cell was planned of": ("conv6 train, GPU", "conv6 infer, CPU"),
    }


def test_every_mode_and_precision_is_explained() -> None:
    assert set(MODE_WORDS) == set(get_args(Mode))
    assert set(PRECISION_WORDS) == set(get_args(Precision))
