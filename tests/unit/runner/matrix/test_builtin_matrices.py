"""The matrices that come with the tool."""

import itertools

import pytest

from bench.verdicts import series
from matrix_files import pick
from runner.matrix.builtin import list_builtin_matrices
from runner.matrix.expansion import load_matrix


def test_every_built_in_matrix_loads_and_bears_the_name_of_its_file() -> None:
    assert "smoke" in list_builtin_matrices()
    for name in list_builtin_matrices():
        loaded = load_matrix(name)
        assert loaded.name == name
        assert loaded.description
        assert loaded.source.endswith(f"matrices/{name}.yaml")


def test_smoke_compares_both_frameworks_on_every_model_phase_and_device_three_times() -> None:
    cells = load_matrix("smoke").cells
    combinations = list(
        itertools.product(["conv6", "resnet18"], ["cpu", "gpu"], ["train", "infer"], ["pytorch", "tensorflow"], [3])
    )
    assert pick(cells, "model", "device", "phase", "framework", "repeats") == combinations


@pytest.mark.parametrize("name", list_builtin_matrices())
def test_every_window_of_the_built_in_matrices_is_long_enough_to_be_valid(name: str) -> None:
    cells = [planned.cell for planned in load_matrix(name).cells]
    seconds = series.MIN_WINDOW_SECONDS
    assert [cell.cell_id for cell in cells if cell.min_seconds < seconds] == []
    few = [cell for cell in cells if cell.num_steps < series.MIN_STEPS]
    enough = (series.MIN_LONG_STEPS, series.MIN_LONG_WINDOW_SECONDS)
    assert [c.cell_id for c in few if c.num_steps < enough[0] or c.min_seconds < enough[1]] == []


def test_paper_compares_three_frameworks_on_the_same_work_of_every_model_phase_and_device() -> None:
    batches = {
        ("conv6", "train"): [16],
        ("vgg16", "train"): [2],
        ("resnet18", "train"): [4],
        ("cyclegan", "train"): [1],
    }
    batches |= {("conv6", "infer"): [1, 16], ("vgg16", "infer"): [1, 2], ("resnet18", "infer"): [1, 4]}
    batches |= {("cyclegan", "infer"): [1]}
    frameworks = [("pytorch", "eager"), ("tensorflow", "graph"), ("jax", "compiled")]
    sizes = {"conv6": (32, 10), "vgg16": (224, 10), "resnet18": (224, 10), "cyclegan": (64, None)}
    expected = {
        (model, phase, batch, device, framework, mode, *sizes[model], "fp32", 3)
        for (model, phase), numbers in batches.items()
        for batch in numbers
        for device in ("cpu", "gpu")
        for framework, mode in frameworks
    }
    keys = ("model", "phase", "batch_size", "device", "framework", "mode", "input_size", "num_classes", "precision")
    cells = load_matrix("paper").cells
    assert set(pick(cells, *keys, "repeats")) == expected
    assert len(cells) == len(expected)


def test_paper_claims_has_what_the_claims_need_at_the_studys_own_work() -> None:
    cells = load_matrix("paper-claims").cells
    sizes = [("conv6", 32, 64), ("conv6", 224, 64), ("vgg16", 224, 64), ("resnet18", 224, 64), ("cyclegan", 256, 1)]
    studied = [("pytorch", "eager"), ("tensorflow", "graph")]
    expected = {
        (*size, device, phase, *framework)
        for size in sizes
        for device in ("cpu", "gpu")
        for phase in ("train", "infer")
        for framework in studied
    }
    expected |= {(*size, "gpu", "infer", "tensorflow", "unfused") for size in sizes}
    expected |= {("resnet18", 224, 64, "gpu", "infer", "tensorflow", "fused-norm")}
    keys = ("model", "input_size", "batch_size", "device", "phase", "framework", "mode")
    assert sorted(pick(cells, *keys)) == sorted(expected)
    assert set(pick(cells, "precision", "repeats")) == {("fp32", 3)}
