"""The models in all frameworks: the same function, gradients and updates.

Large tensors are compared by samples. In float32 rounding decides single ReLUs, maxima and signs of absolute values,
and with them gradients; so the real steps also run in float64, where the same function agrees to the last digits.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bench.registry import MODELS, Framework
from framework_programs import finish_program, start_program
from mirror_cells import CASES, KERAS_RUNS, NUM_STEPS, SMALLER, TRAINED, MirrorPrecision, list_keras_runs

Array = NDArray[Any]
Arrays = Mapping[str, Array]

# (model, precision, framework, mode) of all runs in Keras.
RUNS = [
    (model, precision, framework, mode)
    for framework, mode in KERAS_RUNS
    for model, precision in list_keras_runs(framework, mode)
]
IN_FLOAT64 = [run for run in RUNS if run[1] == "float64"]
RUN = ("model", "precision", "framework", "mode")


@pytest.fixture(scope="module")
def folder(interpreters: dict[Framework, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where PyTorch and then, from PyTorch's weights, TensorFlow and JAX have left their results."""
    folder = tmp_path_factory.mktemp("mirror")
    finish_program(start_program(interpreters["pytorch"], "mirror_pytorch.py", str(folder)))
    processes = [
        start_program(interpreters[name], "mirror_keras.py", name, mode, str(folder)) for name, mode in KERAS_RUNS
    ]
    for process in processes:
        finish_program(process)
    yield folder
    shutil.rmtree(folder)  # 2 GB of weights


def load(
    folder: Path, model: str, precision: str, framework: str, mode: str
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return what PyTorch and what Keras computed."""
    names = (f"{model}-{precision}-pytorch.npz", f"{model}-{precision}-{framework}-{mode}.npz")
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
    """Return whether it is a bias before an instance norm, which cancels it: its gradient is only rounding.

    That is every convolution of CycleGAN but the generator's last and the discriminator's first and last.
    """
    network, _, tensor = name.partition("/")
    behind_blocks = 3 + 2 * SMALLER["GENERATOR_BLOCKS"]
    last = {"generator": (f"conv{behind_blocks}.bias",), "discriminator": ("conv0.bias", "conv4.bias")}
    kind = network.partition("_")[0]
    return kind in last and tensor.endswith("bias") and tensor not in last[kind]


def test_every_model_that_learns_is_compared_in_tensorflow_and_every_kind_of_layer_in_jax_too(folder: Path) -> None:
    kinds = json.loads((folder / "kinds-tensorflow-graph.json").read_text())
    assert kinds.keys() == set(TRAINED)
    in_jax = [kind for model, _, framework, _ in RUNS if framework == "jax" for kind in kinds[model]]
    assert {kind for own in kinds.values() for kind in own} - set(in_jax) == {"Dropout"}  # is off here


@pytest.mark.parametrize("model", TRAINED)
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


@pytest.mark.parametrize(RUN, RUNS)
def test_all_frameworks_start_from_the_same_weights_and_data(
    folder: Path, model: str, precision: str, framework: str, mode: str
) -> None:
    expected, found = load(folder, model, precision, framework, mode)
    assert found.keys() == {name for name in expected if not name.startswith("norm_count/")}
    names = [name for name in expected if name.startswith("start/")]
    assert expected["num_tensors"] == found["num_tensors"] == len(names)
    for name in (*names, "input0", "input1"):
        np.testing.assert_array_equal(expected[name], found[name])
    assert {precision} == {str(found[name].dtype) for name in names}


@pytest.mark.parametrize(RUN, RUNS)
def test_inference_gives_the_same_output(folder: Path, model: str, precision: str, framework: str, mode: str) -> None:
    """In float64 to 1e-7: Keras keeps some constants (the slope of leaky ReLU, 0.2) in float32."""
    arrays, others = load(folder, model, precision, framework, mode)
    expected, found = select(arrays, "output"), select(others, "output")
    assert len(expected) == len(MODELS[model].references[0].num_parameters)
    for name, output in expected.items():
        assert (1e-4 if precision == "float32" else 1e-7) > compute_error(output, found[name]), name


@pytest.mark.parametrize(RUN, RUNS)
def test_a_training_step_has_the_same_losses(
    folder: Path, model: str, precision: str, framework: str, mode: str
) -> None:
    expected, found = load(folder, model, precision, framework, mode)
    num_parts = 2 if MODELS[model].task == "image-translation" else 1
    assert expected["losses"].shape == (NUM_STEPS, num_parts)
    np.testing.assert_allclose(found["losses"][0], expected["losses"][0], rtol=1e-5 if precision == "float32" else 1e-6)


@pytest.mark.parametrize(RUN, RUNS)
def test_a_training_step_has_the_same_gradients(
    folder: Path, model: str, precision: str, framework: str, mode: str
) -> None:
    """To 1e-6 of each tensor's norm in float64; in float32 to what the model's case says."""
    arrays, others = load(folder, model, precision, framework, mode)
    expected, found = select(arrays, "gradient"), select(others, "gradient")
    assert expected.keys() == found.keys() == select(arrays, "start").keys()
    tolerance = CASES[model].gradient_tolerance if precision == "float32" else 1e-6
    compared = [name for name in expected if not has_no_gradient(name)]
    errors = {name: compute_error(expected[name], found[name]) for name in compared}
    assert {} == {name: error for name, error in errors.items() if error >= tolerance}


@pytest.mark.parametrize("network", ["generator_ab", "generator_ba", "discriminator_a", "discriminator_b"])
def test_biases_before_an_instance_norm_have_no_gradient(folder: Path, network: str) -> None:
    for arrays in load(folder, "cyclegan", "float64", "tensorflow", "graph"):
        gradients = {name: array for name, array in select(arrays, "gradient").items() if name.startswith(network)}
        largest = max(float(np.abs(array).max()) for array in gradients.values())
        without = [array for name, array in gradients.items() if has_no_gradient(name)]
        assert (5 + 2 * SMALLER["GENERATOR_BLOCKS"] if network.startswith("generator") else 3) == len(without)
        assert 1e-6 * largest > max(float(np.abs(array).max()) for array in without)


@pytest.mark.parametrize(RUN, RUNS)
def test_three_adam_steps_lead_to_the_same_parameters(
    folder: Path, model: str, precision: MirrorPrecision, framework: str, mode: str
) -> None:
    """To what the model's case says of the distance gone by all weights whose gradients agree to 0.1%.

    Adam divides a gradient by its own size: of those next to zero, rounding decides the way. Keras keeps Adam's betas
    in float32, also for float64 weights: a difference of 7e-6 in the first step, which moves single ReLUs.
    """
    arrays, others = load(folder, model, precision, framework, mode)
    np.testing.assert_allclose(others["losses"], arrays["losses"], rtol=0.05 if precision == "float32" else 1e-3)
    tolerance = CASES[model].update_tolerances[precision == "float64"]
    if tolerance is None:
        return
    updates, differences, num_compared, num_gradients = [], [], 0, 0
    for name, gradient in select(arrays, "gradient").items():
        is_same = np.abs(others[f"gradient/{name}"] - gradient) < 1e-3 * np.abs(gradient)
        end = arrays[f"end/{name}"].astype(np.float64)
        updates.append((end - arrays[f"start/{name}"])[is_same])
        differences.append((others[f"end/{name}"] - end)[is_same])
        num_compared += int(np.count_nonzero(is_same))
        num_gradients += int(np.count_nonzero(gradient))
    assert num_compared / num_gradients > 0.95
    assert tolerance > np.linalg.norm(np.concatenate(differences)) / np.linalg.norm(np.concatenate(updates))


def test_batch_norms_keep_the_same_running_means_and_variances_up_to_bessels_correction(folder: Path) -> None:
    num_norms = {run: check_batch_norms(*load(folder, *run)) for run in IN_FLOAT64}
    assert {run[0] for run, number in num_norms.items() if number} >= {"resnet18", "resnet18-cifar"}


def check_batch_norms(arrays: Arrays, others: Arrays) -> int:
    """Check the statistics after the first step, PyTorch's and Keras's; return how many batch norms there were."""
    start, expected, found = (
        select(given, prefix, statistics=True)
        for given, prefix in ((arrays, "start"), (arrays, "first"), (others, "first"))
    )
    counts = select(arrays, "norm_count")
    assert found.keys() == {f"{norm}.{statistic}" for norm in counts for statistic in ("mean", "variance")}
    for norm, count in counts.items():
        mean, variance = f"{norm}.mean", f"{norm}.variance"
        np.testing.assert_allclose(found[mean], expected[mean], rtol=1e-6, atol=1e-9)
        of_n_minus_1 = (expected[variance] - 0.9 * start[variance]) / 0.1
        of_n = (found[variance] - 0.9 * start[variance]) / 0.1
        np.testing.assert_allclose(of_n, of_n_minus_1 * (count - 1) / count, rtol=1e-5, atol=1e-9)
    return len(counts)
