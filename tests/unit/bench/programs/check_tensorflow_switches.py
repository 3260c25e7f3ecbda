"""Print what TensorFlow's modes `unfused` and `fused-norm` change, as one JSON object on the last line of stdout."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from bench.frameworks import tensorflow as framework_module  # chooses Keras's backend

# isort: split
import keras
import numpy as np
import tensorflow as tf
from keras_answers import draw_weights, shrink_models
from tensorflow.python.eager import context

from bench.models import keras as definitions
from bench.models.fused_norm import FusedBatchNormalization
from factories import make_cell

SHAPE = (4, 5, 6, 8)
NUM_STEPS = 3
SIZES: dict[str, dict[str, Any]] = {
    "conv6": {"batch_size": 4, "input_size": 16, "num_classes": 10},
    "resnet18-cifar": {"batch_size": 4, "input_size": 16, "num_classes": 10},
}


def build(mode: str, model: str, phase: str) -> tuple[framework_module.TensorFlow, Any]:
    """Return TensorFlow, set up for a small cell, and the cell's workload, its weights drawn by NumPy."""
    cell = make_cell(framework="tensorflow", mode=mode, model=model, phase=phase, **SIZES[model])
    framework = framework_module.load(cell, 1)
    workload = framework.build_workload(cell)
    draw_weights(workload)
    for variable in workload.networks["model"].trainable_variables:
        if variable.name == "gamma":
            variable.assign(10 * np.abs(variable))  # about 1: the output depends on every norm
    return framework, workload


def count_operations(workload: Any) -> Counter[str]:
    """Return how often each operation is in a step's graph when TensorFlow has optimised it."""
    ctx = context.context()
    ctx.enable_run_metadata()
    workload.run_step()
    workload.synchronize()
    graphs = ctx.export_run_metadata().function_graphs
    ctx.disable_run_metadata()
    return Counter(node.op for graph in graphs for node in graph.post_optimization_graph.node)


def check_operations(mode: str, model: str, phase: str) -> dict[str, Any]:
    """Return the operations of a step's optimised graph, and what the record says of the remapper."""
    framework, workload = build(mode, model, phase)
    return {"operations": dict(count_operations(workload)), "remapping": framework.settings["remapping"]}


def train(mode: str) -> list[float]:
    """Return the losses of three steps of ResNet18 for CIFAR."""
    _, workload = build(mode, "resnet18-cifar", "train")
    losses = []
    for _ in range(NUM_STEPS):
        workload.run_step()
        losses.append(float(workload.losses[0]))
    return losses


def infer(mode: str) -> list[float]:
    """Return the logits of ResNet18 for CIFAR."""
    _, workload = build(mode, "resnet18-cifar", "infer")
    workload.run_step()
    logits: list[float] = workload._outputs[0].numpy().ravel().tolist()
    return logits


def run_layer(make_layer: Callable[..., Any]) -> dict[str, list[float]]:
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
    answers = {name: tensor.numpy().ravel().tolist() for name, tensor in zip(names, tensors, strict=True)}
    return answers | {"variance_before": variance_before.tolist()}


def check_halves() -> dict[str, list[str]]:
    """Return the types of output and averages of the fused norm under each policy of half precision."""
    found = {}
    for policy in ("float16", "bfloat16", "mixed_float16", "mixed_bfloat16"):
        keras.config.set_dtype_policy(policy)
        layer = FusedBatchNormalization(momentum=0.9, epsilon=1e-5)
        outputs = layer(np.ones(SHAPE), training=True)
        found[policy] = [outputs.dtype.name, layer.moving_mean.dtype]
    keras.config.set_dtype_policy("float32")
    return found


def main() -> None:
    """Print all answers."""
    shrink_models()
    models: Any = definitions
    models.RESNET18_BLOCKS = tuple(((w, 3, s), (w, 3, 1)) for w, s in ((8, 1), (8, 1), (16, 2), (16, 1)))
    answers = {
        "conv6": {mode: check_operations(mode, "conv6", "infer") for mode in ("graph", "unfused")},
        "resnet18": {mode: check_operations(mode, "resnet18-cifar", "train") for mode in ("graph", "fused-norm")},
        "training": {mode: train(mode) for mode in ("graph", "unfused", "fused-norm")},
        "inference": {mode: infer(mode) for mode in ("graph", "unfused", "fused-norm")},
        "layers": {"keras": run_layer(keras.layers.BatchNormalization), "fused": run_layer(FusedBatchNormalization)},
        "halves": check_halves(),
        "num_values": int(np.prod(SHAPE[:-1])),
    }
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
