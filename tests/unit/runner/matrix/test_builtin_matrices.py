"""The matrices that come with the tool, their names and ids, and the page that describes them."""

import pytest

from bench.errors import UserError
from bench.registry import FRAMEWORKS
from bench.schema import Cell
from bench.verdicts import checks
from matrix_files import expand, pick
from runner.matrix import EXECUTION_KEYS, MAX_COMBINATIONS, load_matrix
from runner.sources import ROOT, list_builtin_matrices


def test_every_built_in_matrix_loads_and_bears_the_name_of_its_file() -> None:
    assert "smoke" in list_builtin_matrices()
    for name in list_builtin_matrices():
        loaded = load_matrix(name)
        assert loaded.name == name
        assert loaded.description
        assert loaded.source.endswith(f"matrices/{name}.yaml")


@pytest.mark.parametrize("name", list_builtin_matrices())
def test_every_window_of_the_built_in_matrices_is_long_enough_to_be_valid(name: str) -> None:
    cells = [planned.cell for planned in load_matrix(name).cells]
    seconds = checks.MIN_WINDOW_SECONDS
    assert [cell.cell_id for cell in cells if cell.min_seconds < seconds] == []
    few = [cell for cell in cells if cell.num_steps < checks.MIN_STEPS]
    enough = (checks.MIN_LONG_STEPS, checks.MIN_LONG_WINDOW_SECONDS)
    assert [c.cell_id for c in few if c.num_steps < enough[0] or c.min_seconds < enough[1]] == []


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


def test_an_unknown_name_gets_the_nearest_and_the_list() -> None:
    with pytest.raises(UserError) as caught:
        load_matrix("smoek")
    assert "matrix 'smoek': is neither a built-in matrix nor a file; did you mean 'smoke'?" in str(caught.value)
    assert ", ".join(list_builtin_matrices()) in str(caught.value)


def test_the_example_of_the_documentation_makes_the_cells_that_it_says() -> None:
    page = (ROOT / "docs" / "matrix.md").read_text()
    cells = expand(page.partition("```yaml\n")[2].partition("```")[0])
    assert len(cells) == 13
    assert pick(cells, "framework", "mode").count(("tensorflow", "graph")) == 6
    assert pick(cells[-1:], "model", "device", "batch_size") == [("resnet18", "cpu", 64)]


def test_the_documentation_has_every_key_limit_matrix_and_choice() -> None:
    page = (ROOT / "docs" / "matrix.md").read_text()
    keys = {*Cell.model_fields, *EXECUTION_KEYS} - {"schema_version"}
    modes = {mode for spec in FRAMEWORKS.values() for mode in spec.modes}
    choices = [*FRAMEWORKS, *modes, "fp32", "tf32", "fp16", "bf16", "cpu", "gpu", "train", "infer"]
    assert [name for name in [*sorted(keys), *list_builtin_matrices(), *choices] if f"`{name}`" not in page] == []
    assert f"{MAX_COMBINATIONS:,} combinations" in page
