"""Print what JAX does with cells, as one JSON object on the last line of stdout.

Started with two CPU devices, so that sharding can be seen, and with a Keras configuration that asks for other types.
"""

import json
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

CONFIGURATION = {"backend": "tensorflow", "floatx": "float16", "image_data_format": "channels_first"}
keras_home = tempfile.TemporaryDirectory()
os.environ["KERAS_HOME"] = keras_home.name
(Path(keras_home.name) / "keras.json").write_text(json.dumps(CONFIGURATION))
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"

from bench.frameworks import jax as framework_module  # noqa: E402  chooses Keras's backend

# isort: split
import jax  # noqa: E402
import keras  # noqa: E402
import numpy as np  # noqa: E402
from jax._src import xla_bridge  # noqa: E402  nothing public says whether a client was started
from keras_answers import (  # noqa: E402
    SIZES,
    Examiner,
    check_pool,
    compare_replicas,
    draw_weights,
    shrink_models,
)

from bench.tasks.keras import ImagePool, set_precision  # noqa: E402
from factories import make_cell  # noqa: E402

NUM_THREADS = 3
PRODUCT = {"model": "matmul", "phase": "infer", "input_size": 256, "num_classes": None, "batch_size": 1}


def trace_pool(pool: ImagePool) -> Callable[[Any], Any]:
    """Return the pool's `exchange` as one program of XLA that takes and returns NumPy arrays."""

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


def make_replicas(precision: str) -> list[Any]:
    """Return workloads of equal weights on one and on two devices."""
    cell = make_cell(framework="jax", mode="compiled", precision=precision, **SIZES["conv6"])
    set_precision(cell)
    workloads = [framework_module.JaxWorkload(cell, jax.devices()[:count], 1) for count in (1, 2)]
    for workload in workloads:
        draw_weights(workload)
    return workloads


def check_sharding() -> dict[str, Any]:
    """Compare one device with two; say how the two share the batch and what each holds of the weights."""
    one, two = make_replicas("fp32")
    answers = compare_replicas(one, two)
    images = two.inputs[0]
    kernel = two.networks["model"].trainable_variables[0].value
    return {
        **answers,
        "shares": [list(shard.data.shape) for shard in images.addressable_shards],
        "kernel": [list(shard.data.shape) for shard in kernel.addressable_shards],
    }


def check_step(examiner: Examiner) -> dict[str, Any]:
    """Say how a training step was executed: programs compiled, buffers donated, constants, precision of products."""
    workload = examiner.build(mode="compiled")
    workload.run_step()
    donated = workload._state
    program = workload._step.lower(donated, *workload.inputs).as_text()
    for _ in range(2):
        workload.run_step()
    constants = re.findall(r"stablehlo.constant dense<[^>]*> : tensor<([\dx]*)x?\w+>", program)
    return {
        "num_programs": workload._step._cache_size(),
        "num_kept": sum(not array.is_deleted() for array in donated),
        "largest_constant": max(int(np.prod([int(n) for n in dims.split("x") if n])) for dims in constants),
        "precisions": read_precisions(program),
    }


def read_precisions(program: str) -> list[list[str]]:
    """Return which precisions the convolutions and the matrix products of a StableHLO program ask for."""
    lines = [
        line for line in program.splitlines() if "stablehlo.convolution" in line or "stablehlo.dot_general" in line
    ]
    precisions = {tuple(re.findall(r"\b(DEFAULT|HIGH|HIGHEST)\b", line)) for line in lines}
    return [list(names) for names in sorted(precisions)]


def check_tf32(examiner: Examiner) -> list[list[str]]:
    """Return the precisions of a step in TF32."""
    jax.config.update("jax_default_matmul_precision", "highest")
    cell = make_cell(framework="jax", mode="compiled", precision="tf32", **SIZES["conv6"])
    framework = framework_module.load(cell, NUM_THREADS)
    workload = framework.build_workload(cell)
    workload.run_step()
    return read_precisions(workload._step.lower(workload._state, *workload.inputs).as_text())


def count_pool_threads() -> int:
    """Return the number of XLA's threads that compute on the CPU."""
    return [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")].count("tf_XLAEigen")


def check_plan(framework: framework_module.Jax) -> dict[str, Any]:
    """Say what steps take by XLA's plan, beside the arrays that they take and return."""
    product = framework.build_workload(make_cell(framework="jax", mode="compiled", **PRODUCT))
    training = framework.build_workload(make_cell(framework="jax", mode="compiled", **SIZES["conv6"]))
    for workload in (product, training):
        workload.run_step()
        workload.synchronize()
    state, inputs = (sum(array.nbytes for array in arrays) for arrays in (training._state or (), training.inputs))
    return {
        "product": product.plan_step_bytes(),
        "training": training.plan_step_bytes(),
        "state": state,
        "inputs": inputs,
        "num_programs": training._step._cache_size(),
    }


def check_calibration_options() -> bool:
    """Say whether the calibration's product is right with its options: XLA refuses those that it does not know."""
    cell = make_cell(framework="jax", mode="compiled", **PRODUCT)
    set_precision(cell)
    workload = framework_module.JaxWorkload(cell, jax.devices()[:1], 1, framework_module.CALIBRATION_OPTIONS)
    workload.run_step()
    left, right = map(np.asarray, workload.inputs)
    return bool(np.allclose(np.asarray(workload._outputs[0]), left @ right, rtol=1e-3))


def check_out_of_memory(framework: framework_module.Jax) -> dict[str, bool]:
    """Say which errors count as too little memory."""
    errors: dict[str, BaseException] = {"value": ValueError("RESOURCE_EXHAUSTED")}
    causes: dict[str, Callable[[], object]] = {
        "allocator": lambda: jax.numpy.zeros(1 << 50) + 1,
        "shapes": lambda: jax.numpy.zeros(3) + jax.numpy.zeros(2),
    }
    for name, cause in causes.items():
        try:
            cause()
        except Exception as error:
            errors[name] = error
    return {name: framework.is_out_of_memory(error) for name, error in errors.items()}


def main() -> None:
    """Print all answers."""
    shrink_models()
    framework_module.load(make_cell(framework="jax", mode="compiled"), NUM_THREADS)
    is_client_started = xla_bridge.backends_are_initialized()
    framework = framework_module.load(make_cell(framework="jax", mode="compiled"), NUM_THREADS)
    examiner = Examiner("jax", framework.build_workload)
    answers = {
        "keras": [keras.config.floatx(), keras.config.image_data_format(), keras.config.dtype_policy().name],
        "settings": framework.settings,
        "training": {"compiled": examiner.check_training("compiled")},
        "inference": {"compiled": examiner.check_inference("compiled")},
        "overflow": {"compiled": examiner.check_overflow("compiled")},
        "real_data": examiner.check_real_data("compiled"),
        "seeded_alike": examiner.check_seeds(),
        "pool": check_pool(trace_pool),
        "replicas": check_sharding(),
        "step": check_step(examiner),
        "num_pool_threads": count_pool_threads(),
        "is_client_started": is_client_started,
        "plan": check_plan(framework),
        "calibration_options": check_calibration_options(),
        "out_of_memory": check_out_of_memory(framework),
        "tf32": check_tf32(examiner),
    }
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
