"""PyTorch carries out a cell as it records it: checked by a program in PyTorch's own environment."""

from pathlib import Path

import numpy as np
import pytest

from bench.schema import Framework
from bench.tasks.inputs import make_inputs
from factories import make_cell
from framework_programs import Answers, ask


@pytest.fixture(scope="module")
def pytorch(interpreters: dict[Framework, Path]) -> Answers:
    return ask(interpreters["pytorch"], "check_pytorch.py")


# Precision and other switches


def test_pytorch_switches_tf32_off_and_its_record_says_what_is(pytorch: Answers) -> None:
    expected = {
        "matmul_tf32": False,
        "cudnn_tf32": False,
        "cudnn_benchmark": True,
        "num_threads": 1,
        "num_interop_threads": 1,
    }
    assert pytorch["switches"] == expected
    assert {name: pytorch["settings"][name] for name in expected} == expected


# Training


def test_pytorch_learns(pytorch: Answers) -> None:
    training = pytorch["training"]
    assert (training["num_unchanged"], training["is_training"], training["dtypes"]) == (0, True, ["torch.float32"])
    assert training["learning_rates"] == [3e-4]
    # Ten classes: an untrained model's loss is about ln 10 = 2.30.
    assert training["losses"][0] == pytest.approx(2.30, abs=0.1)
    assert training["losses"][-1] < 0.9 * training["losses"][0]


# Inference


def test_inference_in_pytorch_changes_nothing_and_builds_no_gradient(pytorch: Answers) -> None:
    inference = pytorch["inference"]
    assert (inference["num_changed"], inference["num_gradients"], inference["is_training"]) == (0, 0, False)
    shape, requires_grad, is_inference_mode = [2, 10], False, True
    assert inference["seen"] == [[shape, requires_grad, is_inference_mode]] * 3


# Out of memory


def test_pytorch_knows_its_ways_of_running_out_of_memory(pytorch: Answers) -> None:
    expected = {"cuda allocator", "cuda context", "cublas", "c++", "cpu"}
    assert {name for name, is_out_of_memory in pytorch["out_of_memory"].items() if is_out_of_memory} == expected


# Data and seeds


def test_equal_seeds_make_equal_weights_and_others_do_not(pytorch: Answers) -> None:
    assert pytorch["seeded_alike"] == [True, False]


def test_a_batch_has_the_cells_shape_standard_normal_values_and_labels_of_every_class() -> None:
    images, labels = make_inputs(make_cell(batch_size=500, input_size=16, num_classes=5))
    assert (images.shape, images.dtype, labels.shape) == ((500, 3, 16, 16), np.dtype(np.float32), (500,))
    # 384,000 values: the mean's standard error is 0.0016.
    assert float(images.mean()) == pytest.approx(0.0, abs=0.01)
    assert float(images.std()) == pytest.approx(1.0, abs=0.01)
    assert set(labels.tolist()) == {0, 1, 2, 3, 4}


def test_another_seed_makes_other_data() -> None:
    batches = [make_inputs(make_cell(batch_size=2, seed=seed)) for seed in (1, 2)]
    assert not np.array_equal(batches[0][0], batches[1][0])
