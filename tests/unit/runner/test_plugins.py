"""bench.registry.plugins: the template of a plugin is installed, and what it brings is used as what comes with us."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from uv import find_uv_bin

from bench.schema import Framework

ROOT = Path(__file__).parents[3]
MATRIX = """
name: own
axes: {model: [lenet5], framework: [pytorch], device: [cpu], phase: [train], batch_size: [2], precision: [fp32]}
defaults: {num_steps: 2, min_seconds: 0, num_warmup_steps: 1, max_warmup_seconds: 1, sampling_seconds: 0, repeats: 1}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the template, installed, and a plugin whose code is lost."""
    folder = tmp_path_factory.mktemp("site")
    template = ROOT / "docs" / "examples" / "plugin"
    install = [find_uv_bin(), "pip", "install", "-q", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*install, "--python", sys.executable, "--target", folder, template], check=True)
    lost = folder / "lost-1.0.dist-info"
    lost.mkdir()
    (lost / "METADATA").write_text("Metadata-Version: 2.1\nName: lost\nVersion: 1.0\n")
    (lost / "entry_points.txt").write_text("[benchmatrix.models]\nlost = lost_package:MODEL\n")
    return folder


def call(site: Path, folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    variables: Mapping[str, str] = {"PYTHONPATH": str(site), "BENCHMATRIX_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, "-m", "benchmatrix", *arguments]
    return subprocess.run(command, cwd=folder, env=os.environ | variables, capture_output=True, text=True)


def test_a_model_is_measured_with_the_version_of_its_plugin(
    site: Path, tmp_path: Path, interpreters: Mapping[Framework, Path], lock_folder: Path
) -> None:
    (tmp_path / "own.yaml").write_text(MATRIX)
    words = ("own.yaml", "--run-id", "one", "--no-report", "--python", str(interpreters["pytorch"]))
    done = call(site, tmp_path, "run", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (
        "models 'lost' of a plugin cannot be loaded: ModuleNotFoundError: No module named 'lost_package'" in done.stderr
    )
    (record,) = (tmp_path / "results" / "runs" / "one" / "results").rglob("*.json")
    result = json.loads(record.read_text())
    assert (result["status"], result["cell"]["model"]) == ("ok", "lenet5")
    assert result["environment"]["versions"]["benchmatrix-lenet"].startswith("0.1.0+")


def test_a_framework_for_which_it_is_not_written_is_one_message(site: Path, tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(MATRIX.replace("pytorch", "jax"))
    done = call(site, tmp_path, "run", "own.yaml", "--dry-run")
    assert done.returncode == 2
    assert "lenet5 is not written for jax; leave it out of the matrix" in done.stderr


def test_an_alarm_has_the_body_that_a_plugin_writes(site: Path, tmp_path: Path) -> None:
    alarm = "SimpleNamespace(matrix='m', regressions=[1])"
    code = f"from types import SimpleNamespace; from runner.nights import FORMATS; print(FORMATS['teams']({alarm}))"
    variables = os.environ | {"PYTHONPATH": str(site)}
    done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=True)
    assert done.stdout == """b'{"type": "message", "text": "m: regressions: 1"}'\n"""
