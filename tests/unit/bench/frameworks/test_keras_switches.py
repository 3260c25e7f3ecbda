"""TensorFlow and JAX take switches, threads, devices, data and precision as their records say."""

import pytest

from framework_programs import Answers

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
