"""benchmatrix: the examples in its docstrings, what importing it costs, and errors of the user."""

import doctest
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import benchmatrix
from benchmatrix import measurements

ROOT = Path(__file__).parents[3]
STORE = "file://docs/results/2026-11-21-h200"


@pytest.fixture(autouse=True)
def in_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples name a stored run by its path in the repository."""
    monkeypatch.chdir(ROOT)


def test_every_example_prints_what_it_says() -> None:
    results = doctest.testmod(measurements, optionflags=doctest.ELLIPSIS)

    assert results.failed == 0
    assert results.attempted > 0


def test_every_public_function_has_an_example() -> None:
    functions = [getattr(benchmatrix, name) for name in benchmatrix.__all__ if name[0].islower()]

    assert functions
    assert [found.__name__ for found in functions if ">>> " not in (found.__doc__ or "")] == []


def test_importing_it_loads_no_data_frames() -> None:
    program = "import sys, benchmatrix; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert {"pandas", "numpy", "collector", "kubernetes"} & set(done.stdout.split()) == set()


def test_the_newest_run_is_taken_and_one_that_is_not_there_is_named() -> None:
    assert set(benchmatrix.load_repeats(store=STORE)["run_id"]) == {"study-h200-2"}
    with pytest.raises(benchmatrix.UserError, match="has no run 'other'; did you mean 'study-h200-2'"):
        benchmatrix.load_cells("other", STORE)
    with pytest.raises(benchmatrix.UserError, match="there is no directory .*; name the right one with store"):
        benchmatrix.list_runs("file://nowhere")
    with pytest.raises(benchmatrix.UserError, match="at least one id"):
        benchmatrix.load_cells([], STORE)


def test_sides_of_a_comparison_are_of_one_kind() -> None:
    with pytest.raises(TypeError, match="two ids of runs, or conditions for both sides"):
        benchmatrix.compare("study-h200-2", {"framework": "jax"}, store=STORE)


def test_an_audit_is_a_table_of_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    header = "model,framework,device,phase,precision,batch_size,seconds"
    path.write_text(header + "\nresnet18,pytorch,Tesla T4,train,fp32,1024,1e-6\n")

    (verdict,) = benchmatrix.audit(path)["verdict"]

    assert verdict == "impossible"


def test_numbers_choose_by_their_value() -> None:
    sides = {"framework": "pytorch", "mode": "eager"}, {"framework": "jax", "mode": "compiled"}
    where: dict[str, Any] = {"model": "resnet18", "phase": "train"}
    assert len(benchmatrix.compare(*sides, store=STORE, where=where | {"num_gpus": 1.0}).cells) > 0
