"""Errors in what a matrix file makes: cells that lack keys, contradict themselves or are there already; limits."""

from pathlib import Path

import pytest

from bench.errors import UserError
from matrix_files import DEMO, OWN_CELL, catch_error, expand, swap
from runner.matrix import expansion
from runner.matrix.definition import MAX_COMBINATIONS, read_definition
from runner.matrix.expansion import expand_matrix
from runner.yaml_input import parse_yaml

# What is wrong: the file, the line and the key that the error names.
ERRORS = {
    "two lists that make the same cell": (
        DEMO + "include:\n" + OWN_CELL.replace("train", "[train, infer]") + OWN_CELL,
        10,
        "include[1]",
    ),
    "everything excluded": (DEMO + "exclude:\n- device: cpu\n", 9, "exclude"),
    "own cell lacks keys": (DEMO + "include:\n- device: gpu\n", 9, "include[0]"),
    "two equal entries": (DEMO + "include:\n" + OWN_CELL * 2, 10, "include[1]"),
    "two entries that default to the same cell": (
        swap("phase: ", "seed: [1]\n  phase: ") + "include:\n" + OWN_CELL + OWN_CELL.replace("}", ", seed: 0}"),
        11,
        "include[1]",
    ),
    "missing folder": (swap("16", "16,\n  data_dir: no/such"), 8, "defaults.data_dir"),
    "number as folder": (swap("16", "16, data_dir: 7"), 7, "defaults.data_dir"),
    "empty folder name": (swap("16", "16, data_dir: ''"), 7, "defaults.data_dir"),
    "folder for a model that reads none": (
        swap("[conv6]", "[matmul]") + "exclude: [{phase: train}]\ninclude: [{data_dir: .}]\n",
        9,
        "include[0].data_dir",
    ),
    "phase that the model has not": (swap("[conv6]", "[matmul]"), 6, "axes.phase[0]"),
    "classes that the model has not": (
        swap("[conv6]", "[cyclegan]") + "include: [{num_classes: 10}]\n",
        8,
        "include[0].num_classes",
    ),
    "classes that the model needs": (
        swap("16", "16, num_classes: null"),
        7,
        "defaults.num_classes",
    ),
    "mode of JAX": (swap("tensorflow]", "jax]\n  mode: [eager]"), 5, "axes.mode[0]"),
    "key missing everywhere": (swap("defaults: {batch_size: 16}\n", ""), 2, "axes"),
    "mode from include": (
        DEMO + "include:\n- phase: train\n  mode: graph\n",
        10,
        "include[0].mode",
    ),
    "size too small for the model": (swap("16", "16, input_size: 4"), 7, "defaults.input_size"),
    "several GPUs on a CPU": (swap("16", "16, num_gpus: 2"), 7, "defaults.num_gpus"),
    "mode from defaults": (swap("16", "16,\n mode: graph"), 8, "defaults.mode"),
    "mode from an axis": (swap("phase: ", "mode: [eager,\n  graph]\n  phase: "), 7, "axes.mode[1]"),
}


@pytest.mark.parametrize(("text", "line", "key"), ERRORS.values(), ids=ERRORS)
def test_an_error_names_file_line_and_key(tmp_path: Path, text: str, line: int, key: str) -> None:
    error = catch_error(tmp_path, text)
    assert (error.file, error.line, error.key) == (str(tmp_path / "demo.yaml"), line, key)
    assert "\n" not in str(error)
    assert "Input should" not in str(error)


def make_sweep(num_seeds: int) -> str:
    return DEMO.replace(
        "defaults: {batch_size: 16}", f"  batch_size: {list(range(1, 101))}\n  seed: {list(range(num_seeds))}"
    )


def test_a_product_above_the_limit_is_refused_before_it_is_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expansion, "_iter_combinations", None)
    num_seeds = MAX_COMBINATIONS // 400 + 1
    with pytest.raises(UserError) as caught:
        expand(make_sweep(num_seeds))
    expected = (
        "demo.yaml:2: axes: 1 x 2 x 1 x 2 x 100 x 251 values make 100,400 combinations, expected at most 100,000;"
    )
    assert str(caught.value).startswith(expected)


def test_lists_that_make_too_many_entries_are_refused_with_the_entry() -> None:
    axes = DEMO.replace("defaults: {batch_size: 16}\n", "  batch_size: [1]\n  seed: [0]\n")
    sizes, seeds = list(range(2, 102)), list(range(1000))
    text = axes + f"include:\n- num_steps: 7\n- {{batch_size: {sizes}, seed: {seeds}}}\n"
    with pytest.raises(UserError) as caught:
        expand(text)
    expected = "demo.yaml:11: include[1]: the lists in the entries so far make more than 100,000 entries, the limit;"
    assert str(caught.value).startswith(expected)
    with pytest.raises(UserError, match="lacks 'model', 'framework', 'device', 'phase'; add"):  # one less: not too many
        expand(text.replace("- num_steps: 7\n", ""))


AXES = (
    "name: m\naxes: {model: [conv6], framework: [pytorch], device: [cpu], phase: [train], "
    f"batch_size: {list(range(1, 1001))}, seed: {list(range(100))}}}\n"
)
"""100,000 combinations, which is allowed."""


def test_a_plan_counts_repeats_and_stops_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expansion, "MAX_PLANNED_REPEATS", 20_000)
    with pytest.raises(UserError, match="the first 3 cells have more than 20,000 repeats, the limit"):
        list(expand_matrix(read_definition(parse_yaml(AXES + "defaults: {repeats: 10000}\n", "m.yaml")), Path()))
