"""docs/matrix.md: its example, its keys, its limits and its tables."""

from bench.registry import FRAMEWORKS
from bench.schema import Cell, PlannedCell
from matrix_files import expand, pick
from runner.checkout import ROOT
from runner.matrix.builtin import list_builtin_matrices
from runner.matrix.definition import MAX_COMBINATIONS


def test_the_example_of_the_documentation_makes_the_cells_that_it_says() -> None:
    page = (ROOT / "docs" / "matrix.md").read_text()
    cells = expand(page.partition("```yaml\n")[2].partition("```")[0])
    assert len(cells) == 13
    assert pick(cells, "framework", "mode").count(("tensorflow", "graph")) == 6
    assert pick(cells[-1:], "model", "device", "batch_size") == [("resnet18", "cpu", 64)]


def test_the_documentation_has_every_key_and_limit() -> None:
    page = (ROOT / "docs" / "matrix.md").read_text()
    keys = {*Cell.model_fields, *PlannedCell.model_fields} - {"schema_version", "cell"}
    assert [key for key in sorted(keys) if f"`{key}`" not in page] == []
    assert f"{MAX_COMBINATIONS:,} combinations" in page


def test_the_documentation_has_every_built_in_matrix_and_choice() -> None:
    page = (ROOT / "docs" / "matrix.md").read_text()
    modes = {mode for spec in FRAMEWORKS.values() for mode in spec.modes}
    choices = [*FRAMEWORKS, *modes, "fp32", "tf32", "fp16", "bf16", "cpu", "gpu", "train", "infer"]
    assert [name for name in [*list_builtin_matrices(), *choices] if f"`{name}`" not in page] == []
