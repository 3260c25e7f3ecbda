"""The combinations that axes, defaults, exclude and include make, as in GitHub Actions."""

from pathlib import Path

import pytest

from matrix_files import DEMO, expand, pick, write
from runner.matrix import load_matrix


def test_sizes_come_from_the_model_and_the_rest_from_the_defaults_of_a_cell() -> None:
    cells = expand(DEMO.replace("[conv6]", "[conv6, resnet18]").replace("[pytorch, tensorflow]", "[pytorch]"))
    assert (
        pick(cells, "model", "input_size", "num_classes", "precision", "mode", "seed")
        == [("conv6", 32, 10, "fp32", "eager", 0)] * 2 + [("resnet18", 224, 1000, "fp32", "eager", 0)] * 2
    )
    assert pick(cells, "repeats", "timeout_seconds") == [(3, 600.0)] * 4


def test_a_model_without_classes_has_none_unless_others_have_them_by_default() -> None:
    text = DEMO.replace("[conv6]", "[conv6, cyclegan]").replace("[pytorch, tensorflow]", "[pytorch]")
    assert [planned.cell.num_classes for planned in expand(text)] == [10, 10, None, None]
    text = text.replace("{batch_size: 16}", "{batch_size: 16, num_classes: 7}")
    assert [planned.cell.num_classes for planned in expand(text)] == [7, 7, None, None]
    text += "include: [{model: cyclegan, num_classes: null}, {model: conv6, num_classes: 5}]\n"
    assert [planned.cell.num_classes for planned in expand(text)] == [5, 5, None, None]


def test_the_mode_that_is_not_given_is_the_first_of_the_framework() -> None:
    cells = expand(DEMO.replace("[pytorch, tensorflow]", "[pytorch, tensorflow, jax]"))
    assert (
        pick(cells, "framework", "mode")
        == [("pytorch", "eager")] * 2 + [("tensorflow", "eager")] * 2 + [("jax", "compiled")] * 2
    )


def test_a_folder_with_data_is_found_from_the_matrix_file_and_made_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "study" / "data").mkdir(parents=True)
    (tmp_path / "home" / "data").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    for written, expected in {
        "data": "study/data",
        "./data/": "study/data",
        "../home/data": "home/data",
        "~/data": "home/data",
        f"{tmp_path}/home": "home",
    }.items():
        write(tmp_path / "study", DEMO.replace("16", f"16, data_dir: {written}"))
        assert set(pick(load_matrix("study/demo.yaml").cells, "data_dir")) == {(str(tmp_path / expected),)}


def test_a_default_folder_with_data_is_for_the_models_that_read_data(tmp_path: Path) -> None:
    text = DEMO.replace("[conv6]", "[conv6, text-classifier]").replace("16", "16, data_dir: .")
    write(tmp_path, text.replace("[pytorch, tensorflow]", "[pytorch]"))
    cells = load_matrix(str(tmp_path / "demo.yaml")).cells
    assert pick(cells, "model", "data_dir") == [("conv6", str(tmp_path))] * 2 + [("text-classifier", None)] * 2
