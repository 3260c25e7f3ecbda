"""TensorFlow with Keras 3: a Cell in, a Workload for the harness out."""

import os
from collections.abc import Callable
from typing import Any

os.environ["KERAS_BACKEND"] = "tensorflow"
# Grow GPU memory as needed: otherwise TensorFlow takes the whole device and no peak can be read.
os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")

import keras  # noqa: E402  the backend is chosen when Keras is imported
import tensorflow as tf  # noqa: E402

from bench.catalog import MODELS  # noqa: E402
from bench.frameworks.interface import DeviceMissingError  # noqa: E402
from bench.frameworks.synthetic_data import make_batch  # noqa: E402
from bench.models import build_model  # noqa: E402
from bench.schema import Cell  # noqa: E402

GPU = "GPU:0"


def load(cell: Cell, num_threads: int) -> "TensorFlow":
    """Set TensorFlow's threads and precision and return it. DeviceMissingError where the GPU asked for is not there."""
    tf.config.threading.set_intra_op_parallelism_threads(num_threads)
    tf.config.threading.set_inter_op_parallelism_threads(num_threads)
    tf.config.experimental.enable_tensor_float_32_execution(False)
    # A user's ~/.keras/keras.json may say otherwise.
    keras.config.set_floatx("float32")
    keras.config.set_dtype_policy("float32")
    keras.config.set_image_data_format("channels_last")
    if cell.device == "gpu" and not tf.config.list_physical_devices("GPU"):
        raise DeviceMissingError(f"TensorFlow {tf.__version__} sees no GPU")
    return TensorFlow(on_gpu=cell.device == "gpu")


class TensorFlow:
    """TensorFlow, set up for one cell."""

    def __init__(self, *, on_gpu: bool) -> None:
        self._on_gpu = on_gpu
        build = tf.sysconfig.get_build_info()
        self.versions = {"tensorflow": tf.__version__, "keras": keras.__version__}
        self.cuda_version: str | None = build.get("cuda_version")
        self.cudnn_version: str | None = build.get("cudnn_version")
        self.settings: dict[str, str | int | bool] = {
            "intra_op_threads": tf.config.threading.get_intra_op_parallelism_threads(),
            "inter_op_threads": tf.config.threading.get_inter_op_parallelism_threads(),
            "tf32": tf.config.experimental.tensor_float_32_execution_enabled(),
            "xla": False,
            "memory_format": "channels last (NHWC)",
        }

    def build_workload(self, cell: Cell) -> "TensorFlowWorkload":
        """Return the cell's Keras model with Adam and a synthetic batch on its device."""
        return TensorFlowWorkload(cell)

    def read_peak_memory(self) -> tuple[int | None, int | None]:
        """Return the GPU allocator's peak in bytes since the last reset, the reserved one unknown; None on a CPU."""
        if not self._on_gpu:
            return None, None
        return int(tf.config.experimental.get_memory_info(GPU)["peak"]), None

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Whether TensorFlow's allocator gave up."""
        return isinstance(error, tf.errors.ResourceExhaustedError)


class TensorFlowWorkload:
    """One Keras model with its data on one device, stepped op by op or as one tf.function without XLA."""

    device_timer = None

    def __init__(self, cell: Cell) -> None:
        keras.utils.set_random_seed(cell.seed)
        self._on_gpu = cell.device == "gpu"
        with tf.device(GPU if self._on_gpu else "CPU:0"):
            images, labels = make_batch(cell)
            self.images = tf.constant(images.transpose(0, 2, 3, 1))
            self.labels = tf.constant(labels)
            self.model = build_model(cell, "keras")
            step = self._make_training_step(cell) if cell.phase == "train" else self._infer
        # jit_compile=False: XLA stays off. Keras's `fit` would switch it on for GPUs by itself.
        self._step = tf.function(step, jit_compile=False) if cell.mode == "graph" else step
        self.synchronize()

    def run_step(self) -> None:
        """Start one step. The data are arguments: a graph could fold what it captures into constants."""
        self._step(self.images, self.labels)

    def synchronize(self) -> None:
        """Wait for every device."""
        tf.test.experimental.sync_devices()

    def reset_peak_memory(self) -> None:
        """Start the GPU allocator's peak anew."""
        if self._on_gpu:
            tf.config.experimental.reset_memory_stats(GPU)

    def _make_training_step(self, cell: Cell) -> Callable[[Any, Any], Any]:
        # 1e-8 as in PyTorch (Keras's own default is 1e-7), though Keras adds it before the bias correction and PyTorch
        # after it: the updates differ where a gradient is below about 1e-6, the work does not.
        optimizer = keras.optimizers.Adam(MODELS[cell.model].learning_rate, epsilon=1e-8)
        optimizer.build(self.model.trainable_variables)
        loss_function = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

        def train(images: Any, labels: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = loss_function(labels, self.model(images, training=True))
            variables = self.model.trainable_variables
            optimizer.apply(tape.gradient(loss, variables), variables)
            return loss

        return train

    def _infer(self, images: Any, labels: Any) -> Any:
        return self.model(images, training=False)
