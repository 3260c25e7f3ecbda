"""The models in all frameworks: as many parameters as published, and the same function, gradients and updates.

Large tensors are compared by samples. In float32 rounding decides single ReLUs, maxima and signs of absolute values,
and with them gradients; so the real steps also run in float64, where the same function agrees to the last digits.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bench.catalog import MODELS
from bench.schema import Framework

Array = NDArray[Any]
Arrays = Mapping[str, Array]
Facts = dict[str, Any]

PROGRAMS = Path(__file__).parent / "programs"
ROOT = Path(__file__).parents[3]
PYTHONPATH = os.pathsep.join(map(str, (ROOT / "images" / "bench" / "src", ROOT / "tests")))

# (model, input size, classes) to the parameters of each network; the sources are in the definitions.
PARAMETERS: dict[tuple[str, int, int | None], list[int]] = {
    ("conv6", 32, 10): [2_262_602],
    ("conv6", 224, 10): [52_594_250],
    ("vgg16", 224, 10): [134_301_514],
    ("vgg16", 32, 10): [134_301_514],
    ("resnet18", 224, 1000): [11_689_512],
    ("resnet18", 224, 10): [11_181_642],
    ("resnet18-cifar", 32, 10): [11_173_962],
    ("cyclegan", 256, None): [11_378_179, 11_378_179, 2_764_737, 2_764_737],
    ("matmul", 64, None): [0],
    # 20,000 tokens and 128 positions of 256; four layers of 789,760; the last norm; the head.
    ("text-classifier", 128, 2): [20_128 * 256 + 4 * 789_760 + 512 + 2 * 257],
}
ONE_THOUSAND_CLASSES = ("vgg16", 224, 1000)

KERAS_MODES = {"graph": "tensorflow", "eager": "tensorflow", "compiled": "jax"}
WITH_WEIGHTS = ("conv6", "vgg16", "resnet18", "resnet18-cifar", "cyclegan", "text-classifier")
# (model, precision, mode in Keras) that ran; VGG16 in float64 would take 6 GB, JAX minutes to compile.
RUNS = [
    *((model, "float32", mode) for model in WITH_WEIGHTS for mode in ("graph", "compiled")),
    *((model, "float64", "graph") for model in WITH_WEIGHTS if model != "vgg16"),
    ("conv6", "float64", "eager"),
    ("resnet18-cifar", "float64", "eager"),
]
LEARNING_RATES = {model: MODELS[model].learning_rate for model in WITH_WEIGHTS}
NUM_TENSORS = {
    "conv6": 9 * 2,
    "vgg16": 16 * 2,
    "resnet18": 20 + 20 * 4 + 2,
    "resnet18-cifar": 20 + 20 * 4 + 2,
    "cyclegan": 2 * 24 * 2 + 2 * 5 * 2,
    "text-classifier": 2 + 4 * 6 * 2 + 2 * 2,
}
# Positions of the feature map that each batch norm averages over, times four samples, at 40 px (16 px, CIFAR's stem).
NORM_COUNTS = {
    "resnet18": [4 * side**2 for side in [20, *[10] * 4, *[5] * 5, *[3] * 5, *[2] * 5]],
    "resnet18-cifar": [4 * side**2 for side in [16, *[16] * 4, *[8] * 5, *[4] * 5, *[2] * 5]],
}


def start_program(interpreter: Path, program: str, *arguments: str) -> subprocess.Popen[str]:
    """Start a program of `programs` with the package and the tests on its path."""
    command = [str(interpreter), str(PROGRAMS / program), *arguments]
    environment = {**os.environ, "PYTHONPATH": PYTHONPATH}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> str:
    """Return what a program printed; fail with its last words where it failed."""
    stdout, stderr = process.communicate()
    assert 0 == process.returncode, stderr[-3000:]
    return stdout


@pytest.fixture(scope="module")
def folder(interpreters: dict[Framework, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where PyTorch and then, from PyTorch's weights, TensorFlow and JAX have left their results."""
    folder = tmp_path_factory.mktemp("mirror")
    finish(start_program(interpreters["pytorch"], "mirror_pytorch.py", str(folder)))
    modes: tuple[tuple[Framework, str], ...] = (("tensorflow", "graph"), ("jax", "compiled"), ("tensorflow", "eager"))
    processes = [start_program(interpreters[name], "mirror_keras.py", name, mode, str(folder)) for name, mode in modes]
    for process in processes:
        finish(process)
    yield folder
    shutil.rmtree(folder)  # 2 GB of weights


@pytest.fixture(scope="module")
def facts(interpreters: dict[Framework, Path]) -> dict[str, Facts]:
    """What the definitions of either dialect say of themselves."""
    counted = {"torch": [*PARAMETERS, ONE_THOUSAND_CLASSES], "keras": list(PARAMETERS)}
    programs = {
        "torch": (interpreters["pytorch"], "mirror_facts_pytorch.py"),
        "keras": (interpreters["tensorflow"], "mirror_facts_keras.py"),
    }
    processes = {
        dialect: start_program(interpreter, program, json.dumps(counted[dialect]))
        for dialect, (interpreter, program) in programs.items()
    }
    return {dialect: json.loads(finish(process).splitlines()[-1]) for dialect, process in processes.items()}


def load(folder: Path, model: str, precision: str, mode: str) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return what PyTorch and what Keras computed."""
    names = (f"{model}-{precision}-pytorch.npz", f"{model}-{precision}-{KERAS_MODES[mode]}-{mode}.npz")
    torch_arrays, keras_arrays = (dict(np.load(folder / name)) for name in names)
    return torch_arrays, keras_arrays


def select(arrays: Arrays, prefix: str, *, statistics: bool = False) -> dict[str, Array]:
    """Return the parameters (or the running statistics) below `prefix`, by name."""
    below = {name.removeprefix(prefix + "/"): array for name, array in arrays.items() if name.startswith(prefix + "/")}
    return {name: array for name, array in below.items() if name.endswith(("mean", "variance")) == statistics}


def compute_error(expected: Array, found: Array) -> float:
    """Return the norm of the difference over the norm of what is expected."""
    expected = expected.astype(np.float64)
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


def has_no_gradient(name: str) -> bool:
    """Whether it is a bias before an instance norm, which takes it away again: its gradient is rounding and no more.

    That is every convolution of CycleGAN but the generator's last and the discriminator's first and last.
    """
    network, _, tensor = name.partition("/")
    last = {"generator": ("conv21.bias",), "discriminator": ("conv0.bias", "conv4.bias")}
    kind = network.partition("_")[0]
    return kind in last and tensor.endswith("bias") and tensor not in last[kind]


# What the definitions are


@pytest.mark.parametrize("dialect", ["torch", "keras"])
def test_models_have_the_published_numbers_of_parameters(facts: dict[str, Facts], dialect: str) -> None:
    expected = list(PARAMETERS.values()) + ([[138_357_544]] if dialect == "torch" else [])
    assert expected == facts[dialect]["parameters"]


@pytest.mark.parametrize("model", MODELS)
def test_the_smallest_sizes_build_and_run_in_both_dialects(facts: dict[str, Facts], model: str) -> None:
    spec = MODELS[model]
    expected = facts["torch"]["shapes"][model]
    for size, shapes in zip(
        (spec.min_input_size, spec.min_input_size + spec.input_size_multiple), expected, strict=True
    ):
        match spec.task:
            case "image-translation":
                assert 2 * [[2, 3, size, size]] == shapes[:2]
            case "matrix-product":
                assert [[2, size, size]] == shapes
            case _:
                assert [[2, spec.num_classes]] == shapes
    assert expected == facts["keras"]["shapes"][model]


@pytest.mark.parametrize("model", MODELS)
def test_keras_models_compute_in_the_type_of_the_policy(facts: dict[str, Facts], model: str) -> None:
    for policy, found in facts["keras"]["types"][model].items():
        variables = [] if model == "matmul" else ["float32" if policy.startswith("mixed_") else policy]
        assert [policy.removeprefix("mixed_"), *variables] == found


@pytest.mark.parametrize("dialect", ["torch", "keras"])
def test_vgg16_has_two_dropouts_of_a_half(facts: dict[str, Facts], dialect: str) -> None:
    assert [0.5, 0.5] == facts[dialect]["dropouts"]


def test_vgg16_averages_feature_maps_of_any_size_to_the_same_49_values(facts: dict[str, Facts]) -> None:
    for expected, found in zip(facts["torch"]["pooled"], facts["keras"]["pooled"], strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("model", WITH_WEIGHTS)
def test_both_dialects_draw_initial_weights_from_the_same_distributions(folder: Path, model: str) -> None:
    """Same standard deviation and kurtosis (1.8 uniform, 3 normal, less if truncated) to 5 standard errors each."""
    names = ("initial-pytorch.json", "initial-tensorflow-graph.json")
    expected, found = (json.loads((folder / name).read_text())[model] for name in names)
    assert expected.keys() == found.keys()
    for name, (size, deviation, kurtosis) in expected.items():
        _, found_deviation, found_kurtosis = found[name]
        assert (deviation == 0) == (found_deviation == 0), name
        if size >= 1000 and deviation:
            # Of normal values: 1 / sqrt(2 n) of the deviation, sqrt(24 / n) of the kurtosis; of a difference more.
            assert found_deviation == pytest.approx(deviation, rel=5 / size**0.5), name
            assert found_kurtosis == pytest.approx(kurtosis, abs=5 * (48 / size) ** 0.5), name


# What they compute


@pytest.mark.parametrize(("model", "precision", "mode"), RUNS)
def test_all_frameworks_start_from_the_same_weights_and_data(
    folder: Path, model: str, precision: str, mode: str
) -> None:
    expected, found = load(folder, model, precision, mode)
    assert expected.keys() == found.keys()
    names = [name for name in expected if name.startswith("start/")]
    assert NUM_TENSORS[model] == len(names)
    for name in (*names, "input0", "input1"):
        np.testing.assert_array_equal(expected[name], found[name])
    assert {precision} == {str(found[name].dtype) for name in names}


@pytest.mark.parametrize(("model", "precision", "mode"), RUNS)
def test_inference_gives_the_same_output(folder: Path, model: str, precision: str, mode: str) -> None:
    """In float64 to 1e-7: Keras keeps some constants (the slope of leaky ReLU, 0.2) in float32."""
    arrays, others = load(folder, model, precision, mode)
    expected, found = select(arrays, "output"), select(others, "output")
    assert (4 if model == "cyclegan" else 1) == len(expected)
    for name, output in expected.items():
        assert (1e-4 if precision == "float32" else 1e-7) > compute_error(output, found[name]), name


@pytest.mark.parametrize(("model", "precision", "mode"), RUNS)
def test_a_training_step_has_the_same_losses(folder: Path, model: str, precision: str, mode: str) -> None:
    expected, found = load(folder, model, precision, mode)
    assert (3, 2 if model == "cyclegan" else 1) == expected["losses"].shape
    np.testing.assert_allclose(found["losses"][0], expected["losses"][0], rtol=1e-5 if precision == "float32" else 1e-6)


@pytest.mark.parametrize(("model", "precision", "mode"), RUNS)
def test_a_training_step_has_the_same_gradients(folder: Path, model: str, precision: str, mode: str) -> None:
    """To 1e-4 of each tensor's norm in float32; VGG16 and CycleGAN, deep and without batch norm, to 1% and 5%."""
    arrays, others = load(folder, model, precision, mode)
    expected, found = select(arrays, "gradient"), select(others, "gradient")
    assert expected.keys() == found.keys() == select(arrays, "start").keys()
    tolerance = {"vgg16": 0.01, "cyclegan": 0.05}.get(model, 1e-4) if precision == "float32" else 1e-6
    compared = [name for name in expected if not has_no_gradient(name)]
    errors = {name: compute_error(expected[name], found[name]) for name in compared}
    assert {} == {name: error for name, error in errors.items() if error >= tolerance}


@pytest.mark.parametrize("network", ["generator_ab", "generator_ba", "discriminator_a", "discriminator_b"])
def test_biases_before_an_instance_norm_have_no_gradient(folder: Path, network: str) -> None:
    for arrays in load(folder, "cyclegan", "float64", "graph"):
        gradients = {name: array for name, array in select(arrays, "gradient").items() if name.startswith(network)}
        largest = max(float(np.abs(array).max()) for array in gradients.values())
        without = [array for name, array in gradients.items() if has_no_gradient(name)]
        assert (23 if network.startswith("generator") else 3) == len(without)
        assert 1e-6 * largest > max(float(np.abs(array).max()) for array in without)


@pytest.mark.parametrize(("model", "precision", "mode"), RUNS)
def test_three_adam_steps_lead_to_the_same_parameters(folder: Path, model: str, precision: str, mode: str) -> None:
    """To 1% (5% in float32, 15% in CycleGAN) of the distance gone by all weights whose gradients agree to 0.1%.

    Adam divides a gradient by its own size: of those next to zero, rounding decides the way. Keras keeps Adam's betas
    in float32, also for float64 weights: a difference of 7e-6 in the first step, which moves single ReLUs. CycleGAN's
    losses jump in these steps, in float32 too far to compare: there only the losses are.
    """
    arrays, others = load(folder, model, precision, mode)
    np.testing.assert_allclose(others["losses"], arrays["losses"], rtol=0.05 if precision == "float32" else 1e-3)
    if (model, precision) == ("cyclegan", "float32"):
        return
    updates, differences, num_compared, num_gradients = [], [], 0, 0
    for name, gradient in select(arrays, "gradient").items():
        is_same = np.abs(others[f"gradient/{name}"] - gradient) < 1e-3 * np.abs(gradient)
        end = arrays[f"end/{name}"].astype(np.float64)
        updates.append((end - arrays[f"start/{name}"])[is_same])
        differences.append((others[f"end/{name}"] - end)[is_same])
        num_compared += np.count_nonzero(is_same)
        num_gradients += np.count_nonzero(gradient)
    assert (0.8 if model == "vgg16" else 0.95) < num_compared / num_gradients
    tolerance = 0.15 if model == "cyclegan" else 0.05 if precision == "float32" else 0.01
    assert tolerance > np.linalg.norm(np.concatenate(differences)) / np.linalg.norm(np.concatenate(updates))


@pytest.mark.parametrize("framework", ["pytorch", "tensorflow"])
@pytest.mark.parametrize("model", [model for model in WITH_WEIGHTS if model != "vgg16"])
def test_the_first_step_of_adam_moves_every_weight_by_the_learning_rate(
    folder: Path, model: str, framework: str
) -> None:
    """Kingma and Ba, algorithm 1: at t = 1 the update is lr g / (|g| + epsilon), so lr against the gradient's sign."""
    arrays = load(folder, model, "float64", "graph")[framework == "tensorflow"]
    start, first, gradient = (select(arrays, prefix) for prefix in ("start", "first", "gradient"))
    for name in gradient:
        is_above_epsilon = np.abs(gradient[name]) > 1e-11
        step = (first[name] - start[name]) / LEARNING_RATES[model]
        np.testing.assert_allclose(step[is_above_epsilon], -np.sign(gradient[name][is_above_epsilon]), atol=1e-3)
        assert (step[gradient[name] == 0] == 0).all()


@pytest.mark.parametrize(("model", "mode"), [(run[0], run[2]) for run in RUNS if "resnet" in run[0] and "64" in run[1]])
def test_batch_norms_keep_the_same_running_means(folder: Path, model: str, mode: str) -> None:
    arrays, others = load(folder, model, "float64", mode)
    expected, found = select(arrays, "first", statistics=True), select(others, "first", statistics=True)
    for number in range(20):
        name = f"model/norm{number}.mean"
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("model", "mode"), [(run[0], run[2]) for run in RUNS if "resnet" in run[0] and "64" in run[1]])
def test_running_variances_differ_by_bessels_correction_and_nothing_else(folder: Path, model: str, mode: str) -> None:
    arrays, others = load(folder, model, "float64", mode)
    expected, found = select(arrays, "first", statistics=True), select(others, "first", statistics=True)
    start = select(arrays, "start", statistics=True)
    for number, count in enumerate(NORM_COUNTS[model]):
        name = f"model/norm{number}.variance"
        of_n_minus_1 = (expected[name] - 0.9 * start[name]) / 0.1
        of_n = (found[name] - 0.9 * start[name]) / 0.1
        np.testing.assert_allclose(of_n, of_n_minus_1 * (count - 1) / count, rtol=1e-5, atol=1e-9)
