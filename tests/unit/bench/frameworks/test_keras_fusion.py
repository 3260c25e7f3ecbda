"""TensorFlow's modes `unfused` and `fused-norm`: each changes the one thing that it is named after, and no number."""

from pathlib import Path

import numpy as np
import pytest

from bench.schema import Framework
from framework_programs import Answers, ask

MODES = ("unfused", "fused-norm")
# float32, through two norms of a small model and three steps.
TOLERANCE = 1e-4


@pytest.fixture(scope="module")
def answers(interpreters: dict[Framework, Path]) -> Answers:
    return ask(interpreters["tensorflow"], "check_tensorflow_switches.py")


def test_a_graph_fuses_convolution_bias_and_activation_and_unfused_does_not(answers: Answers) -> None:
    graph, unfused = (answers["conv6"][mode]["operations"] for mode in ("graph", "unfused"))
    assert (graph.get("_FusedConv2D"), graph.get("_FusedMatMul")) == (4, 3)
    assert "Conv2D" not in graph
    assert [name for name in unfused if name.startswith("_Fused")] == []
    assert (unfused["Conv2D"], unfused["MatMul"], unfused["BiasAdd"], unfused["Relu"]) == (4, 3, 7, 6)


def test_the_record_says_whether_the_remapper_was_on(answers: Answers) -> None:
    assert {mode: answers["conv6"][mode]["remapping"] for mode in ("graph", "unfused")} == {
        "graph": True,
        "unfused": False,
    }


def test_keras_computes_a_batch_norm_from_several_operations_and_fused_norm_from_one(answers: Answers) -> None:
    graph, fused = (answers["resnet18"][mode]["operations"] for mode in ("graph", "fused-norm"))
    assert (graph["Rsqrt"], graph["SquaredDifference"]) == (11, 11)
    assert [name for name in graph if "FusedBatchNorm" in name] == []
    assert fused.get("FusedBatchNormV3", 0) + fused.get("_FusedBatchNormEx", 0) == 11
    assert fused["FusedBatchNormGradV3"] == 11
    assert [name for name in ("Rsqrt", "SquaredDifference") if name in fused] == []


@pytest.mark.parametrize("mode", MODES)
def test_a_switch_changes_neither_losses_nor_outputs(answers: Answers, mode: str) -> None:
    found, expected = answers["training"][mode]["losses"], answers["training"]["graph"]["losses"]
    assert found == pytest.approx(expected, rel=TOLERANCE)
    assert len(set(expected)) == 3
    assert measure_distance(answers["inference"][mode], answers["inference"]["graph"]) < TOLERANCE


def test_the_fused_norm_gives_the_outputs_gradients_and_moving_mean_of_kerass_own(answers: Answers) -> None:
    fused, expected = answers["layers"]["fused"], answers["layers"]["keras"]
    for name in ("inferred", "trained", "images", "gamma", "beta", "moving_mean"):
        assert measure_distance(fused[name], expected[name]) < 1e-6, name


def test_the_fused_norm_keeps_the_variance_of_n_minus_1_values_as_pytorch_does(answers: Answers) -> None:
    num_values, momentum = answers["num_values"], 0.9
    fused, expected = (np.array(answers["layers"][name]["moving_variance"]) for name in ("fused", "keras"))
    old = np.array(answers["layers"]["keras"]["variance_before"])
    batch = (expected - momentum * old) / (1 - momentum)
    assert fused == pytest.approx(momentum * old + (1 - momentum) * batch * num_values / (num_values - 1), rel=1e-5)


def test_the_fused_norm_keeps_images_in_half_precision(answers: Answers) -> None:
    assert answers["halves"] == {
        "float16": ["float16", "float16"],
        "bfloat16": ["bfloat16", "bfloat16"],
        "mixed_float16": ["float16", "float32"],
        "mixed_bfloat16": ["bfloat16", "float32"],
    }


def measure_distance(found: list[float], expected: list[float]) -> float:
    """Return the norm of the difference over the norm of what was expected."""
    return float(np.linalg.norm(np.subtract(found, expected)) / np.linalg.norm(expected))
