"""Builds and steps workloads in JAX with Keras 3."""

import os
import re
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal

os.environ["KERAS_BACKEND"] = "jax"
# Take GPU memory as needed: otherwise JAX takes three quarters of the device, whatever the cell needs.
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"

import jax  # noqa: E402  after the switches that it reads when imported
import keras  # noqa: E402
import numpy as np  # noqa: E402
from jax.profiler import ProfileData  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec, Sharding, SingleDeviceSharding  # noqa: E402

from bench.data.feed import open_feed  # noqa: E402
from bench.frameworks.interface import DeviceMissingError, Framework, Settings  # noqa: E402
from bench.frameworks.xplane import TraceEvent, record_activities  # noqa: E402
from bench.measure.harness import Workload  # noqa: E402
from bench.measure.passes import NUM_ELEMENTS, OPERATIONS_PER_BURST, DeviceActivity, ProfilerName, spin_up  # noqa: E402
from bench.registry import MODELS  # noqa: E402
from bench.schema import Cell, CompiledPrograms, PrecisionError  # noqa: E402
from bench.tasks.keras import Part, build_task, cast_input, prepare_inputs, set_precision  # noqa: E402
from bench.tasks.precision import measure_precision_error  # noqa: E402

Options = Mapping[str, bool | int]
NO_OPTIONS: Options = {}
CALIBRATION_OPTIONS: Options = {"xla_gpu_enable_triton_gemm": False, "xla_gpu_autotune_level": 0}
"""XLA's options for the calibration's product on a GPU (`DebugOptions` of jaxlib 0.10.2; they may change with it). By
default XLA times its own kernels of many tilings against those of cuBLAS before the first product, which takes longer
than the whole calibration of the other frameworks. With these it takes the kernel that cuBLAS would choose."""
MAX_PARAMETERS = 3e9
"""Of models whose error is measured on a GPU: all weights are there in float64."""
Values = dict[int, Any]
"""Arrays by the id() of the Keras variable whose value they are."""


def load(cell: Cell, num_threads: int) -> "Jax":
    """Set JAX's threads and precision and return it. No client is started, and with it no context on a GPU.

    XLA reads the size of its CPU thread pools from NPROC when its client starts; there is no other switch.
    """
    os.environ["NPROC"] = str(num_threads)
    # XLA on GPUs computes float32 products and convolutions in TF32 by default. In half precision anything but
    # the default would only keep some of XLA's kernels out.
    matmul_precision = {"fp32": "highest", "tf32": "tensorfloat32"}.get(cell.precision, "default")
    jax.config.update("jax_default_matmul_precision", matmul_precision)
    # The first one is the default device. Keras does some of its work on the CPU.
    jax.config.update("jax_platforms", "cpu" if cell.device == "cpu" else "cuda,cpu")
    settings = {"matmul_precision": matmul_precision, "num_threads": num_threads, "xla": True, **set_precision(cell)}
    return Jax(num_threads, settings)


class Jax(Framework):
    """JAX, set up for one cell."""

    profiler_name: ProfilerName = "jax.profiler"

    def __init__(self, num_threads: int, settings: Settings) -> None:
        self._num_threads = num_threads
        self._devices: Sequence[jax.Device] = ()
        self._workload: Callable[[], JaxWorkload | None] = lambda: None
        self.versions = {"jax": jax.__version__, "jaxlib": version("jaxlib"), "keras": keras.__version__}
        # The client says which CUDA it runs on: known from the first workload on.
        self.cuda_version: str | None = None
        self.cudnn_version: str | None = None
        self.settings = settings
        self._events: Counter[str] = Counter()
        jax.monitoring.register_event_listener(lambda name, **_: self._events.update([name.rpartition("/")[2]]))

    def count_programs(self) -> CompiledPrograms:
        """Return them as far as a cache was asked: without one, JAX does not count what it compiles."""
        loaded, compiled = self._events["cache_hits"], self._events["cache_misses"]
        return CompiledPrograms(num_loaded=loaded, num_compiled=compiled if loaded + compiled else None)

    def build_product(self, cell: Cell) -> "JaxWorkload":
        return self.build_workload(cell, CALIBRATION_OPTIONS if cell.device == "gpu" else NO_OPTIONS)

    def build_workload(self, cell: Cell, options: Options = NO_OPTIONS) -> "JaxWorkload":
        self._devices = find_devices(cell)
        self.cuda_version = read_cuda_version(self._devices[0].client.platform_version)
        self.cudnn_version = read_cudnn_version() if self.cuda_version else None
        workload = JaxWorkload(cell, self._devices, self._num_threads, options)
        self._workload = weakref.ref(workload)  # only the caller's reference keeps its memory
        return workload

    def read_peak_memory(self) -> tuple[int | None, int | None]:
        """Return what a step needs by XLA's plan and what the allocator holds, in bytes on one GPU; None on a CPU.

        JAX cannot reset its allocators' peaks, which are those of building and of the search for the fastest kernels.
        What they hold they never give back, so that the largest pool is also the one of the timed window.
        """
        workload = self._workload()
        if workload is None or not self._devices or self._devices[0].platform != "gpu":
            return None, None
        stats = [device.memory_stats() for device in self._devices]
        reserved = [found["peak_pool_bytes"] for found in stats if found and "peak_pool_bytes" in found]
        return workload.plan_step_bytes(), max(reserved, default=None)

    def record_activities(self, run: Callable[[], None]) -> list[DeviceActivity]:
        return record_activities(run, trace, list_events)

    def measure_precision_error(self, cell: Cell) -> PrecisionError | None:
        from bench.tasks.jax_precision import build_pair  # imports the models, which belongs to no cell's import

        jax.config.update("jax_enable_x64", True)  # nothing is timed after it
        return measure_precision_error(cell, build_pair, MAX_PARAMETERS)

    def is_out_of_memory(self, error: BaseException) -> bool:
        return isinstance(error, jax.errors.JaxRuntimeError) and "RESOURCE_EXHAUSTED" in str(error)


class JaxWorkload(Workload):
    """One task with its inputs, each step one program that XLA compiled, its state in donated buffers.

    On several devices the batch is sharded and every variable replicated; XLA adds the communication. The program
    computes what one device would compute on the whole batch, batch norm over all of it included.
    """

    def __init__(self, cell: Cell, devices: Sequence[jax.Device], num_threads: int, options: Options) -> None:
        self._devices = devices
        self._replicated, self._split = make_shardings(devices)
        # Every initial value is a program of its own: hundreds, which XLA compiles faster for a CPU than for a GPU.
        with jax.default_device(jax.devices("cpu")[0]):
            keras.utils.set_random_seed(cell.seed)
            self.task = build_task(cell)
        self._variables = self.task.list_variables()
        self._state: tuple[Any, ...] | None = None
        self.feed = open_feed(cell, num_threads)
        self.inputs: tuple[Any, ...] = () if self.feed is not None else self._place(prepare_inputs(cell))
        self._outputs: tuple[Any, ...] = ()
        self._is_training = cell.phase == "train"
        self._changes_state = self._is_training or MODELS[cell.model].task == "text-generation"
        if self._changes_state:
            step = self._train if self._is_training else self._generate
            compile_step = partial(jax.jit, step, donate_argnums=0, out_shardings=self._replicated)
        else:
            compile_step = partial(jax.jit, self._infer)
        self._step = compile_step(compiler_options=dict(options))
        jax.block_until_ready((self._read_state(), self.inputs))

    def spin_up(self) -> None:
        gpus = [device for device in self._devices if device.platform == "gpu"]
        values = [jax.device_put(np.ones(NUM_ELEMENTS, dtype=np.float32), device) for device in gpus]

        def apply_sines(array: Any) -> Any:
            return jax.lax.fori_loop(0, OPERATIONS_PER_BURST, lambda _, value: jax.numpy.sin(value), array)

        program = jax.jit(apply_sines, donate_argnums=0)

        def run_burst() -> None:
            values[:] = map(program, values)
            jax.block_until_ready(values)

        if gpus:
            spin_up(run_burst)

    def run_step(self) -> None:
        """Start one step. The data are arguments: a program could fold what it captures into constants."""
        self._outputs = ()  # the last step's outputs need not stay in memory beside the new ones
        if self.feed is not None:
            self.inputs = self._place(next(self.feed))
        state = self._state or self._read_state()
        if self._changes_state:
            self._state, self._outputs = self._step(state, *self.inputs)
        else:
            self._outputs = self._step(state, *self.inputs)

    def synchronize(self) -> None:
        """Wait for the last step's output.

        All that a program of XLA returns is ready at once, when it has ended: asking for the state's hundreds of arrays
        as well would only cost time, 20 us for 200.
        """
        jax.block_until_ready(self._outputs)

    def plan_step_bytes(self) -> int | None:
        """Return the bytes that one step takes on each device by XLA's plan for it; None where XLA does not tell.

        They are the arguments (weights, the optimiser's state, inputs), the temporary buffers (gradients, activations,
        workspaces of the libraries) and the outputs, except those that take over the memory of a donated argument. The
        program is the one that the steps run: it is not compiled again. With real data, the batch that is being copied
        comes on top.
        """
        state = self._state or self._read_state()
        plan = self._step.lower(state, *self.inputs).compile().memory_analysis()
        if plan is None:
            return None
        outputs = plan.output_size_in_bytes - plan.alias_size_in_bytes
        return int(plan.argument_size_in_bytes + plan.temp_size_in_bytes + outputs)

    def is_compiled(self) -> bool:
        return int(self._step._cache_size()) > 0

    def device_kind(self) -> Literal["cpu", "gpu"]:
        (platform,) = {device.platform for device in self._outputs[0].devices()}
        return "gpu" if platform == "gpu" else "cpu"

    def _place(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(cast_input(jax.device_put(np.asarray(array), self._split)) for array in arrays)

    def _read_state(self) -> tuple[Any, ...]:
        """Take the variables' values over: the next training step donates them."""
        # A weak type, which an initial value may have, would be lost in the first step and so have the second compiled.
        values = (jax.numpy.asarray(variable.value, variable.dtype) for variable in self._variables)
        self._state = tuple(jax.device_put(value, self._replicated) for value in values)
        return self._state

    def _infer(self, state: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
        with keras.StatelessScope(list(zip(self._variables, state, strict=True))):
            return (self.task.infer(*inputs),)

    def _generate(self, state: tuple[Any, ...], *inputs: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return the state with keys and values of the new positions, which are written in place, and the logits."""
        with keras.StatelessScope(list(zip(self._variables, state, strict=True))) as scope:
            logits = self.task.infer(*inputs)
        return tuple(scope.get_current_value(variable) for variable in self._variables), (logits,)

    def _train(self, state: tuple[Any, ...], *inputs: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        values = pair(self._variables, state)
        losses: list[Any] = []
        handed_on: tuple[Any, ...] = ()
        for part in self.task.parts:
            loss, handed_on = self._update(part, values, (*inputs, *handed_on))
            losses.append(loss)
        return tuple(values[id(variable)] for variable in self._variables), tuple(losses)

    def _update(self, part: Part, values: Values, tensors: tuple[Any, ...]) -> tuple[Any, Any]:
        """Return the loss of a part and what it hands on; the new values of all variables enter `values`."""
        trainable, optimizer = part.trainable, part.optimizer

        def compute(trainable_values: list[Any]) -> tuple[Any, Any]:
            now = values | pair(trainable, trainable_values)
            mapping = [(variable, now[id(variable)]) for variable in self._variables]
            with keras.StatelessScope(mapping) as scope:
                loss, handed_on = part.compute_loss(*tensors)
                target = optimizer.scale_loss(loss)
            return target, (loss, handed_on, [scope.get_current_value(variable) for variable in self._variables])

        before = [values[id(variable)] for variable in trainable]
        gradients, (loss, handed_on, after) = jax.grad(compute, has_aux=True)(before)
        values |= pair(self._variables, after)
        state = [values[id(variable)] for variable in optimizer.variables]
        new_values, new_state = optimizer.stateless_apply(state, gradients, before)
        values |= pair(trainable, new_values) | pair(optimizer.variables, new_state)
        return loss, handed_on


def pair(variables: Sequence[keras.Variable], values: Sequence[Any]) -> Values:
    return dict(zip(map(id, variables), values, strict=True))


def find_devices(cell: Cell) -> list[jax.Device]:
    """Return the devices of the cell, `num_gpus` of its kind; DeviceMissingError where there are fewer.

    The first call starts JAX's clients, which make a context on every GPU that they see.
    """
    try:
        devices = [device for device in jax.devices() if device.platform == cell.device]
    except RuntimeError as error:  # of the plugin for CUDA, which is missing or finds no GPU
        reason = str(error).splitlines()[0]
        raise DeviceMissingError(f"JAX {jax.__version__} sees no GPU: {reason}") from error
    if len(devices) < cell.num_gpus:
        raise DeviceMissingError(f"JAX {jax.__version__} sees {len(devices)} GPUs, the cell asks for {cell.num_gpus}")
    return devices[: cell.num_gpus]


def make_shardings(devices: Sequence[jax.Device]) -> tuple[Sharding, Sharding]:
    if len(devices) == 1:
        sharding = SingleDeviceSharding(devices[0])
        return sharding, sharding
    mesh = Mesh(np.array(devices), ("batch",))
    return NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("batch"))


def read_cuda_version(platform_version: str) -> str | None:
    """Return the CUDA version that XLA's client states ("... cuda 12090" is 12.9); None for a CPU."""
    match = re.search(r"cuda (\d+)", platform_version)
    return f"{int(match[1]) // 1000}.{int(match[1]) % 1000 // 10}" if match else None


def read_cudnn_version() -> str | None:
    for package in ("nvidia-cudnn-cu12", "nvidia-cudnn-cu13"):
        with suppress(PackageNotFoundError):
            return version(package)
    return None


def trace(folder: str) -> Any:
    options = jax.profiler.ProfileOptions()
    options.host_tracer_level = options.python_tracer_level = 0
    options.enable_hlo_proto = False  # the programs themselves, megabytes
    return jax.profiler.trace(folder, profiler_options=options)


def list_events(data: bytes) -> Iterator[TraceEvent]:
    for plane in ProfileData.from_serialized_xspace(data).planes:
        for line in plane.lines:
            for event in line.events:
                statistics = frozenset(name for name, _ in event.stats)
                yield plane.name, line.name, statistics, event.start_ns, event.duration_ns
