"""Builds and steps workloads in TensorFlow with Keras 3."""

import os
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Literal

os.environ["KERAS_BACKEND"] = "tensorflow"
# Grow GPU memory as needed: otherwise TensorFlow takes the whole device and no peak can be read.
os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")

import keras  # noqa: E402  the backend is chosen when Keras is imported
import tensorflow as tf  # noqa: E402
from tensorflow.tsl.profiler.protobuf.xplane_pb2 import XSpace  # noqa: E402
from tensorflow.types.experimental import PolymorphicFunction  # noqa: E402

from bench.data.feed import open_feed  # noqa: E402
from bench.frameworks.interface import DeviceMissingError, Framework, Settings  # noqa: E402
from bench.frameworks.xplane import TraceEvent, record_activities  # noqa: E402
from bench.measure.harness import Workload  # noqa: E402
from bench.measure.passes import NUM_ELEMENTS, OPERATIONS_PER_BURST, DeviceActivity, ProfilerName, spin_up  # noqa: E402
from bench.schema import Cell  # noqa: E402
from bench.tasks.keras import Part, build_task, cast_input, prepare_inputs, set_precision  # noqa: E402


def load(cell: Cell, num_threads: int) -> "TensorFlow":
    """Set TensorFlow's threads and precision and return it. DeviceMissingError where GPUs asked for are not there."""
    tf.config.threading.set_intra_op_parallelism_threads(num_threads)
    tf.config.threading.set_inter_op_parallelism_threads(num_threads)
    # XLA obeys it too: it hands its matrix products and convolutions the precision HIGHEST where TF32 is off. In
    # half precision that would only keep some of XLA's kernels out.
    tf.config.experimental.enable_tensor_float_32_execution(cell.precision != "fp32")
    # The remapper rewrites convolution or product, bias and activation as one operation. On by default.
    tf.config.optimizer.set_experimental_options({"remapping": cell.mode != "unfused"})
    kind = cell.device.upper()
    num_seen = len(tf.config.list_physical_devices(kind))
    if num_seen < cell.num_gpus:
        raise DeviceMissingError(f"TensorFlow {tf.__version__} sees {num_seen} GPUs, the cell asks for {cell.num_gpus}")
    devices = tuple(f"{kind}:{index}" for index in range(cell.num_gpus))
    return TensorFlow(cell, devices, num_threads, set_precision(cell))


class TensorFlow(Framework):
    """TensorFlow, set up for one cell on `devices` ("CPU:0", or "GPU:0" and on)."""

    profiler_name: ProfilerName = "tf.profiler"

    def __init__(self, cell: Cell, devices: Sequence[str], num_threads: int, precision: Settings) -> None:
        self._devices = devices
        self._num_threads = num_threads
        build = tf.sysconfig.get_build_info()
        self.versions = {"tensorflow": tf.__version__, "keras": keras.__version__}
        self.cuda_version: str | None = build.get("cuda_version")
        self.cudnn_version: str | None = build.get("cudnn_version")
        self.settings: Settings = {
            "intra_op_threads": tf.config.threading.get_intra_op_parallelism_threads(),
            "inter_op_threads": tf.config.threading.get_inter_op_parallelism_threads(),
            "tf32": tf.config.experimental.tensor_float_32_execution_enabled(),
            "xla": cell.mode == "compiled",
            "remapping": cell.mode != "unfused",
            **precision,
        }

    def build_workload(self, cell: Cell) -> "TensorFlowWorkload":
        return TensorFlowWorkload(cell, self._devices, self._num_threads)

    def read_peak_memory(self) -> tuple[int | None, int | None]:
        """Return the peak of the allocator (bytes) on the fullest GPU since the last reset, and None; None on a CPU."""
        if not is_gpu(self._devices[0]):
            return None, None
        return max(int(tf.config.experimental.get_memory_info(device)["peak"]) for device in self._devices), None

    def record_activities(self, run: Callable[[], None]) -> list[DeviceActivity]:
        return record_activities(run, trace, list_events)

    def is_out_of_memory(self, error: BaseException) -> bool:
        return isinstance(error, tf.errors.ResourceExhaustedError)


class TensorFlowWorkload(Workload):
    """One task with its inputs, stepped op by op, as one tf.function without XLA, or as one that XLA compiles.

    On one device, or data-parallel on several with tf.distribute.MirroredStrategy: each replica takes its share of the
    batch, the optimisers sum up the gradients. XLA compiles programs for one device: of several, losses and gradients
    are compiled, the exchange of the gradients and the update are TensorFlow's graph. Batch norm and image pools are
    each replica's own.
    """

    def __init__(self, cell: Cell, devices: Sequence[str], num_threads: int) -> None:
        keras.utils.set_random_seed(cell.seed)
        self._devices = devices
        self._strategy = make_strategy(tuple(devices)) if len(devices) > 1 else None
        with tf.device(devices[0]) if self._strategy is None else self._strategy.scope():
            self.task = build_task(cell)
        self._step = self._make_step(cell)
        self.feed = open_feed(cell, num_threads)
        self.inputs: tuple[Any, ...] = () if self.feed is not None else self._place(prepare_inputs(cell))
        self._outputs: tuple[Any, ...] = ()
        self.synchronize()

    def spin_up(self) -> None:
        values = {}
        for device in filter(is_gpu, self._devices):
            with tf.device(device):
                values[device] = tf.ones(NUM_ELEMENTS)

        def run_burst() -> None:
            for device in values:
                with tf.device(device):
                    for _ in range(OPERATIONS_PER_BURST):
                        values[device] = tf.sin(values[device])
            self.synchronize()

        if values:
            spin_up(run_burst)

    def run_step(self) -> None:
        """Start one step. Its data are arguments of its graph, which could fold what it captures into constants."""
        self._outputs = ()  # the last step's outputs need not stay in memory beside the new ones
        if self.feed is not None:
            self.inputs = self._place(next(self.feed))
        self._outputs = self._step(*self.inputs)

    def synchronize(self) -> None:
        tf.test.experimental.sync_devices()

    def reset_peak_memory(self) -> None:
        for device in filter(is_gpu, self._devices):
            tf.config.experimental.reset_memory_stats(device)

    def is_compiled(self) -> bool:
        return isinstance(self._step, PolymorphicFunction) and self._step.experimental_get_tracing_count() > 0

    def device_kind(self) -> Literal["cpu", "gpu"]:
        output = self._outputs[0]
        if self._strategy is not None:
            output = self._strategy.experimental_local_results(output)[0]
        return "gpu" if is_gpu(output.backing_device) else "cpu"

    def _place(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """Copy arrays from the host to the device, or an equal share of each to every device; return the copies."""
        if self._strategy is None:
            with tf.device(self._devices[0]):
                return tuple(cast_input(tf.identity(array)) for array in arrays)
        return tuple(self._share(array) for array in arrays)

    def _share(self, array: Any) -> Any:
        assert self._strategy is not None
        size = len(array) // len(self._devices)

        def take_share(context: Any) -> Any:
            start = context.replica_id_in_sync_group * size
            with tf.device(self._devices[context.replica_id_in_sync_group]):
                return cast_input(tf.identity(array[start : start + size]))

        return self._strategy.experimental_distribute_values_from_function(take_share)

    def _make_step(self, cell: Cell) -> Callable[..., tuple[Any, ...]]:
        is_compiled = cell.mode == "compiled"
        step = self._make_training_step(cell) if cell.phase == "train" else self._make_inference_step(cell)
        strategy: Any = self._strategy

        def run_replicas(*inputs: Any) -> tuple[Any, ...]:
            outputs: tuple[Any, ...] = strategy.run(step, args=inputs)
            return outputs

        function = run_replicas if strategy else step
        if cell.mode != "eager":
            # jit_compile=False: XLA stays off. Keras's `fit` would switch it on for GPUs by itself.
            function = tf.function(function, jit_compile=is_compiled and not strategy)
        return function

    def _make_training_step(self, cell: Cell) -> Callable[..., tuple[Any, ...]]:
        differentiate = [make_differentiation(part, len(self._devices)) for part in self.task.parts]
        if cell.mode == "compiled" and self._strategy is not None:
            differentiate = [tf.function(function, jit_compile=True) for function in differentiate]
        spread_overflow = cell.precision == "fp16" and self._strategy is not None

        def train(*inputs: Any) -> tuple[Any, ...]:
            losses: list[Any] = []
            handed_on: tuple[Any, ...] = ()
            for part, function in zip(self.task.parts, differentiate, strict=True):
                loss, gradients, handed_on = function(*inputs, *handed_on)
                part.optimizer.apply(spread_nan(gradients) if spread_overflow else gradients, part.trainable)
                losses.append(loss)
            return tuple(losses)

        return train

    def _make_inference_step(self, cell: Cell) -> Callable[..., tuple[Any, ...]]:
        function: Callable[..., Any] = self.task.infer
        if cell.mode == "compiled" and self._strategy is not None:
            function = tf.function(function, jit_compile=True)

        def infer(*inputs: Any) -> tuple[Any, ...]:
            return (function(*inputs),)

        return infer


@cache
def make_strategy(devices: tuple[str, ...]) -> Any:
    """Return the process's one strategy for these devices: a second one would reuse the first one's collectives."""
    return tf.distribute.MirroredStrategy(devices)


def make_differentiation(part: Part, num_replicas: int) -> Callable[..., tuple[Any, Any, Any]]:
    """Return a function of a part's tensors that returns its loss, the gradients, and the tensors for the next part.

    The gradients are those of the loss over the number of replicas, for Keras's optimisers sum up what the replicas
    found; in fp16 they are scaled.
    """
    variables = [variable.value for variable in part.trainable]

    def differentiate(*tensors: Any) -> tuple[Any, Any, Any]:
        # Only what this part trains is watched: other networks in the loss take no gradients.
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(variables)
            loss, handed_on = part.compute_loss(*tensors)
            target = part.optimizer.scale_loss(loss / num_replicas)
        # Dense, as in PyTorch: TensorFlow's gradients of embeddings are sparse.
        return loss, [tf.convert_to_tensor(gradient) for gradient in tape.gradient(target, variables)], handed_on

    return differentiate


def spread_nan(gradients: Sequence[Any]) -> list[Any]:
    """Return a replica's gradients, the first one NaN if the gradients of any replica are not finite.

    Keras's loss scaling looks at those of the first replica only and would apply another one's overflow.
    """
    is_finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(gradient)) for gradient in gradients])
    own = tf.where(is_finite, 0.0, 1.0)
    num_overflows = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, own)
    spread = tf.where(num_overflows > 0, float("nan"), 0.0)
    return [gradients[0] + tf.cast(spread, gradients[0].dtype), *gradients[1:]]


def is_gpu(device: str) -> bool:
    return "GPU:" in device


PICOSECONDS = 1_000  # in a nanosecond


def trace(folder: str) -> Any:
    options = tf.profiler.experimental.ProfilerOptions(
        host_tracer_level=0, python_tracer_level=0, device_tracer_level=1
    )
    return tf.profiler.experimental.Profile(folder, options)


def list_events(data: bytes) -> Iterator[TraceEvent]:
    """Yield the events of a trace; RuntimeError where a GPU has none, with what the tracer says of the reason."""
    trace = XSpace.FromString(data)
    has_events = any(line.events for plane in trace.planes if is_gpu(plane.name) for line in plane.lines)
    if trace.errors and not has_events:
        raise RuntimeError("; ".join(trace.errors))
    for plane in trace.planes:
        names = plane.stat_metadata
        for line in plane.lines:
            for event in line.events:
                statistics = frozenset(names[stat.metadata_id].name for stat in event.stats)
                start_ns = line.timestamp_ns + event.offset_ps / PICOSECONDS
                yield plane.name, line.name, statistics, start_ns, event.duration_ps / PICOSECONDS
