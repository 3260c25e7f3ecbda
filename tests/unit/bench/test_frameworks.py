"""PyTorch, asked once by a program in its own environment, and synthetic data: is a cell carried out as recorded?"""

from pathlib import Path

import numpy as np
import pytest

from bench.schema import Framework
from bench.tasks.inputs import make_inputs
from factories import make_cell
from framework_programs import Answers, ask

PARAMETERS = {
    "conv6 32 10": 2_262_602,
    "conv6 224 10": 52_594_250,
    "resnet18 224 1000": 11_689_512,
    "resnet18 224 10": 11_181_642,
}


@pytest.fixture(scope="module")
def pytorch(interpreters: dict[Framework, Path]) -> Answers:
    return ask(interpreters["pytorch"], "check_pytorch.py")


# Parameters


def test_pytorchs_models_have_the_published_numbers_of_parameters(pytorch: Answers) -> None:
    assert PARAMETERS == pytorch["parameters"]


# Precision and other switches


def test_pytorch_switches_tf32_off_and_its_record_says_what_is(pytorch: Answers) -> None:
    expected = {
        "matmul_tf32": False,
        "cudnn_tf32": False,
        "cudnn_benchmark": True,
        "num_threads": 1,
        "num_interop_threads": 1,
    }
    assert expected == pytorch["switches"]
    assert expected == {name: pytorch["settings"][name] for name in expected}


def test_every_library_of_pytorch_takes_the_threads_that_it_was_given(pytorch: Answers) -> None:
    assert [1] == pytorch["library_threads"]


def test_there_is_no_gpu_allocator_on_a_cpu(pytorch: Answers) -> None:
    assert [None, None] == pytorch["peak_memory"]


# Training


def test_pytorch_learns(pytorch: Answers) -> None:
    training = pytorch["training"]
    assert (0, True, ["torch.float32"]) == (training["num_unchanged"], training["is_training"], training["dtypes"])
    assert [3e-4] == training["learning_rates"]
    # Ten classes: an untrained model's loss is about ln 10 = 2.30.
    assert 2.30 == pytest.approx(training["losses"][0], abs=0.1)
    assert training["losses"][-1] < 0.9 * training["losses"][0]


# Inference


def test_inference_in_pytorch_changes_nothing_and_builds_no_gradient(pytorch: Answers) -> None:
    inference = pytorch["inference"]
    assert (0, 0, False) == (inference["num_changed"], inference["num_gradients"], inference["is_training"])
    shape, requires_grad, is_inference_mode = [2, 10], False, True
    assert [[shape, requires_grad, is_inference_mode]] * 3 == inference["seen"]


# Out of memory


def test_pytorch_knows_its_ways_of_running_out_of_memory(pytorch: Answers) -> None:
    expected = {"cuda allocator", "cuda context", "cublas", "c++", "cpu"}
    assert expected == {name for name, is_out_of_memory in pytorch["out_of_memory"].items() if is_out_of_memory}


# Data and seeds


def test_pytorch_gets_the_data_of_a_seed_as_every_framework_does(pytorch: Answers) -> None:
    images, labels = make_inputs(make_cell(batch_size=3, seed=11))
    expected = [images.tobytes().hex()[:64], float(images.astype(np.float64).sum()), labels.tolist()]
    assert expected == pytorch["batch"]


def test_equal_seeds_make_equal_weights_and_others_do_not(pytorch: Answers) -> None:
    assert [True, False] == pytorch["seeded_alike"]


def test_a_batch_has_the_cells_shape_standard_normal_values_and_labels_of_every_class() -> None:
    images, labels = make_inputs(make_cell(batch_size=500, input_size=16, num_classes=5))
    assert (images.shape, labels.shape) == ((500, 3, 16, 16), (500,))
    assert images.dtype == np.float32
    # 384,000 values: the mean's standard error is 0.0016.
    assert 0.0 == pytest.approx(float(images.mean()), abs=0.01)
    assert 1.0 == pytest.approx(float(images.std()), abs=0.01)
    assert {0, 1, 2, 3, 4} == set(labels.tolist())


def test_another_seed_makes_other_data() -> None:
    batches = [make_inputs(make_cell(batch_size=2, seed=seed)) for seed in (1, 2)]
    assert not np.array_equal(batches[0][0], batches[1][0])
