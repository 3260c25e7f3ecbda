"""Modes and several devices: what TensorFlow and JAX trace, compile and share out."""

from typing import Any

import pytest

from framework_programs import Answers

MODES = ("eager", "graph", "compiled")


def test_eager_steps_run_the_models_python_code_every_time(tensorflow: Answers) -> None:
    assert tensorflow["calls"] == {"eager": [True] * 3, "graph": [False], "compiled": [False]}


@pytest.mark.parametrize("phase", ["train", "infer"])
def test_a_graph_is_traced_once_and_folds_neither_data_nor_weights(tensorflow: Answers, phase: str) -> None:
    graph = tensorflow["graph"][phase]
    assert (graph["num_traces"], graph["input_shapes"]) == (1, [[4, 16, 16, 3], [4]])
    assert graph["captured_dtypes"] == ["resource"]  # the weights as variables; no tensor is captured
    assert graph["largest_constant"] < 100


def test_xla_compiles_compiled_steps_and_no_graphs(tensorflow: Answers) -> None:
    assert [tensorflow["graph"][phase]["must_compile"] for phase in ("train", "infer")] == [False, False]
    compiled = tensorflow["compiled"]["fp32"]
    assert (compiled["must_compile"], compiled["num_traces"]) == (True, 1)


def test_a_graph_for_training_holds_every_gradient_and_update(tensorflow: Answers) -> None:
    graph = tensorflow["graph"]["train"]
    assert (graph["num_convolutions"], graph["num_filter_gradients"]) == (4, 4)
    # Adam assigns first moment, second moment and parameter of each of the 14 tensors, and counts its steps.
    assert graph["num_assignments"] == 3 * 14 + 1


def test_a_graph_for_inference_holds_the_model_and_no_gradient_or_assignment(tensorflow: Answers) -> None:
    graph = tensorflow["graph"]["infer"]
    assert (graph["num_convolutions"], graph["num_gradients"], graph["num_assignments"]) == (4, 0, 0)


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
