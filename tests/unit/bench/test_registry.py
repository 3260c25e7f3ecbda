"""The registry: complete entries, and a message for whatever an entry lacks."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from bench.registry import FRAMEWORKS, MODELS, Framework, ModelSpec, list_gaps

ROOT = Path(__file__).parents[3]
BENCH = ROOT / "images" / "bench" / "src" / "bench"
PROGRAMS = Path(__file__).parent / "programs"
PROGRAM = ROOT / "docs" / "make_tables.py"


# Models


@pytest.mark.parametrize("model", MODELS)
def test_no_model_lacks_anything(model: str) -> None:
    assert list_gaps(model, MODELS[model]) == []


@pytest.fixture
def fake(tmp_path: Path) -> tuple[ModelSpec, Path]:
    """A complete entry named fake-net and the folder with its definitions."""
    for dialect in ("torch", "keras", "flops"):
        (tmp_path / "models" / dialect).mkdir(parents=True)
        (tmp_path / "models" / dialect / "fake_net.py").touch()
    return MODELS["conv6"], tmp_path


def test_a_complete_model_lacks_nothing(fake: tuple[ModelSpec, Path]) -> None:
    spec, folder = fake
    assert list_gaps("fake-net", spec, folder) == []


@pytest.mark.parametrize(
    ("dialect", "function"), [("torch", "build(cell)"), ("keras", "build(cell)"), ("flops", "count(cell)")]
)
def test_a_definition_that_is_missing_is_named(fake: tuple[ModelSpec, Path], dialect: str, function: str) -> None:
    spec, folder = fake
    path = folder / "models" / dialect / "fake_net.py"
    path.unlink()
    assert list_gaps("fake-net", spec, folder) == [
        f"model 'fake-net': there is no {path}, expected a module with {function}: see CONTRIBUTING.md, 'Add a model'"
    ]


def test_reference_numbers_that_are_missing_are_named(fake: tuple[ModelSpec, Path]) -> None:
    spec, folder = fake
    others = tuple(reference for reference in spec.references if reference.input_size != spec.input_size)
    expected = [
        "model 'fake-net': its entry has no Reference(input_size=32, num_classes=10, ...), its default size: "
        "see CONTRIBUTING.md, 'Add a model'"
    ]
    assert list_gaps("fake-net", replace(spec, references=()), folder) == expected
    assert list_gaps("fake-net", replace(spec, references=others), folder) == expected


def test_a_reference_without_source_is_named(fake: tuple[ModelSpec, Path]) -> None:
    spec, folder = fake
    references = tuple(replace(reference, source="") for reference in spec.references[:1])
    assert list_gaps("fake-net", replace(spec, references=references), folder) == [
        "model 'fake-net': its Reference at 32 has no source: see CONTRIBUTING.md, 'Add a model'"
    ]


def test_every_definition_belongs_to_an_entry() -> None:
    shared = {"__init__", "layers", "image_layers", "initializers", "fused_norm"}
    found = {path.stem for path in (BENCH / "models").glob("*/*.py")} - shared
    assert found == {name.replace("-", "_") for name in MODELS}


# Frameworks


def test_the_type_of_frameworks_names_those_of_the_registry() -> None:
    assert get_args(Framework) == tuple(FRAMEWORKS)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_framework_has_code_and_what_its_images_are_built_from(framework: Framework) -> None:
    spec = FRAMEWORKS[framework]
    requirements = [f"requirements-{flavour}.{kind}" for flavour in ("cpu", "cuda") for kind in ("in", "txt")]
    assert [name for name in requirements if not (ROOT / "images" / framework / name).is_file()] == []
    assert (BENCH / "frameworks" / f"{framework}.py").is_file()
    assert (BENCH / "data" / f"{framework}.py").is_file()
    assert (PROGRAMS / f"check_{framework}.py").is_file()
    assert (PROGRAMS / f"check_data_{framework}.py").is_file()
    assert spec.modes
    assert spec.devices


def test_every_framework_with_code_or_an_image_is_in_the_registry() -> None:
    images = {path.parent.relative_to(ROOT).as_posix() for path in ROOT.glob("images/*/requirements-cpu.in")}
    assert images == {f"images/{framework}" for framework in FRAMEWORKS}
    offering = re.compile(r"^def load\(", re.MULTILINE)
    modules = [path for path in (BENCH / "frameworks").glob("*.py") if offering.search(path.read_text())]
    assert {path.stem for path in modules} == set(FRAMEWORKS)


def test_every_framework_is_compared_with_a_reference_or_is_one() -> None:
    references = {spec.reference for spec in FRAMEWORKS.values() if spec.reference is not None}
    assert {name for name, spec in FRAMEWORKS.items() if spec.reference is None} == references


# The documentation


def test_the_tables_of_the_documentation_are_in_step() -> None:
    process = subprocess.run([sys.executable, str(PROGRAM), "--check"], capture_output=True, text=True)
    assert (process.returncode, process.stderr) == (0, "")
