"""docs/matrix.md: its example, its keys, its limits and its tables."""

from bench.catalog import MODELS
from bench.schema import MODES, Cell, PlannedCell
from matrix_files import expand, pick
from runner.checkout import ROOT
from runner.matrix.definition import MAX_COMBINATIONS
from runner.matrix.expansion import list_builtin_matrices
from runner.yaml_files.composer import MAX_DEPTH, MAX_NODES


def test_the_example_of_the_documentation_makes_the_cells_that_it_says() -> None:
    page = (ROOT / "docs" / "matrix.md").read_text()
    cells = expand(page.partition("```yaml\n")[2].partition("```")[0])
    assert len(cells) == 13
    assert pick(cells, "framework", "mode").count(("tensorflow", "graph")) == 6
    assert pick(cells[-1:], "model", "device", "batch_size") == [("resnet18", "cpu", 64)]


def test_the_documentation_has_every_key_and_limit() -> None:
    page = (ROOT / "docs" / "matrix.md").read_text()
    keys = {*Cell.model_fields, *PlannedCell.model_fields, *MODELS} - {"schema_version", "cell"}
    assert [key for key in sorted(keys) if f"`{key}`" not in page] == []
    assert f"{MAX_COMBINATIONS:,} combinations" in page
    assert f"{MAX_NODES:,} values" in page
    assert f"{MAX_DEPTH} levels" in page


def test_the_documentation_has_the_sizes_of_every_model() -> None:
    page = (ROOT / "docs" / "matrix.md").read_text()
    rows = [[column.strip() for column in line.strip("|").split("|")] for line in page.splitlines()]
    documented = {row[0].strip("`"): row[2:5] for row in rows if len(row) == 6}
    for name, spec in MODELS.items():
        smallest = str(spec.min_input_size)
        if spec.input_size_multiple != 1:
            smallest += f", multiples of {spec.input_size_multiple}"
        assert documented[name] == [str(spec.input_size), smallest, str(spec.num_classes or "none")]


def test_the_documentation_has_every_built_in_matrix_and_choice() -> None:
    page = (ROOT / "docs" / "matrix.md").read_text()
    choices = [*MODES, "eager", "graph", "compiled", "fp32", "tf32", "fp16", "bf16", "cpu", "gpu", "train", "infer"]
    assert [name for name in [*list_builtin_matrices(), *choices] if f"`{name}`" not in page] == []
