"""Check what JAX does with cells; keras_conformance.py and conformance.py have what others do as well.

Started with two CPU devices, so that sharding can be seen.
"""

import os
import re
from collections.abc import Callable
from typing import Any

import conformance
import keras_conformance  # a user's configuration of Keras, which is read when that is imported
import numpy as np
from conformance import SIZES, Examiner, catch
from keras_conformance import compare_replicas, make_replicas
from workload_state import find_networks

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"

from bench.frameworks import jax as framework_module  # noqa: E402  chooses Keras's backend

# isort: split
import jax  # noqa: E402
import keras  # noqa: E402
import xla_traces  # noqa: E402
from jax._src import xla_bridge  # noqa: E402  nothing public says whether a client was started
from jax.profiler import ProfileData  # noqa: E402

from factories import make_cell  # noqa: E402

NUM_THREADS = 3
PRODUCT = {"model": "matmul", "phase": "infer", "input_size": 256, "num_classes": None, "batch_size": 1}

framework = framework_module.load(make_cell(framework="jax", mode="compiled"), NUM_THREADS)
is_client_started = xla_bridge.backends_are_initialized()


def check_a_users_configuration_changes_nothing(_: Examiner) -> None:
    types = (keras.config.floatx(), keras.config.image_data_format(), keras.config.dtype_policy().name)
    assert types == ("float32", "channels_last", "float32")
    assert framework.settings["optimizer"] == "Keras Adam"


def check_loading_starts_no_client_and_so_makes_no_context(_: Examiner) -> None:
    assert is_client_started is False


def check_running_out_of_memory_is_told_from_other_errors(_: Examiner) -> None:
    assert not framework.is_out_of_memory(ValueError("RESOURCE_EXHAUSTED"))
    assert framework.is_out_of_memory(catch(lambda: jax.numpy.zeros(1 << 50) + 1))
    assert not framework.is_out_of_memory(catch(lambda: jax.numpy.zeros(3) + jax.numpy.zeros(2)))


def check_a_step_compiles_once_folds_no_data_gives_its_buffers_away_and_multiplies_in_float32(
    examiner: Examiner,
) -> None:
    workload = examiner.build()
    workload.run_step()
    donated = workload._state
    program = workload._step.lower(donated, *workload.inputs).as_text()
    for _ in range(2):
        workload.run_step()
    assert workload._step._cache_size() == 1
    assert all(array.is_deleted() for array in donated)
    constants = re.findall(r"stablehlo.constant dense<[^>]*> : tensor<([\dx]*)x?\w+>", program)
    assert max(int(np.prod([int(n) for n in dims.split("x") if n])) for dims in constants) < 100
    assert read_precisions(program) == {("HIGHEST", "HIGHEST")}


def read_precisions(program: str) -> set[tuple[str, ...]]:
    """Return which precisions the convolutions and the matrix products of a StableHLO program ask for."""
    products = ("stablehlo.convolution", "stablehlo.dot_general")
    lines = [line for line in program.splitlines() if any(product in line for product in products)]
    return {tuple(re.findall(r"\b(DEFAULT|HIGH|HIGHEST)\b", line)) for line in lines}


def make_workload(cell: Any, number: int) -> Any:
    return framework_module.JaxWorkload(cell, jax.devices()[:number], 1, {})


def check_two_devices_step_as_one_does_each_with_half_the_batch_and_all_weights(_: Examiner) -> None:
    one, two = make_replicas(make_workload, framework="jax", mode="compiled")
    compare_replicas(one, two)
    images, kernel = two.inputs[0], find_networks(two)["model"].trainable_variables[0].value
    for array, shape in ((images, (2, 16, 16, 3)), (kernel, (3, 3, 3, 4))):
        assert [shard.data.shape for shard in array.addressable_shards] == [shape] * 2


def check_a_steps_bytes_are_arguments_outputs_and_temporary_buffers_without_the_build(_: Examiner) -> None:
    product = framework.build_workload(make_cell(framework="jax", mode="compiled", **PRODUCT))
    training = framework.build_workload(make_cell(framework="jax", mode="compiled", **SIZES["conv6"]))
    for workload in (product, training):
        workload.run_step()
        workload.synchronize()
    # Two matrices and their product, 256 x 256 of four bytes.
    assert product.plan_step_bytes() == 3 * 256 * 256 * 4
    # The state is donated: the new one takes its place. Gradients, which are a third of it, and activations come on
    # top; a second copy of the state would be 2.
    state, inputs = (sum(array.nbytes for array in arrays) for arrays in (training._state or (), training.inputs))
    assert 1 + 1 / 3 < ((training.plan_step_bytes() or 0) - inputs) / state < 2
    assert training._step._cache_size() == 1  # asking compiles nothing


def check_the_calibrations_product_is_right_with_options_that_xla_knows(_: Examiner) -> None:
    cell = make_cell(framework="jax", mode="compiled", **PRODUCT)
    workload = framework_module.JaxWorkload(cell, jax.devices()[:1], 1, framework_module.CALIBRATION_OPTIONS)
    workload.run_step()
    left, right = map(np.asarray, workload.inputs)
    np.testing.assert_allclose(np.asarray(workload._outputs[0]), left @ right, rtol=1e-3, atol=1e-8)


def check_programs_are_counted_that_a_cache_was_asked_for(_: Examiner) -> None:
    counts = []
    for num_programs in (1, 1, 0):
        loaded = framework_module.load(make_cell(framework="jax", mode="compiled"), NUM_THREADS)
        for _number in range(num_programs):
            jax.jit(lambda left: left @ left - 0.625)(np.ones((8, 8), np.float32))
        counts.append(loaded.count_programs().model_dump(exclude_unset=True))
        jax.clear_caches()
    assert [tuple(one.values()) for one in counts] == [(0, 1), (1, 0), (0, None)]


def check_kernels_and_copies_of_traces_count(_: Examiner) -> None:
    def work() -> None:
        jax.block_until_ready(jax.numpy.ones((64, 64)) @ jax.numpy.ones((64, 64)))

    xla_traces.examine(framework_module, ProfileData.text_proto_to_serialized_xspace, jax.profiler.trace, work)


def trace_pool(pool: Any) -> Callable[[Any], Any]:
    @jax.jit
    def step(state: Any, images: Any) -> Any:
        with keras.StatelessScope(list(zip(pool.state, state, strict=True))) as scope:
            returned = pool.exchange(images)
        return returned, [scope.get_current_value(variable) for variable in pool.state]

    state = [variable.value for variable in pool.state]

    def exchange(images: Any) -> Any:
        returned, state[:] = step(state, images)
        return np.asarray(returned)

    return exchange


def check_tf32_products_are_in_tf32(_: Examiner) -> None:
    cell = make_cell(framework="jax", mode="compiled", precision="tf32", **SIZES["conv6"])
    workload = framework_module.load(cell, NUM_THREADS).build_workload(cell)
    workload.run_step()
    program = workload._step.lower(workload._state, *workload.inputs).as_text()
    assert read_precisions(program) == {("HIGH", "HIGH")}
    framework_module.load(make_cell(framework="jax", mode="compiled"), NUM_THREADS)  # as it was


if __name__ == "__main__":
    examiner = keras_conformance.make_examiner("jax", ("compiled",), framework.build_workload, trace_pool)
    conformance.run_checks(examiner, globals(), vars(conformance), vars(keras_conformance))
