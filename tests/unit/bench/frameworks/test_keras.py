"""TensorFlow and JAX with Keras: switches, steps, ways of stepping, fused operations and CycleGAN."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.schema import Framework
from framework_programs import Answers, ask

MODES = ("eager", "graph", "compiled")
STEPPERS = [("tensorflow", mode) for mode in MODES] + [("jax", "compiled")]
DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


def test_tensorflow_switches_tf32_off_and_takes_its_threads_as_its_record_says(tensorflow: Answers) -> None:
    assert (tensorflow["tf32"], tensorflow["settings"]["tf32"]) == (False, False)
    names = ("intra_op_threads", "inter_op_threads")
    assert tensorflow["threads"] == [1, 1]
    assert [tensorflow["settings"][name] for name in names] == [1, 1]
    assert tensorflow["settings"]["optimizer"] == "Keras Adam"


def test_xla_computes_with_as_many_cpu_threads_as_jax_was_given(jax: Answers) -> None:
    assert (jax["num_pool_threads"], jax["settings"]["num_threads"]) == (3, 3)
    assert jax["settings"]["optimizer"] == "Keras Adam"


def test_a_users_keras_configuration_changes_nothing(tensorflow: Answers, jax: Answers) -> None:
    assert tensorflow["asked_for"] == ["float16", "channels_first"]
    for answers in (tensorflow, jax):
        assert answers["keras"] == ["float32", "channels_last", "float32"]


def test_both_know_their_ways_of_running_out_of_memory(tensorflow: Answers, jax: Answers) -> None:
    for answers in (tensorflow, jax):
        assert answers["out_of_memory"] == {"allocator": True, "shapes": False, "value": False}


def test_equal_seeds_make_equal_weights_and_others_do_not(tensorflow: Answers, jax: Answers) -> None:
    assert (tensorflow["seeded_alike"], jax["seeded_alike"]) == ([True, False], [True, False])


def test_float32_products_are_true_float32_in_xla_and_tf32_ones_are_not(tensorflow: Answers, jax: Answers) -> None:
    assert tensorflow["compiled"]["fp32"]["precisions"] == ["highest,highest"]
    assert tensorflow["compiled"]["tf32"]["precisions"] == ["default"]
    assert jax["step"]["precisions"] == [["HIGHEST", "HIGHEST"]]
    assert jax["tf32"] == [["HIGH", "HIGH"]]


@pytest.mark.parametrize(("framework", "mode"), STEPPERS)
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_changes_the_loss_a_little(
    answers: dict[str, Answers], framework: str, mode: str, precision: str
) -> None:
    training = answers[framework]["training"][mode]
    exact, rounded = (training[f"conv6 {name}"]["losses"][0] for name in ("fp32", precision))
    assert exact != rounded
    assert rounded == pytest.approx(exact, rel=2e-3)


@pytest.mark.parametrize(("framework", "mode"), STEPPERS)
@pytest.mark.parametrize("precision", DTYPES)
def test_inference_takes_and_gives_the_precision_asked_for(
    answers: dict[str, Answers], framework: str, mode: str, precision: str
) -> None:
    assert answers[framework]["inference"][mode][f"conv6 {precision}"]["dtypes"] == [DTYPES[precision]] * 2


def test_importing_jax_starts_no_client_and_so_makes_no_context(jax: Answers) -> None:
    assert jax["is_client_started"] is False


def test_what_a_step_takes_in_jax_is_arguments_outputs_and_temporary_buffers_without_the_build(jax: Answers) -> None:
    plan = jax["plan"]
    # Two matrices and their product, 256 x 256 of four bytes.
    assert plan["product"] == 3 * 256 * 256 * 4
    # The state is donated: the new one takes its place. Gradients, which are a third of it, and activations come on
    # top; a second copy of the state would be 2.
    assert 1 + 1 / 3 < (plan["training"] - plan["inputs"]) / plan["state"] < 2
    assert plan["num_programs"] == 1  # asking compiles nothing


def test_jax_compiles_the_calibrations_product_with_options_that_xla_knows(jax: Answers) -> None:
    assert jax["calibration_options"] is True


MODELS = ("conv6 fp32", "conv6 bf16", "conv6 fp16", "text-classifier fp32")


@pytest.mark.parametrize(("framework", "mode"), STEPPERS)
@pytest.mark.parametrize("model", MODELS)
def test_training_changes_every_weight_and_keeps_it_in_float32(
    answers: dict[str, Answers], framework: str, mode: str, model: str
) -> None:
    training = answers[framework]["training"][mode][model]
    assert (training["num_unchanged"], training["dtypes"], training["device"]) == (0, ["float32"], "cpu")


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
@pytest.mark.parametrize("model", ["conv6 fp32", "text-classifier fp32", "matmul fp32"])
def test_every_way_of_inferring_gives_the_same_output(
    answers: dict[str, Answers], framework: str, mode: str, model: str
) -> None:
    shapes: dict[str, list[int]] = {"conv6": [4, 10], "text-classifier": [2, 2]}
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


def test_eager_steps_run_the_models_python_code_every_time(tensorflow: Answers) -> None:
    assert tensorflow["calls"] == {"eager": [True] * 3, "graph": [False], "compiled": [False]}


@pytest.mark.parametrize("phase", ["train", "infer"])
def test_a_graph_is_traced_once_folds_neither_data_nor_weights_and_has_nothing_but_the_step(
    tensorflow: Answers, phase: str
) -> None:
    assert tensorflow["graph"][phase] == {
        "num_traces": 1,
        "input_shapes": [[4, 16, 16, 3], [4]],
        "captured_dtypes": ["resource"],  # the weights as variables; no tensor is captured
        "has_large_constants": False,
        "must_compile": False,
        "num_convolutions": 4,
        "num_filter_gradients": 4 if phase == "train" else 0,
        "has_gradients": phase == "train",
        # Adam assigns first moment, second moment and parameter of each of the 14 tensors, and counts its steps.
        "num_assignments": 3 * 14 + 1 if phase == "train" else 0,
    }


def test_xla_compiles_compiled_steps_once(tensorflow: Answers) -> None:
    compiled = tensorflow["compiled"]["fp32"]
    assert (compiled["must_compile"], compiled["num_traces"]) == (True, 1)


def test_jax_compiles_a_step_once_folds_no_data_and_gives_its_buffers_away(jax: Answers) -> None:
    step = jax["step"]
    assert (step["num_programs"], step["num_kept"]) == (1, 0)
    assert step["largest_constant"] < 100


@pytest.mark.parametrize("mode", MODES)
def test_two_replicas_in_tensorflow_step_as_one_device_does(tensorflow: Answers, mode: str) -> None:
    check_replicas(tensorflow["replicas"][mode])


def test_two_devices_in_jax_step_as_one_does_each_with_half_the_batch_and_all_weights(jax: Answers) -> None:
    check_replicas(jax["replicas"])
    assert jax["replicas"]["shares"] == [[2, 16, 16, 3]] * 2
    assert jax["replicas"]["kernel"] == [[3, 3, 3, 4]] * 2


def check_replicas(replicas: dict[str, Any]) -> None:
    """Check one and two devices for equal losses, weights and gradients (which the moments are a tenth of)."""
    assert replicas["losses"][1] == pytest.approx(replicas["losses"][0], rel=1e-6)
    assert replicas["weights"] < 1e-5
    assert replicas["moments"] < 1e-5


@pytest.mark.parametrize("mode", MODES)
def test_two_replicas_in_tensorflow_infer_as_one_device_does(tensorflow: Answers, mode: str) -> None:
    assert 1e-6 > tensorflow["replicated_inference"][mode]


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_an_overflow_in_the_second_replica_is_noticed(tensorflow: Answers, mode: str) -> None:
    assert tensorflow["replicated_overflow"][mode] == {"scale": 2.0**15, "num_changed": 0}


FUSED_MODES = ("unfused", "fused-norm")
# float32, through two norms of a small model and three steps.
TOLERANCE = 1e-4


@pytest.fixture(scope="module")
def switch_answers(interpreters: dict[Framework, Path]) -> Answers:
    return ask(interpreters["tensorflow"], "check_tensorflow_switches.py")


def test_a_graph_fuses_convolution_bias_and_activation_and_unfused_does_not(switch_answers: Answers) -> None:
    graph, unfused = (switch_answers["conv6"][mode]["operations"] for mode in ("graph", "unfused"))
    assert (graph.get("_FusedConv2D"), graph.get("_FusedMatMul")) == (4, 3)
    assert "Conv2D" not in graph
    assert [name for name in unfused if name.startswith("_Fused")] == []
    assert (unfused["Conv2D"], unfused["MatMul"], unfused["BiasAdd"], unfused["Relu"]) == (4, 3, 7, 6)


def test_the_record_says_whether_the_remapper_was_on(switch_answers: Answers) -> None:
    assert {mode: switch_answers["conv6"][mode]["remapping"] for mode in ("graph", "unfused")} == {
        "graph": True,
        "unfused": False,
    }


def test_keras_computes_a_batch_norm_from_several_operations_and_fused_norm_from_one(switch_answers: Answers) -> None:
    graph, fused = (switch_answers["resnet18"][mode]["operations"] for mode in ("graph", "fused-norm"))
    assert (graph["Rsqrt"], graph["SquaredDifference"]) == (11, 11)
    assert [name for name in graph if "FusedBatchNorm" in name] == []
    assert fused.get("FusedBatchNormV3", 0) + fused.get("_FusedBatchNormEx", 0) == 11
    assert fused["FusedBatchNormGradV3"] == 11
    assert [name for name in ("Rsqrt", "SquaredDifference") if name in fused] == []


@pytest.mark.parametrize("mode", FUSED_MODES)
def test_a_switch_changes_neither_losses_nor_outputs(switch_answers: Answers, mode: str) -> None:
    found, expected = switch_answers["training"][mode], switch_answers["training"]["graph"]
    assert found == pytest.approx(expected, rel=TOLERANCE)
    assert len(set(expected)) == 3
    assert measure_distance(switch_answers["inference"][mode], switch_answers["inference"]["graph"]) < TOLERANCE


def test_the_fused_norm_gives_the_outputs_gradients_and_moving_mean_of_kerass_own(switch_answers: Answers) -> None:
    fused, expected = switch_answers["layers"]["fused"], switch_answers["layers"]["keras"]
    for name in ("inferred", "trained", "images", "gamma", "beta", "moving_mean"):
        assert measure_distance(fused[name], expected[name]) < 1e-6, name


def test_the_fused_norm_keeps_the_variance_of_n_minus_1_values_as_pytorch_does(switch_answers: Answers) -> None:
    num_values, momentum = switch_answers["num_values"], 0.9
    fused, expected = (np.array(switch_answers["layers"][name]["moving_variance"]) for name in ("fused", "keras"))
    old = np.array(switch_answers["layers"]["keras"]["variance_before"])
    batch = (expected - momentum * old) / (1 - momentum)
    assert fused == pytest.approx(momentum * old + (1 - momentum) * batch * num_values / (num_values - 1), rel=1e-5)


def test_the_fused_norm_keeps_images_in_half_precision(switch_answers: Answers) -> None:
    assert switch_answers["halves"] == {
        "float16": ["float16", "float16"],
        "bfloat16": ["bfloat16", "bfloat16"],
        "mixed_float16": ["float16", "float32"],
        "mixed_bfloat16": ["bfloat16", "float32"],
    }


def measure_distance(found: list[float], expected: list[float]) -> float:
    """Return the norm of the difference over the norm of what was expected."""
    return float(np.linalg.norm(np.subtract(found, expected)) / np.linalg.norm(expected))


POOL_SIZE = 50


def test_cyclegans_losses_are_those_of_its_authors(tensorflow: Answers) -> None:
    """By hand: a = 1, b = -1; generators multiply by 0.5 (a to b) and 3 (b to a), discriminators by 1.

    Fakes: of b 0.5, of a -3. Generators: least squares (0.5 - 1)^2 + (-3 - 1)^2 = 16.25, cycle |1.5 - 1| + |-1.5 + 1|
    = 1, identity |-0.5 + 1| + |3 - 1| = 2.5; together 16.25 + 10 x 1 + 10 x 0.5 x 2.5. Discriminators: of a
    (1 - 1)^2 + (-3)^2 = 9, of b (-1 - 1)^2 + 0.5^2 = 4.25; half of it.
    """
    translation = tensorflow["translation"]
    assert translation["losses"] == [38.75, 6.625]
    assert (translation["fakes"], translation["num_handed_on"]) == ([-3.0, 0.5], 0)


def test_a_cyclegan_step_runs_six_generators_and_six_discriminators(tensorflow: Answers) -> None:
    generators = {"generator_ab": 3, "generator_ba": 3}
    after_generators, after_discriminators = tensorflow["translation"]["calls"]
    assert after_generators == generators | {"discriminator_a": 1, "discriminator_b": 1}
    assert after_discriminators == generators | {"discriminator_a": 3, "discriminator_b": 3}


def test_cyclegans_step_differentiates_no_more_than_it_needs(tensorflow: Answers) -> None:
    """By hand: a generator of one block has 6 convolutions and 2 transposed ones, a discriminator 5 convolutions.

    A transposed convolution is computed as a gradient to images, and its gradient to images as a convolution.
    """
    generator_runs, judged_fakes, discriminator_runs = 6, 2, 4
    expected = {
        "Conv2D": generator_runs * 6 + (judged_fakes + discriminator_runs) * 5 + generator_runs * 2,
        # The generators' filters in all their runs, the discriminators' in part two alone.
        "Conv2DBackpropFilter": generator_runs * 8 + discriminator_runs * 5,
        # To images: not of the four generators' first layers that see real images, nor past the fakes in part two.
        "Conv2DBackpropInput": generator_runs * 2 + generator_runs * 6 - 4 + judged_fakes * 5 + discriminator_runs * 4,
    }
    assert tensorflow["translation_graph"] == expected


@pytest.mark.parametrize("framework", ["tensorflow", "jax"])
def test_the_image_pool_fills_first_and_then_swaps_half_of_the_newcomers_for_what_it_holds(
    answers: dict[str, Answers], framework: str
) -> None:
    returned = answers[framework]["pool"]
    held = set(range(1, POOL_SIZE + 1))
    assert returned[:POOL_SIZE] == sorted(held)
    swaps = [pair for pair in enumerate(returned[POOL_SIZE:], start=POOL_SIZE + 1) if pair[0] != pair[1]]
    # 1,000 throws of a coin: the standard deviation of their number is 16.
    assert len(swaps) == pytest.approx(500, abs=64)
    for number, came in swaps:
        held.remove(came)
        held.add(number)
