"""Check what TensorFlow does with cells; keras_conformance.py and conformance.py have what others do as well.

Started with TF32 switched on, so that only switching it off explains that it is off; and with two CPU devices, so that
replicas can be seen.
"""

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import conformance
import keras_conformance  # a user's configuration of Keras, which is read when that is imported
import numpy as np
from conformance import SIZES, Examiner, count_changes, infer, read_weights, train
from keras_conformance import compare_replicas, draw_weights, make_replicas, read_loss_scale

from bench.frameworks import tensorflow as framework_module  # chooses Keras's backend

# isort: split
import keras
import tensorflow as tf
import xla_traces
from google.protobuf import text_format  # type: ignore[import-untyped]
from tensorflow.python.eager import context
from tensorflow.tsl.profiler.protobuf.xplane_pb2 import XSpace

from bench.models.fused_norm import FusedBatchNormalization
from factories import make_cell

tf.config.experimental.enable_tensor_float_32_execution(True)
assert (keras.config.floatx(), keras.config.image_data_format()) == ("float16", "channels_first")

MODES = ("eager", "graph", "compiled")
TWO_DEVICES = ("CPU:0", "CPU:1")
SHAPE = (4, 5, 6, 8)
TOLERANCE = 1e-4  # float32, through the norms of a small model and three steps

framework = framework_module.load(make_cell(framework="tensorflow"), 1)
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)


def check_tf32_and_a_users_configuration_are_off_and_the_record_says_what_is(_: Examiner) -> None:
    types = (keras.config.floatx(), keras.config.image_data_format(), keras.config.dtype_policy().name)
    assert types == ("float32", "channels_last", "float32")
    assert (tf.config.experimental.tensor_float_32_execution_enabled(), framework.settings["tf32"]) == (False, False)
    threading = tf.config.threading
    threads = (threading.get_intra_op_parallelism_threads(), threading.get_inter_op_parallelism_threads())
    assert threads == (1, 1) == (framework.settings["intra_op_threads"], framework.settings["inter_op_threads"])
    assert framework.settings["optimizer"] == "Keras Adam"


def check_running_out_of_memory_is_told_from_other_errors(_: Examiner) -> None:
    # Made here: TensorFlow waits ten seconds for memory before it raises this one.
    assert framework.is_out_of_memory(tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor"))
    assert not framework.is_out_of_memory(tf.errors.InvalidArgumentError(None, None, "OOM"))
    assert not framework.is_out_of_memory(ValueError("OOM"))


def check_a_graph_is_traced_once_folds_neither_data_nor_weights_and_has_nothing_but_the_step(
    examiner: Examiner,
) -> None:
    for phase, num_gradients in (("train", 4), ("infer", 0)):
        workload = examiner.build(mode="graph", phase=phase)
        for _ in range(3):
            workload.run_step()
        concrete = workload._step.get_concrete_function(*workload.inputs)
        operations = concrete.graph.get_operations()
        types = [operation.type for operation in operations]
        assert workload._step.experimental_get_tracing_count() == 1
        assert [list(tensor.shape) for tensor in concrete.inputs[:2]] == [[4, 16, 16, 3], [4]]
        # The weights as variables; no tensor is captured.
        assert {tensor.dtype.name for tensor in concrete.captured_inputs} == {"resource"}
        constants = [operation.get_attr("value") for operation in operations if operation.type == "Const"]
        assert max(tf.make_ndarray(constant).size for constant in constants) < 100
        assert not concrete.function_def.attr["_XlaMustCompile"].b
        assert (types.count("Conv2D"), types.count("Conv2DBackpropFilter")) == (4, num_gradients)
        assert any("Backprop" in name or name.endswith("Grad") for name in types) == (phase == "train")
        # Adam assigns first moment, second moment and parameter of each of the 14 tensors, and counts its steps.
        assert sum(name.startswith("Assign") for name in types) == (3 * 14 + 1 if phase == "train" else 0)


def check_cyclegans_step_differentiates_no_more_than_it_needs(examiner: Examiner) -> None:
    """By hand: a generator of one block has 6 convolutions and 2 transposed ones, a discriminator 5 convolutions.

    A transposed convolution is computed as a gradient to images, and its gradient to images as a convolution.
    """
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
    generator_runs, judged_fakes, discriminator_runs = 6, 2, 4
    forward = generator_runs * 6 + (judged_fakes + discriminator_runs) * 5 + generator_runs * 2
    assert counts["Conv2D"] == forward
    # The generators' filters in all their runs, the discriminators' in part two alone.
    assert counts["Conv2DBackpropFilter"] == generator_runs * 8 + discriminator_runs * 5
    # To images: not of the four generators' first layers that see real images, nor past the fakes in part two.
    to_images = generator_runs * 2 + generator_runs * 6 - 4 + judged_fakes * 5 + discriminator_runs * 4
    assert counts["Conv2DBackpropInput"] == to_images


def check_xla_compiles_compiled_steps_once_with_products_of_the_precision_asked_for(examiner: Examiner) -> None:
    for precision, expected in (("fp32", "highest,highest"), ("tf32", "default")):
        tf.config.experimental.enable_tensor_float_32_execution(precision == "tf32")
        workload = examiner.build(mode="compiled", precision=precision)
        workload.run_step()
        concrete = workload._step.get_concrete_function(*workload.inputs)
        assert concrete.function_def.attr["_XlaMustCompile"].b
        assert workload._step.experimental_get_tracing_count() == 1
        program = workload._step.experimental_get_compiler_ir(*workload.inputs)(stage="hlo")
        products = [line for line in program.splitlines() if re.search(r"= \S+ (convolution|dot)\(", line)]
        precisions = [re.search(r"operand_precision={([\w,]+)}", line) for line in products]
        assert {match[1] if match else "default" for match in precisions} == {expected}
    tf.config.experimental.enable_tensor_float_32_execution(False)


def check_eager_steps_run_the_models_python_code_every_time_and_others_once(examiner: Examiner) -> None:
    for mode, expected in {"eager": [True] * 3, "graph": [False], "compiled": [False]}.items():
        workload = examiner.build(mode=mode, phase="infer")
        calls: list[bool] = []

        def watched(
            *arguments: Any, model: Any = workload.task.networks["model"], calls: Any = calls, **options: Any
        ) -> Any:
            calls.append(tf.executing_eagerly())
            return model(*arguments, **options)

        workload.task.networks["model"] = watched
        for _ in range(3):
            workload.run_step()
        assert calls == expected, mode


def make_workload(cell: Any, number: int) -> Any:
    return framework_module.TensorFlowWorkload(cell, TWO_DEVICES[:number], 1)


def check_two_replicas_train_and_infer_as_one_device_does(_: Examiner) -> None:
    for mode in MODES:
        compare_replicas(*make_replicas(make_workload, framework="tensorflow", mode=mode))
        outputs = []
        for workload in make_replicas(make_workload, framework="tensorflow", mode=mode, phase="infer"):
            workload.run_step()
            results = workload._strategy.experimental_local_results if workload._strategy else lambda output: (output,)
            outputs.append(np.concatenate([share.numpy() for share in results(workload._outputs[0])]))
        assert np.abs(outputs[0] - outputs[1]).max() < 1e-6


def check_an_overflow_in_the_second_replica_is_noticed(_: Examiner) -> None:
    for mode in ("eager", "graph"):
        _, workload = make_replicas(make_workload, framework="tensorflow", mode=mode, precision="fp16")
        shares = np.zeros((4, 16, 16, 3), np.float32)
        shares[2:] = np.inf
        before = read_weights(workload)
        workload.inputs = (workload._share(shares), workload.inputs[1])
        workload.run_step()
        assert (read_loss_scale(workload), count_changes(before, read_weights(workload))) == (2.0**15, 0), mode


def check_kernels_and_copies_of_traces_count(_: Examiner) -> None:
    def serialize(text: str) -> bytes:
        data: bytes = text_format.Parse(text, XSpace()).SerializeToString()
        return data

    def work() -> None:
        tf.matmul(tf.ones((64, 64)), tf.ones((64, 64))).numpy()

    xla_traces.examine(framework_module, serialize, tf.profiler.experimental.Profile, work)


# The modes `unfused` and `fused-norm`


def build_switched(mode: str, model: str, phase: str) -> tuple[framework_module.TensorFlow, Any]:
    """Return TensorFlow, set up for a small cell, and the cell's workload, its weights drawn by NumPy."""
    cell = make_cell(framework="tensorflow", mode=mode, model=model, phase=phase, **SIZES[model])
    switched = framework_module.load(cell, 1)
    workload = switched.build_workload(cell)
    draw_weights(workload)
    for variable in workload.task.networks["model"].trainable_variables:
        if variable.name == "gamma":
            variable.assign(10 * np.abs(variable))  # about 1: the output depends on every norm
    return switched, workload


def count_operations(workload: Any) -> Counter[str]:
    """Return how often each operation is in a step's graph when TensorFlow has optimised it."""
    ctx = context.context()
    ctx.enable_run_metadata()
    workload.run_step()
    workload.synchronize()
    graphs = ctx.export_run_metadata().function_graphs
    ctx.disable_run_metadata()
    return Counter(node.op for graph in graphs for node in graph.post_optimization_graph.node)


def check_a_graph_fuses_convolution_bias_and_activation_and_unfused_does_not_as_its_record_says(_: Examiner) -> None:
    framework, workload = build_switched("graph", "conv6", "infer")
    graph = count_operations(workload)
    assert (graph["_FusedConv2D"], graph["_FusedMatMul"], graph["Conv2D"]) == (4, 3, 0)
    switched, workload = build_switched("unfused", "conv6", "infer")
    unfused = count_operations(workload)
    assert [name for name in unfused if name.startswith("_Fused")] == []
    assert (unfused["Conv2D"], unfused["MatMul"], unfused["BiasAdd"], unfused["Relu"]) == (4, 3, 7, 6)
    assert (framework.settings["remapping"], switched.settings["remapping"]) == (True, False)


def check_keras_computes_a_batch_norm_from_several_operations_and_fused_norm_from_one(_: Examiner) -> None:
    graph, fused = (
        count_operations(build_switched(mode, "resnet18-cifar", "train")[1]) for mode in ("graph", "fused-norm")
    )
    assert (graph["Rsqrt"], graph["SquaredDifference"]) == (11, 11)
    assert [name for name in graph if "FusedBatchNorm" in name] == []
    assert fused["FusedBatchNormV3"] + fused["_FusedBatchNormEx"] == 11
    assert (fused["FusedBatchNormGradV3"], fused["Rsqrt"], fused["SquaredDifference"]) == (11, 0, 0)


def check_a_switch_changes_neither_losses_nor_outputs(examiner: Examiner) -> None:
    found = {}
    for mode in ("graph", "unfused", "fused-norm"):
        losses = train(build_switched(mode, "resnet18-cifar", "train")[1])
        found[mode] = (losses, infer(build_switched(mode, "resnet18-cifar", "infer")[1]).numpy())
    expected_losses, expected_output = found["graph"]
    assert len({loss for (loss,) in expected_losses}) == 3
    for mode in ("unfused", "fused-norm"):
        np.testing.assert_allclose(found[mode][0], expected_losses, rtol=TOLERANCE)
        assert measure_distance(found[mode][1], expected_output) < TOLERANCE


def measure_distance(found: Any, expected: Any) -> float:
    """Return the norm of the difference over the norm of what was expected."""
    return float(np.linalg.norm(np.subtract(found, expected)) / np.linalg.norm(expected))


def run_norm(make_layer: Callable[..., Any]) -> dict[str, Any]:
    """Return what a batch norm gives in inference and training, its gradients, and its moving averages."""
    generator = np.random.default_rng(1)
    layer = make_layer(momentum=0.9, epsilon=1e-5)
    layer.build(SHAPE)
    for variable in layer.variables:
        variable.assign(generator.uniform(0.5, 1.5, variable.shape))
    variance_before = layer.moving_variance.numpy()
    images, weights = (tf.constant(generator.normal(1, 2, SHAPE).astype("float32")) for _ in range(2))
    inferred = layer(images, training=False)
    with tf.GradientTape() as tape:
        tape.watch(images)
        trained = layer(images, training=True)
        loss = tf.reduce_sum(trained * trained * weights)
    gradients = tape.gradient(loss, [images, layer.gamma.value, layer.beta.value])
    names = ("inferred", "trained", "images", "gamma", "beta", "moving_mean", "moving_variance")
    tensors = (inferred, trained, *gradients, layer.moving_mean.value, layer.moving_variance.value)
    found = {name: tensor.numpy() for name, tensor in zip(names, tensors, strict=True)}
    return found | {"variance_before": variance_before}


def check_the_fused_norm_is_kerass_own_but_for_the_variance_of_n_minus_1_values_as_pytorchs(_: Examiner) -> None:
    expected, fused = run_norm(keras.layers.BatchNormalization), run_norm(FusedBatchNormalization)
    for name in ("inferred", "trained", "images", "gamma", "beta", "moving_mean"):
        assert measure_distance(fused[name], expected[name]) < 1e-6, name
    num_values, momentum = int(np.prod(SHAPE[:-1])), 0.9
    old = expected["variance_before"]
    batch = (expected["moving_variance"] - momentum * old) / (1 - momentum)
    of_n_minus_1 = momentum * old + (1 - momentum) * batch * num_values / (num_values - 1)
    np.testing.assert_allclose(fused["moving_variance"], of_n_minus_1, rtol=1e-5)


def check_the_fused_norm_keeps_images_in_half_precision(_: Examiner) -> None:
    for half in ("float16", "bfloat16"):
        for policy, statistics in ((half, half), (f"mixed_{half}", "float32")):
            keras.config.set_dtype_policy(policy)
            layer = FusedBatchNormalization(momentum=0.9, epsilon=1e-5)
            outputs = layer(np.ones(SHAPE), training=True)
            assert (outputs.dtype.name, layer.moving_mean.dtype) == (half, statistics)
    keras.config.set_dtype_policy("float32")


def trace_pool(pool: Any) -> Callable[[Any], Any]:
    exchange = tf.function(pool.exchange)
    return lambda images: exchange(tf.constant(images)).numpy()


if __name__ == "__main__":
    examiner = keras_conformance.make_examiner("tensorflow", MODES, framework.build_workload, trace_pool)
    conformance.run_checks(examiner, globals(), vars(conformance), vars(keras_conformance))
