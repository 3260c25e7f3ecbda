"""Print what TensorFlow does with cells, as one JSON object on the last line of stdout.

Started with TF32 switched on and with a Keras configuration that asks for float16 and channels first, so that only
switching them off explains that they are off; and with two CPU devices, so that replicas can be seen.
"""

import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

CONFIGURATION = {"backend": "jax", "floatx": "float16", "image_data_format": "channels_first"}
keras_home = tempfile.TemporaryDirectory()
os.environ["KERAS_HOME"] = keras_home.name
(Path(keras_home.name) / "keras.json").write_text(json.dumps(CONFIGURATION))

from bench.frameworks import tensorflow as framework_module  # noqa: E402  chooses Keras's backend

# isort: split
import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from keras_answers import (  # noqa: E402
    SIZES,
    Examiner,
    check_pool,
    check_translation_losses,
    compare_replicas,
    count_changes,
    draw_weights,
    read_loss_scale,
    read_weights,
    shrink_models,
)

from bench.tasks.keras import ImagePool, set_precision  # noqa: E402
from factories import make_cell  # noqa: E402

tf.config.experimental.enable_tensor_float_32_execution(True)
asked_for = [keras.config.floatx(), keras.config.image_data_format()]

MODES = ("eager", "graph", "compiled")
TWO_DEVICES = ("CPU:0", "CPU:1")


def trace_pool(pool: ImagePool) -> Callable[[Any], Any]:
    """Return the pool's `exchange` as one graph that takes and returns NumPy arrays."""
    exchange = tf.function(pool.exchange)
    return lambda images: exchange(tf.constant(images)).numpy()


def make_replicas(mode: str, precision: str) -> list[Any]:
    """Return workloads of equal weights on one and on two devices."""
    cell = make_cell(framework="tensorflow", mode=mode, precision=precision, **SIZES["conv6"])
    set_precision(cell)
    workloads = [framework_module.TensorFlowWorkload(cell, TWO_DEVICES[:count], 1) for count in (1, 2)]
    for workload in workloads:
        draw_weights(workload)
    return workloads


def check_inference_of_replicas(mode: str) -> float:
    """Return how far the outputs of one and of two devices are apart, at most."""
    cell = make_cell(framework="tensorflow", mode=mode, phase="infer", **SIZES["conv6"])
    set_precision(cell)
    workloads = [framework_module.TensorFlowWorkload(cell, TWO_DEVICES[:count], 1) for count in (1, 2)]
    outputs = []
    for workload in workloads:
        draw_weights(workload)
        workload.run_step()
        results = workload._strategy.experimental_local_results if workload._strategy else lambda output: (output,)
        outputs.append(np.concatenate([share.numpy() for share in results(workload._outputs[0])]))
    return float(np.abs(outputs[0] - outputs[1]).max())


def check_overflow_of_the_second_replica(mode: str) -> dict[str, Any]:
    """Train two replicas in fp16, the second one's images infinite; say what becomes of scale and weights."""
    _, workload = make_replicas(mode, "fp16")
    labels = workload.inputs[1]
    shares = np.zeros((4, 16, 16, 3), np.float32)
    shares[2:] = np.inf
    before = read_weights(workload)
    workload.inputs = (workload._share(shares), labels)
    workload.run_step()
    return {"scale": read_loss_scale(workload), "num_changed": count_changes(before, read_weights(workload))}


def check_graph(examiner: Examiner, phase: str) -> dict[str, Any]:
    """Say what the one graph of a step is made of."""
    workload = examiner.build(mode="graph", phase=phase)
    for _ in range(3):
        workload.run_step()
    concrete = workload._step.get_concrete_function(*workload.inputs)
    operations = concrete.graph.get_operations()
    types = [operation.type for operation in operations]
    constants = [operation.get_attr("value") for operation in operations if operation.type == "Const"]
    return {
        "num_traces": workload._step.experimental_get_tracing_count(),
        "input_shapes": [list(tensor.shape) for tensor in concrete.inputs[:2]],
        "captured_dtypes": sorted({tensor.dtype.name for tensor in concrete.captured_inputs}),
        "has_large_constants": max(tf.make_ndarray(constant).size for constant in constants) >= 100,
        "must_compile": bool(concrete.function_def.attr["_XlaMustCompile"].b),
        "num_filter_gradients": types.count("Conv2DBackpropFilter"),
        "has_gradients": any("Backprop" in name or name.endswith("Grad") for name in types),
        "num_assignments": sum(name.startswith("Assign") for name in types),
        "num_convolutions": types.count("Conv2D"),
    }


def check_translation_graph(examiner: Examiner) -> dict[str, int]:
    """Count convolutions, and their gradients to images and to filters, that CycleGAN's training step needs."""
    workload = examiner.build("cyclegan", mode="graph")
    graph = workload._step.get_concrete_function(*workload.inputs).graph
    reached = [operation for operation in graph.get_operations() if operation.type.startswith("Assign")]
    needed = {operation.name: operation.type for operation in reached}
    while reached:
        for tensor in reached.pop().inputs:
            if tensor.op.name not in needed:
                needed[tensor.op.name] = tensor.op.type
                reached.append(tensor.op)
    counts = Counter(needed.values())
    return {name: counts[name] for name in ("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter")}


def check_compiled(examiner: Examiner, precision: str) -> dict[str, Any]:
    """Return how a compiled training step is executed and which precision XLA uses for products."""
    tf.config.experimental.enable_tensor_float_32_execution(precision == "tf32")
    workload = examiner.build(mode="compiled", precision=precision)
    workload.run_step()
    concrete = workload._step.get_concrete_function(*workload.inputs)
    program = workload._step.experimental_get_compiler_ir(*workload.inputs)(stage="hlo")
    products = [line for line in program.splitlines() if re.search(r"= \S+ (convolution|dot)\(", line)]
    precisions = [re.search(r"operand_precision={([\w,]+)}", line) for line in products]
    return {
        "must_compile": bool(concrete.function_def.attr["_XlaMustCompile"].b),
        "num_traces": workload._step.experimental_get_tracing_count(),
        "precisions": sorted({match[1] if match else "default" for match in precisions}),
    }


def check_calls(examiner: Examiner, mode: str) -> list[bool]:
    """Return, for every run of the model's Python code in three steps, whether it was executed op by op."""
    workload = examiner.build(mode=mode, phase="infer")
    model = workload.networks["model"]
    calls: list[bool] = []

    def watched(*arguments: Any, **keywords: Any) -> Any:
        calls.append(tf.executing_eagerly())
        return model(*arguments, **keywords)

    workload._task.networks["model"] = watched
    for _ in range(3):
        workload.run_step()
    return calls


def check_out_of_memory(framework: framework_module.TensorFlow) -> dict[str, bool]:
    """Say which errors count as too little memory."""
    # Made here: TensorFlow waits ten seconds for memory before it raises this one.
    errors: dict[str, BaseException] = {
        "allocator": tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor with shape[9]"),
        "shapes": tf.errors.InvalidArgumentError(None, None, "OOM"),
        "value": ValueError("OOM"),
    }
    return {name: framework.is_out_of_memory(error) for name, error in errors.items()}


def main() -> None:
    """Print all answers."""
    shrink_models()
    framework = framework_module.load(make_cell(framework="tensorflow"), 1)
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    examiner = Examiner("tensorflow", framework.build_workload)
    answers = {
        "asked_for": asked_for,
        "keras": [keras.config.floatx(), keras.config.image_data_format(), keras.config.dtype_policy().name],
        "settings": framework.settings,
        "tf32": tf.config.experimental.tensor_float_32_execution_enabled(),
        "threads": [
            tf.config.threading.get_intra_op_parallelism_threads(),
            tf.config.threading.get_inter_op_parallelism_threads(),
        ],
        "training": {mode: examiner.check_training(mode) for mode in MODES},
        "inference": {mode: examiner.check_inference(mode) for mode in MODES},
        "overflow": {mode: examiner.check_overflow(mode) for mode in MODES},
        "real_data": examiner.check_real_data("graph"),
        "seeded_alike": examiner.check_seeds(),
        "pool": check_pool(trace_pool),
        "translation": check_translation_losses(),
        "replicas": {mode: compare_replicas(*make_replicas(mode, "fp32")) for mode in MODES},
        "replicated_inference": {mode: check_inference_of_replicas(mode) for mode in MODES},
        "replicated_overflow": {mode: check_overflow_of_the_second_replica(mode) for mode in ("eager", "graph")},
        "graph": {phase: check_graph(examiner, phase) for phase in ("train", "infer")},
        "translation_graph": check_translation_graph(examiner),
        "calls": {mode: check_calls(examiner, mode) for mode in MODES},
        "compiled": {precision: check_compiled(examiner, precision) for precision in ("fp32", "tf32")},
        "out_of_memory": check_out_of_memory(framework),
    }
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
