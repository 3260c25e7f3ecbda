"""The registry: every entry is complete, and every definition belongs to one."""

import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from bench.registry import FRAMEWORKS, MODELS, Dialect, Framework, name_definition

ROOT = Path(__file__).parents[3]
BENCH = ROOT / "images" / "bench" / "src" / "bench"
PROGRAMS = Path(__file__).parent / "programs"
PROGRAM = ROOT / "docs" / "make_tables.py"
RECIPE = "see CONTRIBUTING.md, 'Add a model'"


@pytest.mark.parametrize("model", MODELS)
def test_a_model_has_its_functions_and_a_reference_at_its_default_size(model: str) -> None:
    spec = MODELS[model]
    for dialect in get_args(Dialect):
        function = f"\ndef {name_definition(model, dialect)}(cell"
        assert function in (BENCH / "models" / f"{dialect}.py").read_text(), RECIPE
    sizes = {(reference.input_size, reference.num_classes) for reference in spec.references}
    assert (spec.input_size, spec.num_classes) in sizes, RECIPE
    assert all(reference.source for reference in spec.references), RECIPE


def test_every_definition_belongs_to_an_entry() -> None:
    for dialect in get_args(Dialect):
        prefix = name_definition("matmul", dialect).removesuffix("_matmul")
        definitions = (BENCH / "models" / f"{dialect}.py").read_text()
        found = re.findall(rf"^def {prefix}_(\w+)\(cell: Cell\) -> (?!int|tuple)", definitions, re.M)
        expected = {(spec.definition or name).replace("-", "_") for name, spec in MODELS.items()}
        assert set(found) - {"step_cost"} == expected


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_framework_has_code_and_what_its_images_are_built_from(framework: Framework) -> None:
    spec = FRAMEWORKS[framework]
    requirements = [f"requirements-{flavour}.{kind}" for flavour in ("cpu", "cuda") for kind in ("in", "txt")]
    assert [name for name in requirements if not (ROOT / "images" / framework / name).is_file()] == []
    assert (BENCH / "frameworks" / f"{framework}.py").is_file()
    assert (BENCH / "data" / f"{framework}.py").is_file()
    assert (PROGRAMS / f"check_{framework}.py").is_file()
    assert spec.modes
    assert spec.devices


def test_the_tables_of_the_documentation_are_in_step() -> None:
    process = subprocess.run([sys.executable, str(PROGRAM), "--check"], capture_output=True, text=True)
    assert (process.returncode, process.stderr) == (0, "")
