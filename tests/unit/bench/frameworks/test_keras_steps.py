"""TensorFlow and JAX train and infer alike in every mode."""

import numpy as np
import pytest

from framework_programs import Answers

MODES = ("eager", "graph", "compiled")
STEPPERS = [("tensorflow", mode) for mode in MODES] + [("jax", "compiled")]
MODELS = ("conv6 fp32", "conv6 bf16", "conv6 fp16", "text-classifier fp32", "cyclegan fp32")


@pytest.mark.parametrize(("framework", "mode"), STEPPERS)
@pytest.mark.parametrize("model", MODELS)
def test_training_changes_every_weight_and_keeps_it_in_float32(
    answers: dict[str, Answers], framework: str, mode: str, model: str
) -> None:
    training = answers[framework]["training"][mode][model]
    assert (training["num_unchanged"], training["dtypes"], training["device"]) == (0, ["float32"], "cpu")


@pytest.mark.parametrize(("framework", "mode"), STEPPERS)
@pytest.mark.parametrize("model", MODELS)
def test_adams_first_step_goes_as_far_as_the_learning_rate(
    answers: dict[str, Answers], framework: str, mode: str, model: str
) -> None:
    """Kingma and Ba, algorithm 1: at t = 1 the update is lr g / (|g| + epsilon)."""
    rate = {"conv6": 3e-4, "text-classifier": 1e-3, "cyclegan": 2e-4}[model.split()[0]]
    assert answers[framework]["training"][mode][model]["largest_updates"][1] == pytest.approx(rate, rel=1e-3)


@pytest.mark.parametrize(("framework", "mode"), STEPPERS)
@pytest.mark.parametrize("model", MODELS)
def test_every_way_of_stepping_learns_the_same(
    answers: dict[str, Answers], framework: str, mode: str, model: str
) -> None:
    """The first losses up to rounding; the second ones loosely, as Adam divides small gradients by their own size."""
    expected = answers["tensorflow"]["training"]["eager"][model]["losses"]
    found = answers[framework]["training"][mode][model]["losses"]
    assert found[0] == pytest.approx(expected[0], rel=1e-4 if model.endswith("fp32") else 1e-3)
    assert found[1] == pytest.approx(expected[1], rel=2e-2)


@pytest.mark.parametrize(("framework", "mode"), STEPPERS)
@pytest.mark.parametrize("model", ["conv6 fp32", "text-classifier fp32"])
def test_the_loss_is_the_mean_cross_entropy_of_the_logits(
    answers: dict[str, Answers], framework: str, mode: str, model: str
) -> None:
    inference = answers[framework]["inference"][mode][model]
    logits = np.array(inference["output"]).reshape(inference["shape"])
    exponentials = np.exp(logits)
    chosen = (exponentials / exponentials.sum(axis=1, keepdims=True))[range(len(logits)), inference["labels"]]
    found = answers[framework]["training"][mode][model]["losses"][0][0]
    assert found == pytest.approx(-np.log(chosen).mean(), rel=1e-5)


@pytest.mark.parametrize(("framework", "mode"), STEPPERS)
def test_an_overflow_halves_the_loss_scale_and_skips_the_update(
    answers: dict[str, Answers], framework: str, mode: str
) -> None:
    overflow = answers[framework]["overflow"][mode]
    assert overflow["scales"] == [2.0**16, 2.0**15, 2.0**15]
    # Four convolutions and three dense layers, each with kernel and bias.
    assert overflow["num_changed"] == [0, 14]


@pytest.mark.parametrize(("framework", "mode"), STEPPERS)
def test_inference_changes_nothing_and_has_no_losses(answers: dict[str, Answers], framework: str, mode: str) -> None:
    for inference in answers[framework]["inference"][mode].values():
        assert (inference["num_changed"], inference["losses"], inference["device"]) == (0, [], "cpu")


@pytest.mark.parametrize(("framework", "mode"), STEPPERS)
@pytest.mark.parametrize("model", ["conv6 fp32", "text-classifier fp32", "cyclegan fp32", "matmul fp32"])
def test_every_way_of_inferring_gives_the_same_output(
    answers: dict[str, Answers], framework: str, mode: str, model: str
) -> None:
    shapes: dict[str, list[int]] = {"conv6": [4, 10], "text-classifier": [2, 2], "cyclegan": [1, 24, 24, 3]}
    expected, found = (
        answers[name]["inference"][way][model] for name, way in (("tensorflow", "eager"), (framework, mode))
    )
    shape = shapes.get(model.split()[0], [1, 16, 16])
    assert (expected["shape"], found["shape"]) == (shape, shape)
    assert found["output"] == pytest.approx(expected["output"], rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("framework", ["tensorflow", "jax"])
def test_real_data_come_batch_by_batch_in_the_precision_of_the_weights(
    answers: dict[str, Answers], framework: str
) -> None:
    # The test set's images stand in order; an image's label is its number.
    assert answers[framework]["real_data"] == {"labels": [[0, 1, 2, 3], [4, 5, 6, 7]], "dtype": "bfloat16"}
