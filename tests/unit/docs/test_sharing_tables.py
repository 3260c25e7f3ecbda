"""docs/sharing.md: its tables are what the stored runs say, and nobody typed them."""

from pathlib import Path

import pytest

from bench.store import Store
from collector.results.load import load_run
from factories import RUN_ID, make_result, make_run, put_documents
from make_results import find_stale_sharing
from measured_runs import make_repeats
from results_figures import StoredRun
from shared_runs import SEVEN_OF_EIGHT, TRAINING, make_fallen_result, make_gpu_cell, make_tenants_result
from sharing_tables import BEGIN, END, NOTHING, list_sharing_tables, make_sharing_page

CELLS = [make_gpu_cell(), *(make_gpu_cell(tenants=2, sharing=sharing) for sharing in ("time-slicing", "mps"))]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store with a run of two tenants by time-slicing and by MPS, of different work and of too many tenants."""
    mixed = make_gpu_cell(phase="infer", tenants=2, neighbour=TRAINING)
    eight = make_gpu_cell(tenants=8)
    results = [
        *make_repeats(CELLS[0], 0.1, 0.1),
        *(
            make_tenants_result(cell, [seconds], [seconds], repeat=repeat)
            for cell, seconds in zip(CELLS[1:], (0.2, 0.16), strict=True)
            for repeat in (1, 2)
        ),
        make_tenants_result(mixed, [0.4], [0.2]),
        make_result(make_gpu_cell(phase="infer"), step_seconds=(0.1,) * 3),
        make_fallen_result(eight, *SEVEN_OF_EIGHT),
    ]
    planned = list(dict.fromkeys(result.cell for result in results))
    put_documents(Store.open(f"file://{tmp_path}"), make_run(planned, repeats=2), results)
    return tmp_path


def load(folder: Path) -> StoredRun:
    return StoredRun(collection=load_run(Store.open(f"file://{folder}"), RUN_ID), matrix="gpu.yaml")


def test_the_page_says_what_the_stored_runs_say() -> None:
    assert list(find_stale_sharing()) == []


def test_without_runs_the_page_says_so() -> None:
    assert make_sharing_page(f"a\n{BEGIN}\nb\n{END}\nc\n", []) == f"a\n{BEGIN}\n{NOTHING}\n{END}\nc\n"


def test_a_table_has_a_row_for_each_work_and_a_column_for_each_way_of_sharing(folder: Path) -> None:
    page = make_sharing_page(f"{BEGIN}\n{END}\n", [("2026-03-01-t4", load(folder))])
    lines = page.splitlines()
    assert f"### Tesla T4, `{RUN_ID}`" in lines
    assert "[What was measured](results/2026-03-01-t4/README.md)" in page
    heading = "| cell | 2 tenants, time-slicing | 2 tenants, MPS |"  # of 8 tenants there is no figure
    name = "conv6 train, GPU, batch 64, 32 px, PyTorch eager"
    first = lines.index(heading)
    assert lines[first + 2] == f"| {name} | 1.00 (1.00 to 1.00) | 1.25 (1.25 to 1.25) |"
    lines = "\n".join(list_sharing_tables(load(folder).analysis)).splitlines()
    second = lines.index(heading, lines.index(heading) + 1)
    assert lines[second + 2] == f"| {name} | 2.00 (2.00 to 2.00) | 1.60 (1.60 to 1.60) |"
    assert any("its neighbour | the run has no cell that is its neighbour alone" in line for line in lines)
    assert any("| the cell | 4.00 | 4.00 | too few steps | too few steps |" in line for line in lines)
    assert any("8 tenants by time-slicing" in line and "1 of 8 tenants in 1 repeat" in line for line in lines)
    assert make_sharing_page(page.replace("1.25", "1.35"), [("2026-03-01-t4", load(folder))]) == page
