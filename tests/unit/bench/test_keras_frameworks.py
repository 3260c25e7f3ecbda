"""TensorFlow and JAX, each asked once by a program in its own environment: is a cell carried out as its record says?"""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.schema import Framework
from bench.tasks.inputs import make_inputs
from factories import make_cell
from framework_programs import Answers, ask

MODES = ("eager", "graph", "compiled")
STEPPERS = [("tensorflow", mode) for mode in MODES] + [("jax", "compiled")]
MODELS = ("conv6 fp32", "conv6 bf16", "conv6 fp16", "text-classifier fp32", "cyclegan fp32")
DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
POOL_SIZE = 50


@pytest.fixture(scope="module")
def answers(interpreters: dict[Framework, Path]) -> dict[str, Answers]:
    """What the programs of both frameworks print, run side by side."""
    frameworks: tuple[Framework, ...] = ("tensorflow", "jax")
    with ThreadPoolExecutor() as pool:
        futures = {name: pool.submit(ask, interpreters[name], f"check_{name}.py") for name in frameworks}
    return {name: future.result() for name, future in futures.items()}


@pytest.fixture(scope="module")
def tensorflow(answers: dict[str, Answers]) -> Answers:
    return answers["tensorflow"]


@pytest.fixture(scope="module")
def jax(answers: dict[str, Answers]) -> Answers:
    return answers["jax"]


# Switches, devices, threads


def test_tensorflow_switches_tf32_off_and_takes_its_threads_as_its_record_says(tensorflow: Answers) -> None:
    assert False is tensorflow["tf32"] is tensorflow["settings"]["tf32"]
    names = ("intra_op_threads", "inter_op_threads")
    assert [1, 1] == tensorflow["threads"] == [tensorflow["settings"][name] for name in names]


def test_xla_computes_with_as_many_cpu_threads_as_jax_was_given(jax: Answers) -> None:
    assert 3 == jax["num_pool_threads"] == jax["settings"]["num_threads"]


def test_a_users_keras_configuration_changes_nothing(tensorflow: Answers, jax: Answers) -> None:
    assert ["float16", "channels_first"] == tensorflow["asked_for"]
    assert ["float32", "channels_last", "float32"] == tensorflow["keras"] == jax["keras"]


def test_a_missing_gpu_is_named(tensorflow: Answers, jax: Answers) -> None:
    expected = "sees 0 GPUs, the cell asks for 1"
    assert expected in tensorflow["without_gpu"]
    assert expected in jax["without_gpu"]


def test_there_is_no_gpu_allocator_on_a_cpu(tensorflow: Answers, jax: Answers) -> None:
    assert [None, None] == tensorflow["peak_memory"] == jax["peak_memory"]


def test_both_know_their_ways_of_running_out_of_memory(tensorflow: Answers, jax: Answers) -> None:
    assert {"allocator": True, "shapes": False, "value": False} == tensorflow["out_of_memory"] == jax["out_of_memory"]


@pytest.mark.parametrize("framework", ["tensorflow", "jax"])
def test_both_get_the_data_of_a_seed_as_every_framework_does(answers: dict[str, Answers], framework: str) -> None:
    images, labels = make_inputs(make_cell(batch_size=4, input_size=16, seed=11))
    rows, found_labels = answers[framework]["inputs"]
    np.testing.assert_allclose(rows, images.sum(axis=(1, 3)), rtol=1e-4, atol=1e-4)
    assert labels.tolist() == found_labels


def test_equal_seeds_make_equal_weights_and_others_do_not(tensorflow: Answers, jax: Answers) -> None:
    assert [True, False] == tensorflow["seeded_alike"] == jax["seeded_alike"]


# Precision


def test_float32_products_are_true_float32_in_xla_and_tf32_ones_are_not(tensorflow: Answers, jax: Answers) -> None:
    assert ["highest,highest"] == tensorflow["compiled"]["fp32"]["precisions"]
    assert ["default"] == tensorflow["compiled"]["tf32"]["precisions"]
    assert [["HIGHEST", "HIGHEST"]] == jax["step"]["precisions"]
    assert [["HIGH", "HIGH"]] == jax["tf32"]


@pytest.mark.parametrize(("framework", "mode"), STEPPERS)
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_changes_the_loss_a_little(
    answers: dict[str, Answers], framework: str, mode: str, precision: str
) -> None:
    training = answers[framework]["training"][mode]
    exact, rounded = (training[f"conv6 {name}"]["losses"][0] for name in ("fp32", precision))
    assert exact != rounded
    assert exact == pytest.approx(rounded, rel=2e-3)


@pytest.mark.parametrize(("framework", "mode"), STEPPERS)
@pytest.mark.parametrize("precision", DTYPES)
def test_inference_takes_and_gives_the_precision_asked_for(
    answers: dict[str, Answers], framework: str, mode: str, precision: str
) -> None:
    assert [DTYPES[precision]] * 2 == answers[framework]["inference"][mode][f"conv6 {precision}"]["dtypes"]


# Training


@pytest.mark.parametrize(("framework", "mode"), STEPPERS)
@pytest.mark.parametrize("model", MODELS)
def test_training_changes_every_weight_and_keeps_it_in_float32(
    answers: dict[str, Answers], framework: str, mode: str, model: str
) -> None:
    training = answers[framework]["training"][mode][model]
    assert (0, ["float32"], "cpu") == (training["num_unchanged"], training["dtypes"], training["device"])


@pytest.mark.parametrize(("framework", "mode"), STEPPERS)
@pytest.mark.parametrize("model", MODELS)
def test_adams_first_step_goes_as_far_as_the_learning_rate(
    answers: dict[str, Answers], framework: str, mode: str, model: str
) -> None:
    """Kingma and Ba, algorithm 1: at t = 1 the update is lr g / (|g| + epsilon)."""
    rate = {"conv6": 3e-4, "text-classifier": 1e-3, "cyclegan": 2e-4}[model.split()[0]]
    assert rate == pytest.approx(answers[framework]["training"][mode][model]["largest_updates"][1], rel=1e-3)


@pytest.mark.parametrize(("framework", "mode"), STEPPERS)
@pytest.mark.parametrize("model", MODELS)
def test_every_way_of_stepping_learns_the_same(
    answers: dict[str, Answers], framework: str, mode: str, model: str
) -> None:
    """The first losses up to rounding; the second ones loosely, as Adam divides small gradients by their own size."""
    expected = answers["tensorflow"]["training"]["eager"][model]["losses"]
    found = answers[framework]["training"][mode][model]["losses"]
    assert expected[0] == pytest.approx(found[0], rel=1e-4 if model.endswith("fp32") else 1e-3)
    assert expected[1] == pytest.approx(found[1], rel=2e-2)


@pytest.mark.parametrize(("framework", "mode"), STEPPERS)
@pytest.mark.parametrize("model", ["conv6 fp32", "text-classifier fp32"])
def test_the_loss_is_the_mean_cross_entropy_of_the_logits(
    answers: dict[str, Answers], framework: str, mode: str, model: str
) -> None:
    inference = answers[framework]["inference"][mode][model]
    logits = np.array(inference["output"]).reshape(inference["shape"])
    exponentials = np.exp(logits)
    chosen = (exponentials / exponentials.sum(axis=1, keepdims=True))[range(len(logits)), inference["labels"]]
    assert -np.log(chosen).mean() == pytest.approx(
        answers[framework]["training"][mode][model]["losses"][0][0], rel=1e-5
    )


@pytest.mark.parametrize(("framework", "mode"), STEPPERS)
def test_an_overflow_halves_the_loss_scale_and_skips_the_update(
    answers: dict[str, Answers], framework: str, mode: str
) -> None:
    overflow = answers[framework]["overflow"][mode]
    assert [2.0**16, 2.0**15, 2.0**15] == overflow["scales"]
    # Four convolutions and three dense layers, each with kernel and bias.
    assert [0, 14] == overflow["num_changed"]


# Inference


@pytest.mark.parametrize(("framework", "mode"), STEPPERS)
def test_inference_changes_nothing_and_has_no_losses(answers: dict[str, Answers], framework: str, mode: str) -> None:
    for inference in answers[framework]["inference"][mode].values():
        assert (0, [], "cpu") == (inference["num_changed"], inference["losses"], inference["device"])


@pytest.mark.parametrize(("framework", "mode"), STEPPERS)
@pytest.mark.parametrize("model", ["conv6 fp32", "text-classifier fp32", "cyclegan fp32", "matmul fp32"])
def test_every_way_of_inferring_gives_the_same_output(
    answers: dict[str, Answers], framework: str, mode: str, model: str
) -> None:
    shapes: dict[str, list[int]] = {"conv6": [4, 10], "text-classifier": [2, 2], "cyclegan": [1, 24, 24, 3]}
    expected, found = (
        answers[name]["inference"][way][model] for name, way in (("tensorflow", "eager"), (framework, mode))
    )
    assert shapes.get(model.split()[0], [1, 16, 16]) == expected["shape"] == found["shape"]
    assert expected["output"] == pytest.approx(found["output"], rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("framework", ["tensorflow", "jax"])
def test_real_data_come_batch_by_batch_in_the_precision_of_the_weights(
    answers: dict[str, Answers], framework: str
) -> None:
    # The test set's images stand in order; an image's label is its number.
    assert {"labels": [[0, 1, 2, 3], [4, 5, 6, 7]], "dtype": "bfloat16"} == answers[framework]["real_data"]


# CycleGAN


@pytest.mark.parametrize("framework", ["tensorflow", "jax"])
def test_cyclegans_losses_are_those_of_its_authors(answers: dict[str, Answers], framework: str) -> None:
    """By hand: a = 1, b = -1; generators multiply by 0.5 (a to b) and 3 (b to a), discriminators by 1.

    Fakes: of b 0.5, of a -3. Generators: least squares (0.5 - 1)^2 + (-3 - 1)^2 = 16.25, cycle |1.5 - 1| + |-1.5 + 1|
    = 1, identity |-0.5 + 1| + |3 - 1| = 2.5; together 16.25 + 10 x 1 + 10 x 0.5 x 2.5. Discriminators: of a
    (1 - 1)^2 + (-3)^2 = 9, of b (-1 - 1)^2 + 0.5^2 = 4.25; half of it.
    """
    translation = answers[framework]["translation"]
    assert [38.75, 6.625] == translation["losses"]
    assert ([-3.0, 0.5], 0) == (translation["fakes"], translation["num_handed_on"])


@pytest.mark.parametrize("framework", ["tensorflow", "jax"])
def test_a_cyclegan_step_runs_six_generators_and_six_discriminators(
    answers: dict[str, Answers], framework: str
) -> None:
    generators = {"generator_ab": 3, "generator_ba": 3}
    after_generators, after_discriminators = answers[framework]["translation"]["calls"]
    assert generators | {"discriminator_a": 1, "discriminator_b": 1} == after_generators
    assert generators | {"discriminator_a": 3, "discriminator_b": 3} == after_discriminators


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
    assert expected == tensorflow["translation_graph"]


@pytest.mark.parametrize("framework", ["tensorflow", "jax"])
def test_the_image_pool_fills_first_and_then_swaps_half_of_the_newcomers(
    answers: dict[str, Answers], framework: str
) -> None:
    returned = answers[framework]["pool"]["returned"]
    assert list(range(1, POOL_SIZE + 1)) == returned[:POOL_SIZE]
    is_swapped = [came != went for went, came in enumerate(returned[POOL_SIZE:], start=POOL_SIZE + 1)]
    # 1,000 throws of a coin: the standard deviation of their number is 16.
    assert 500 == pytest.approx(sum(is_swapped), abs=64)


@pytest.mark.parametrize("framework", ["tensorflow", "jax"])
def test_the_image_pool_gives_back_what_it_holds_and_keeps_what_it_swaps_in(
    answers: dict[str, Answers], framework: str
) -> None:
    returned = answers[framework]["pool"]["returned"]
    held = set(range(1, POOL_SIZE + 1))
    for number, came in enumerate(returned[POOL_SIZE:], start=POOL_SIZE + 1):
        if came != number:
            held.remove(came)
            held.add(number)
    assert POOL_SIZE == len(held)


# Modes


def test_eager_steps_run_the_models_python_code_every_time(tensorflow: Answers) -> None:
    assert {"eager": [True] * 3, "graph": [False], "compiled": [False]} == tensorflow["calls"]


@pytest.mark.parametrize("phase", ["train", "infer"])
def test_a_graph_is_traced_once_and_folds_neither_data_nor_weights(tensorflow: Answers, phase: str) -> None:
    graph = tensorflow["graph"][phase]
    assert (1, [[4, 16, 16, 3], [4]]) == (graph["num_traces"], graph["input_shapes"])
    assert ["resource"] == graph["captured_dtypes"]  # the weights as variables; no tensor is captured
    assert graph["largest_constant"] < 100


def test_xla_compiles_compiled_steps_and_no_graphs(tensorflow: Answers) -> None:
    assert [False, False] == [tensorflow["graph"][phase]["must_compile"] for phase in ("train", "infer")]
    compiled = tensorflow["compiled"]["fp32"]
    assert (True, 1) == (compiled["must_compile"], compiled["num_traces"])


def test_a_graph_for_training_holds_every_gradient_and_update(tensorflow: Answers) -> None:
    graph = tensorflow["graph"]["train"]
    assert (4, 4) == (graph["num_convolutions"], graph["num_filter_gradients"])
    # Adam assigns first moment, second moment and parameter of each of the 14 tensors, and counts its steps.
    assert 3 * 14 + 1 == graph["num_assignments"]


def test_a_graph_for_inference_holds_the_model_and_no_gradient_or_assignment(tensorflow: Answers) -> None:
    graph = tensorflow["graph"]["infer"]
    assert (4, 0, 0) == (graph["num_convolutions"], graph["num_gradients"], graph["num_assignments"])


def test_jax_compiles_a_step_once_folds_no_data_and_gives_its_buffers_away(jax: Answers) -> None:
    step = jax["step"]
    assert (1, 0) == (step["num_programs"], step["num_kept"])
    assert step["largest_constant"] < 100


# Several devices


@pytest.mark.parametrize("mode", MODES)
def test_two_replicas_in_tensorflow_step_as_one_device_does(tensorflow: Answers, mode: str) -> None:
    check_replicas(tensorflow["replicas"][mode])


def test_two_devices_in_jax_step_as_one_does_each_with_half_the_batch_and_all_weights(jax: Answers) -> None:
    check_replicas(jax["replicas"])
    assert [[2, 16, 16, 3]] * 2 == jax["replicas"]["shares"]
    assert [[3, 3, 3, 4]] * 2 == jax["replicas"]["kernel"]


def check_replicas(replicas: dict[str, Any]) -> None:
    """Check one and two devices for equal losses, weights and gradients (which the moments are a tenth of)."""
    assert replicas["losses"][0] == pytest.approx(replicas["losses"][1], rel=1e-6)
    assert replicas["weights"] < 1e-5
    assert replicas["moments"] < 1e-5


@pytest.mark.parametrize("mode", MODES)
def test_two_replicas_in_tensorflow_infer_as_one_device_does(tensorflow: Answers, mode: str) -> None:
    assert 1e-6 > tensorflow["replicated_inference"][mode]


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_an_overflow_in_the_second_replica_is_noticed(tensorflow: Answers, mode: str) -> None:
    assert {"scale": 2.0**15, "num_changed": 0} == tensorflow["replicated_overflow"][mode]
