"""The frameworks, each asked once by a program in its own environment: is a cell carried out as its record says?"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.frameworks.synthetic_data import make_batch
from bench.schema import Framework
from factories import make_cell

Answers = dict[str, Any]

PROGRAMS = Path(__file__).parent / "programs"
ROOT = Path(__file__).parents[3]
PYTHONPATH = os.pathsep.join(map(str, (ROOT / "images" / "bench" / "src", ROOT / "tests")))
PARAMETERS = {
    "conv6 32 10": 2_262_602,
    "conv6 224 10": 52_594_250,
    "resnet18 224 1000": 11_689_512,
    "resnet18 224 10": 11_181_642,
}


def ask(interpreter: Path, program: str) -> Answers:
    """Return the JSON object on the last line that the program prints."""
    command = [str(interpreter), str(PROGRAMS / program)]
    process = subprocess.run(command, env={**os.environ, "PYTHONPATH": PYTHONPATH}, capture_output=True, text=True)
    assert 0 == process.returncode, process.stderr[-3000:]
    answers: Answers = json.loads(process.stdout.splitlines()[-1])
    return answers


@pytest.fixture(scope="module")
def pytorch(interpreters: dict[Framework, Path]) -> Answers:
    return ask(interpreters["pytorch"], "check_pytorch.py")


@pytest.fixture(scope="module")
def tensorflow(interpreters: dict[Framework, Path]) -> Answers:
    return ask(interpreters["tensorflow"], "check_tensorflow.py")


# Parameters


def test_pytorchs_models_have_the_published_numbers_of_parameters(pytorch: Answers) -> None:
    assert PARAMETERS == pytorch["parameters"]


@pytest.mark.parametrize(("model", "expected"), PARAMETERS.items())
def test_keras_models_have_the_published_numbers_of_parameters(tensorflow: Answers, model: str, expected: int) -> None:
    # ResNet18's norms have 4,800 channels, each with a running mean and a running variance.
    assert [expected, 9_600 if model.startswith("resnet18") else 0] == tensorflow["parameters"][model]


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


def test_tensorflow_switches_tf32_off_and_its_record_says_what_is(tensorflow: Answers) -> None:
    assert False is tensorflow["tf32"] is tensorflow["settings"]["tf32"]
    names = ("intra_op_threads", "inter_op_threads")
    assert [1, 1] == tensorflow["threads"] == [tensorflow["settings"][name] for name in names]


def test_a_users_keras_configuration_changes_nothing(tensorflow: Answers) -> None:
    assert ["float16", "channels_first"] == tensorflow["asked_for"]
    assert ["float32", "channels_last", "float32"] == tensorflow["keras"]
    assert ["float32"] == tensorflow["training"]["eager"]["dtypes"]


def test_every_library_of_pytorch_takes_the_threads_that_it_was_given(pytorch: Answers) -> None:
    assert [1] == pytorch["library_threads"]


def test_there_is_no_gpu_allocator_on_a_cpu(pytorch: Answers, tensorflow: Answers) -> None:
    assert [None, None] == pytorch["peak_memory"] == tensorflow["peak_memory"]


# Training


def test_pytorch_learns(pytorch: Answers) -> None:
    training = pytorch["training"]
    assert (0, True, ["torch.float32"]) == (training["num_unchanged"], training["is_training"], training["dtypes"])
    assert [3e-4] == training["learning_rates"]
    # Ten classes: an untrained model's loss is about ln 10 = 2.30.
    assert 2.30 == pytest.approx(training["losses"][0], abs=0.1)
    assert training["losses"][-1] < 0.9 * training["losses"][0]


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_tensorflow_learns(tensorflow: Answers, mode: str) -> None:
    training = tensorflow["training"][mode]
    assert (0, ["float32"]) == (training["num_unchanged"], training["dtypes"])
    assert 2.30 == pytest.approx(training["losses"][0], abs=0.1)
    assert training["losses"][-1] < 0.9 * training["losses"][0]


def test_graph_and_eager_steps_of_one_seed_learn_the_same(tensorflow: Answers) -> None:
    training = tensorflow["training"]
    assert training["eager"]["losses"][:3] == pytest.approx(training["graph"]["losses"][:3], rel=1e-2)


# Inference


def test_inference_in_pytorch_changes_nothing_and_builds_no_gradient(pytorch: Answers) -> None:
    inference = pytorch["inference"]
    assert (0, 0, False) == (inference["num_changed"], inference["num_gradients"], inference["is_training"])
    shape, requires_grad, is_inference_mode = [2, 10], False, True
    assert [[shape, requires_grad, is_inference_mode]] * 3 == inference["seen"]


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_inference_in_tensorflow_changes_nothing(tensorflow: Answers, mode: str) -> None:
    inference = tensorflow["inference"][mode]
    assert (0, 102, [2, 10]) == (inference["num_changed"], inference["num_weights"], inference["output_shape"])


def test_a_graph_for_inference_holds_the_model_and_no_gradient_or_assignment(tensorflow: Answers) -> None:
    graph = tensorflow["inference"]["graph"]["graph"]
    assert (20, 0, 0) == (graph["num_convolutions"], graph["num_gradients"], graph["num_assignments"])


# Modes


def test_eager_steps_run_the_models_python_code_every_time(tensorflow: Answers) -> None:
    assert [True] * 12 == tensorflow["training"]["eager"]["calls"]
    assert {True} == set(tensorflow["inference"]["eager"]["calls"])


def test_graph_steps_run_it_once_while_tracing(tensorflow: Answers) -> None:
    assert [False] == tensorflow["training"]["graph"]["calls"] == tensorflow["inference"]["graph"]["calls"]


@pytest.mark.parametrize(
    ("phase", "image_shape", "batch_size"), [("training", [8, 32, 32, 3], 8), ("inference", [2, 64, 64, 3], 2)]
)
def test_a_graph_is_traced_once_and_folds_neither_data_nor_weights(
    tensorflow: Answers, phase: str, image_shape: list[int], batch_size: int
) -> None:
    graph = tensorflow[phase]["graph"]["graph"]
    assert 1 == graph["num_traces"]
    assert [image_shape, [batch_size]] == graph["input_shapes"]
    assert ["resource"] == graph["captured_dtypes"]  # the weights as variables; no tensor is captured
    assert graph["largest_constant"] < 100


def test_graphs_are_not_compiled_by_xla(tensorflow: Answers) -> None:
    graphs = [tensorflow[phase]["graph"]["graph"] for phase in ("training", "inference")]
    assert [False, False] == [graph["must_compile"] for graph in graphs]


def test_a_graph_for_training_holds_every_gradient_and_update(tensorflow: Answers) -> None:
    graph = tensorflow["training"]["graph"]["graph"]
    assert (6, 6) == (graph["num_convolutions"], graph["num_filter_gradients"])
    # Adam assigns first moment, second moment and parameter of each of the 18 tensors, and counts its steps.
    assert 3 * 18 + 1 == graph["num_assignments"]


# Out of memory


def test_pytorch_knows_its_ways_of_running_out_of_memory(pytorch: Answers) -> None:
    expected = {"cuda allocator", "cuda context", "cublas", "c++", "cpu"}
    assert expected == {name for name, is_out_of_memory in pytorch["out_of_memory"].items() if is_out_of_memory}


def test_tensorflow_knows_its_way_of_running_out_of_memory(tensorflow: Answers) -> None:
    assert {"allocator": True, "shapes": False, "value": False} == tensorflow["out_of_memory"]


# Data and seeds


def test_both_frameworks_get_the_same_data_from_a_seed(pytorch: Answers, tensorflow: Answers) -> None:
    images, labels = make_batch(make_cell(batch_size=3, seed=11))
    expected = [images.tobytes().hex()[:64], float(images.astype(np.float64).sum()), labels.tolist()]
    assert expected == pytorch["batch"] == tensorflow["batch"]


def test_equal_seeds_make_equal_weights_and_others_do_not(pytorch: Answers, tensorflow: Answers) -> None:
    assert [True, False] == pytorch["seeded_alike"] == tensorflow["seeded_alike"]


def test_a_batch_has_the_cells_shape_standard_normal_values_and_labels_of_every_class() -> None:
    images, labels = make_batch(make_cell(batch_size=500, input_size=16, num_classes=5))
    assert ((500, 3, 16, 16), np.float32, (500,)) == (images.shape, images.dtype, labels.shape)
    # 384,000 values: the mean's standard error is 0.0016.
    assert 0.0 == pytest.approx(float(images.mean()), abs=0.01)
    assert 1.0 == pytest.approx(float(images.std()), abs=0.01)
    assert {0, 1, 2, 3, 4} == set(labels.tolist())


def test_another_seed_makes_other_data() -> None:
    batches = [make_batch(make_cell(batch_size=2, seed=seed)) for seed in (1, 2)]
    assert not np.array_equal(batches[0][0], batches[1][0])
