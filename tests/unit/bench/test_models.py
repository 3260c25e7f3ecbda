"""The models in both frameworks: as many parameters as published, and the same function, gradients and updates.

In float32 outputs and gradients must agree to 1e-4 of their norm. That leaves room for a wrong epsilon, so the real
steps also run in float64, where the same function agrees to the last digits.
"""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bench.schema import Framework

Arrays = Mapping[str, NDArray[Any]]

PROGRAMS = Path(__file__).parent / "programs"
ROOT = Path(__file__).parents[3]
PYTHONPATH = os.pathsep.join(map(str, (ROOT / "images" / "bench" / "src", ROOT / "tests")))
MODELS = ("conv6", "resnet18")
MODES = ("eager", "graph")
LEARNING_RATES = {"conv6": 3e-4, "resnet18": 1e-3}
# Positions of the feature map that each of ResNet18's batch norms averages over, times four samples, at 64 px.
NORM_COUNTS = [4 * side**2 for side in [32, *[16] * 4, *[8] * 5, *[4] * 5, *[2] * 5]]


@pytest.fixture(scope="module")
def folder(interpreters: dict[Framework, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where PyTorch and then, from PyTorch's weights, TensorFlow have left their results."""
    folder = tmp_path_factory.mktemp("mirror")
    for framework in ("pytorch", "tensorflow"):
        program = [str(interpreters[framework]), str(PROGRAMS / f"mirror_{framework}.py"), str(folder)]
        process = subprocess.run(program, env={**os.environ, "PYTHONPATH": PYTHONPATH}, capture_output=True, text=True)
        assert 0 == process.returncode, process.stderr[-3000:]
    return folder


def load(
    folder: Path, model: str, precision: str, mode: str
) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]]]:
    """Return what PyTorch and what TensorFlow computed."""
    names = (f"{model}-{precision}.npz", f"{model}-{precision}-{mode}.npz")
    torch_arrays, keras_arrays = (dict(np.load(folder / name)) for name in names)
    return torch_arrays, keras_arrays


def select(arrays: Arrays, prefix: str, *, statistics: bool = False) -> dict[str, NDArray[Any]]:
    """Return the parameters (or the running statistics) below `prefix`, by name."""
    below = {name.removeprefix(prefix + "/"): array for name, array in arrays.items() if name.startswith(prefix + "/")}
    return {name: array for name, array in below.items() if name.endswith(("mean", "variance")) == statistics}


def compute_error(expected: NDArray[Any], found: NDArray[Any]) -> float:
    """Return the norm of the difference over the norm of what is expected."""
    expected = expected.astype(np.float64)
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


def compute_update(arrays: Arrays) -> NDArray[np.float64]:
    """Return by how much the steps have changed all parameters, in one vector."""
    start, end = select(arrays, "start"), select(arrays, "end")
    return np.concatenate([(end[name] - start[name].astype(np.float64)).ravel() for name in sorted(start)])


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("model", MODELS)
def test_both_frameworks_start_from_the_same_weights_and_data(folder: Path, model: str, precision: str) -> None:
    expected, found = load(folder, model, precision, "eager")
    names = {name for name in expected if name.startswith("start/")}
    assert names == {name for name in found if name.startswith("start/")}
    assert {"conv6": 18, "resnet18": 20 + 4 * 20 + 2}[model] == len(names)
    for name in (*names, "images", "labels"):
        np.testing.assert_array_equal(expected[name], found[name])
    assert precision == str(found["output"].dtype) == str(found["end/conv0.weight"].dtype)


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-4), ("float64", 1e-12)])
@pytest.mark.parametrize("model", MODELS)
def test_inference_gives_the_same_output(folder: Path, model: str, precision: str, tolerance: float) -> None:
    expected, found = load(folder, model, precision, "eager")
    assert (4, 10) == expected["output"].shape
    assert tolerance > compute_error(expected["output"], found["output"])


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-5), ("float64", 1e-12)])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("model", MODELS)
def test_a_training_step_has_the_same_loss(
    folder: Path, model: str, mode: str, precision: str, tolerance: float
) -> None:
    expected, found = load(folder, model, precision, mode)
    assert expected["losses"][0] == pytest.approx(found["losses"][0], rel=tolerance)


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-4), ("float64", 1e-10)])
@pytest.mark.parametrize("model", MODELS)
def test_a_training_step_has_the_same_gradients(folder: Path, model: str, precision: str, tolerance: float) -> None:
    arrays, others = load(folder, model, precision, "eager")
    expected, found = select(arrays, "gradient"), select(others, "gradient")
    assert {"conv6": 18, "resnet18": 20 + 2 * 20 + 2}[model] == len(expected)
    assert expected.keys() == found.keys()
    errors = {name: compute_error(expected[name], found[name]) for name in expected}
    assert {} == {name: error for name, error in errors.items() if error >= tolerance}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("model", MODELS)
def test_three_adam_steps_lead_to_the_same_parameters(folder: Path, model: str, mode: str) -> None:
    """To 0.1% of the distance gone: Keras keeps Adam's betas and learning rate in float32, also for float64 weights."""
    expected, found = load(folder, model, "float64", mode)
    assert expected["losses"] == pytest.approx(found["losses"], rel=1e-4)
    assert 1e-3 > compute_error(compute_update(expected), compute_update(found))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("model", MODELS)
def test_three_adam_steps_in_float32_go_the_same_way(folder: Path, model: str, mode: str) -> None:
    """Loosely: each step divides a gradient by its own size, so rounding decides the way of those next to zero.

    Conv6 has many: 12% of the distance, nearly all of it from where Adam's epsilon is added (see tensorflow.py).
    """
    expected, found = load(folder, model, "float32", mode)
    assert expected["losses"] == pytest.approx(found["losses"], rel=0.01, abs=1e-3)
    assert 0.2 > compute_error(compute_update(expected), compute_update(found))


@pytest.mark.parametrize("framework", ["pytorch", "tensorflow"])
@pytest.mark.parametrize("model", MODELS)
def test_the_first_step_of_adam_moves_every_weight_by_the_learning_rate(
    folder: Path, model: str, framework: str
) -> None:
    """Kingma and Ba, algorithm 1: at t = 1 the update is lr g / (|g| + epsilon), so lr against the gradient's sign."""
    arrays = load(folder, model, "float64", "eager")[framework == "tensorflow"]
    start, first, gradient = (select(arrays, prefix) for prefix in ("start", "first", "gradient"))
    for name in gradient:
        step = (first[name] - start[name]) / LEARNING_RATES[model]
        np.testing.assert_allclose(step, -np.sign(gradient[name]), atol=1e-3)


@pytest.mark.parametrize("mode", MODES)
def test_batch_norms_keep_the_same_running_means(folder: Path, mode: str) -> None:
    arrays, others = load(folder, "resnet18", "float64", mode)
    expected, found = select(arrays, "first", statistics=True), select(others, "first", statistics=True)
    for number in range(20):
        np.testing.assert_allclose(found[f"norm{number}.mean"], expected[f"norm{number}.mean"], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("mode", MODES)
def test_running_variances_differ_by_bessels_correction_and_nothing_else(folder: Path, mode: str) -> None:
    arrays, others = load(folder, "resnet18", "float64", mode)
    expected, found = select(arrays, "first", statistics=True), select(others, "first", statistics=True)
    start = select(arrays, "start", statistics=True)
    for number, count in enumerate(NORM_COUNTS):
        name = f"norm{number}.variance"
        of_n_minus_1 = (expected[name] - 0.9 * start[name]) / 0.1
        of_n = (found[name] - 0.9 * start[name]) / 0.1
        np.testing.assert_allclose(of_n, of_n_minus_1 * (count - 1) / count, rtol=1e-5, atol=1e-9)
