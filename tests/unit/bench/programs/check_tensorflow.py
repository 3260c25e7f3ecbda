"""What TensorFlow does with a cell: nothing in, answers as one JSON object on the last line of stdout out.

Started with TF32 switched on and with a Keras configuration that asks for float16 and channels first, so that only
switching them off explains that they are off.
"""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

CONFIGURATION = {"backend": "tensorflow", "floatx": "float16", "image_data_format": "channels_first"}
keras_home = tempfile.TemporaryDirectory()
os.environ["KERAS_HOME"] = keras_home.name
(Path(keras_home.name) / "keras.json").write_text(json.dumps(CONFIGURATION))

import numpy as np  # noqa: E402

from bench.frameworks import tensorflow as framework_module  # noqa: E402
from bench.frameworks.synthetic_data import make_batch  # noqa: E402
from bench.models import build_model  # noqa: E402
from factories import make_cell  # noqa: E402

keras = framework_module.keras
tf = framework_module.tf
tf.config.experimental.enable_tensor_float_32_execution(True)
asked_for = [keras.config.floatx(), keras.config.image_data_format()]

NUM_TRAINING_STEPS = 12


def count_parameters(model: str, input_size: int, num_classes: int) -> list[int]:
    """Return the numbers of trainable and of other weights."""
    built = build_model(make_cell(model=model, input_size=input_size, num_classes=num_classes), "keras")
    counts = (sum(int(np.prod(weight.shape)) for weight in weights) for weights in split_weights(built))
    return list(counts)


def split_weights(model: Any) -> tuple[list[Any], list[Any]]:
    """Return the trainable weights and the others."""
    return model.trainable_weights, model.non_trainable_weights


def watch_calls(workload: Any) -> list[bool]:
    """Have every run of the model's Python body noted: whether it was executed eagerly."""
    calls: list[bool] = []
    model = workload.model

    class Watched:
        def __call__(self, *arguments: Any, **keywords: Any) -> Any:
            calls.append(tf.executing_eagerly())
            return model(*arguments, **keywords)

        def __getattr__(self, name: str) -> Any:
            return getattr(model, name)

    workload.model = Watched()
    return calls


def check_training(mode: str) -> dict[str, Any]:
    """Train Conv6 on its one batch; say what became of weights and loss, and how the step was executed."""
    workload = framework_module.TensorFlowWorkload(make_cell(framework="tensorflow", mode=mode, batch_size=8))
    calls = watch_calls(workload)
    step_function = workload._step
    losses: list[float] = []
    workload._step = lambda images, labels: losses.append(float(step_function(images, labels)))
    before = [weight.numpy() for weight in workload.model.weights]
    for _ in range(NUM_TRAINING_STEPS):
        workload.run_step()
    after = [weight.numpy() for weight in workload.model.weights]
    return {
        "losses": losses,
        "num_unchanged": sum(np.array_equal(one, other) for one, other in zip(before, after, strict=True)),
        "dtypes": sorted({str(weight.dtype) for weight in after}),
        "calls": calls,
        "graph": describe_graph(step_function, workload) if mode == "graph" else None,
    }


def describe_graph(step_function: Any, workload: Any) -> dict[str, Any]:
    """Say what the one graph of a step is made of."""
    concrete = step_function.get_concrete_function(workload.images, workload.labels)
    operations = concrete.graph.get_operations()
    types = [operation.type for operation in operations]
    constants = [operation.get_attr("value") for operation in operations if operation.type == "Const"]
    return {
        "num_traces": step_function.experimental_get_tracing_count(),
        "input_shapes": [list(tensor.shape) for tensor in concrete.inputs[:2]],
        "captured_dtypes": sorted({tensor.dtype.name for tensor in concrete.captured_inputs}),
        "largest_constant": max(tf.make_ndarray(constant).size for constant in constants),
        "must_compile": bool(concrete.function_def.attr["_XlaMustCompile"].b),
        "num_filter_gradients": types.count("Conv2DBackpropFilter"),
        "num_gradients": sum("Backprop" in name or name.endswith("Grad") for name in types),
        "num_assignments": sum(name.startswith("Assign") for name in types),
        "num_convolutions": types.count("Conv2D"),
    }


def check_inference(mode: str) -> dict[str, Any]:
    """Infer with ResNet18; say whether anything was changed, and how the step was executed."""
    cell = make_cell(model="resnet18", framework="tensorflow", mode=mode, phase="infer", batch_size=2, input_size=64)
    workload = framework_module.TensorFlowWorkload(cell)
    calls = watch_calls(workload)
    before = [weight.numpy() for weight in workload.model.weights]
    for _ in range(3):
        workload.run_step()
    after = [weight.numpy() for weight in workload.model.weights]
    return {
        "num_changed": sum(not np.array_equal(one, other) for one, other in zip(before, after, strict=True)),
        "num_weights": len(after),
        "output_shape": list(workload._step(workload.images, workload.labels).shape),
        "calls": calls,
        "graph": describe_graph(workload._step, workload) if mode == "graph" else None,
    }


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
    framework = framework_module.load(make_cell(framework="tensorflow"), 1)
    images, labels = make_batch(make_cell(batch_size=3, seed=11))
    cells = [make_cell(framework="tensorflow", batch_size=1, seed=seed) for seed in (5, 5, 6)]
    weights = [framework_module.TensorFlowWorkload(cell).model.weights[0] for cell in cells]
    answers = {
        "asked_for": asked_for,
        "keras": [keras.config.floatx(), keras.config.image_data_format(), keras.config.dtype_policy().name],
        "parameters": {
            "conv6 32 10": count_parameters("conv6", 32, 10),
            "conv6 224 10": count_parameters("conv6", 224, 10),
            "resnet18 224 1000": count_parameters("resnet18", 224, 1000),
            "resnet18 224 10": count_parameters("resnet18", 224, 10),
        },
        "settings": framework.settings,
        "versions": framework.versions,
        "tf32": tf.config.experimental.tensor_float_32_execution_enabled(),
        "threads": [
            tf.config.threading.get_intra_op_parallelism_threads(),
            tf.config.threading.get_inter_op_parallelism_threads(),
        ],
        "peak_memory": framework.read_peak_memory(),
        "training": {mode: check_training(mode) for mode in ("eager", "graph")},
        "inference": {mode: check_inference(mode) for mode in ("eager", "graph")},
        "out_of_memory": check_out_of_memory(framework),
        "batch": [images.tobytes().hex()[:64], float(np.float64(images).sum()), labels.tolist()],
        "seeded_alike": [np.array_equal(weights[0], other) for other in weights[1:]],
    }
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
