"""The registry: complete entries, and a message for whatever an entry lacks."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bench.registry import FRAMEWORKS, MODELS, Framework, list_gaps

ROOT = Path(__file__).parents[3]
BENCH = ROOT / "images" / "bench" / "src" / "bench"
PROGRAMS = Path(__file__).parent / "programs"
PROGRAM = ROOT / "docs" / "make_tables.py"
FUNCTIONS = (("torch", "build_fake_net(cell"), ("keras", "build_fake_net(cell"), ("flops", "count_fake_net(cell"))


@pytest.mark.parametrize("model", MODELS)
def test_no_model_lacks_anything(model: str) -> None:
    assert list_gaps(model, MODELS[model]) == []


def test_what_an_entry_lacks_is_named(tmp_path: Path) -> None:
    """A complete entry named fake-net, but for what is missing."""
    spec, advice = MODELS["conv6"], "see CONTRIBUTING.md, 'Add a model'"
    (tmp_path / "models").mkdir()
    for dialect, function in FUNCTIONS:
        (tmp_path / "models" / f"{dialect}.py").write_text(f"\ndef {function}: Cell) -> Any: ...")
    reference = "model 'fake-net': its entry has no Reference(input_size=32, num_classes=10, ...), its default size"
    others = tuple(reference for reference in spec.references if reference.input_size != spec.input_size)
    assert list_gaps("fake-net", spec, tmp_path) == []
    assert list_gaps("fake-net", replace(spec, references=others), tmp_path) == [f"{reference}: {advice}"]
    for dialect, function in FUNCTIONS:
        path = tmp_path / "models" / f"{dialect}.py"
        text = path.read_text()
        path.write_text("")
        assert list_gaps("fake-net", spec, tmp_path) == [
            f"model 'fake-net': there is no {function}) in {path}: {advice}"
        ]
        path.write_text(text)


def test_every_definition_belongs_to_an_entry() -> None:
    for dialect, function in FUNCTIONS:
        prefix = function.partition("_")[0]
        definitions = (BENCH / "models" / f"{dialect}.py").read_text()
        found = re.findall(rf"^def {prefix}_(\w+)\(cell: Cell\) -> (?!int|tuple)", definitions, re.M)
        assert set(found) - {"step_cost"} == {name.replace("-", "_") for name in MODELS}


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


def test_the_tables_of_the_documentation_are_in_step() -> None:
    process = subprocess.run([sys.executable, str(PROGRAM), "--check"], capture_output=True, text=True)
    assert (process.returncode, process.stderr) == (0, "")
