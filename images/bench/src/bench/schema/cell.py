"""Cell: one combination of axis values; what to measure and how."""

import json
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from bench.registry import (
    EIGHT_BITS,
    FRAMEWORKS,
    MAX_INPUT_SIZE,
    MODELS,
    Device,
    Framework,
    FrameworkSpec,
    Mode,
    ModelSpec,
    Phase,
    Precision,
)
from bench.schema.document import (
    SCHEMA_VERSION,
    CheckedDocument,
    Count,
    Document,
    PlanDocument,
    PositiveSeconds,
    Seconds,
    Version,
    describe_error,
    hash_text,
)

Sharing = Literal["time-slicing", "mps", "mig"]

WHOLE_DEVICE: Sharing = "time-slicing"
"""The value of `sharing` that, with one tenant, stands for a device that nobody shares."""
MAX_TENANTS = 64
# Fields that cells got after version 2 was first published. At its default such a field is no part of the canonical
# JSON: cells that were planned before have the id that they had (docs/decisions/0008).
LATER_FIELDS = ("num_profiled_steps", "pipelined_seconds", "sustain_seconds", "tenants", "sharing", "neighbour")


def is_device_shared(tenants: int, sharing: str) -> bool:
    """Say whether so many tenants share a device, or one has it under MPS or a slice of it.

    One tenant under MPS counts: it shows what MPS itself costs, and is no measurement of the plain device.
    """
    return bool(tenants > 1 or sharing != WHOLE_DEVICE)


class Neighbour(Document):
    """What tenants 1, 2, ... run beside tenant 0: the fields in which their cell may differ from its cell."""

    model: str
    """A name in `bench.registry.MODELS`."""
    phase: Phase
    batch_size: Count
    precision: Precision
    mode: Mode
    input_size: Annotated[int, Field(ge=2, le=MAX_INPUT_SIZE)]
    num_classes: Annotated[int, Field(ge=2, le=10**7)] | None


class Cell(CheckedDocument, PlanDocument):
    """Says what to measure and how: one value on each axis. Equal cells have equal `cell_id` on every machine."""

    schema_version: Version = SCHEMA_VERSION
    model: str
    """A name in `bench.registry.MODELS`."""
    framework: Framework
    device: Device
    """`cpu`, or `gpu`: NVIDIA GPUs, `num_gpus` of them."""
    phase: Phase
    """`train`: forward, backward and one update of every optimiser. `infer`: one forward pass without gradients.
    `prefill`: a prompt of `input_size` tokens for each sequence, into an empty cache. `decode`: one token for each
    sequence, behind `input_size` - 1 in the cache. Both end with the logits of the next token."""
    precision: Precision = "fp32"
    """`fp32`: true float32, TF32 switched off. `tf32`: float32 with TF32 matrix products and convolutions. `fp16`,
    `bf16`: mixed precision for training (fp16 with dynamic loss scaling), half-precision weights for inference. `fp8`,
    `int8-weights`: of a language model, bf16 but for weights of eight bits with a scale for each row: float8
    (e4m3) multiplied by activations of that type, or int8 widened before it is multiplied."""
    mode: Mode = "eager"
    """`eager`: op by op. `graph`: tf.function without XLA (TensorFlow only). `unfused`: `graph` with the remapper
    switched off, which rewrites convolution or product, bias and activation as one operation. `fused-norm`: `graph`
    with each batch norm as TensorFlow's one operation instead of Keras's several (models with batch norms only).
    `compiled`: the best that the framework offers in ordinary use: torch.compile and one CUDA graph; tf.function with
    XLA; jax.jit with donated buffers."""
    num_gpus: Annotated[int, Field(ge=1, le=64)] = 1
    """GPUs of one machine that share the batch of a step (data parallelism). 1 where `device` is `cpu`."""
    batch_size: Count
    """Samples of one step, over all GPUs: the global batch."""
    input_size: Annotated[int, Field(ge=2, le=MAX_INPUT_SIZE)]
    """Height and width of an image in pixels, tokens of a text or of a language model's context, rows and columns of a
    matrix."""
    num_classes: Annotated[int, Field(ge=2, le=10**7)] | None
    """Width of a classifier's last layer; null for models without classes."""
    data_dir: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    """Folder with real data, read through the framework's own input pipeline in every step. null: synthetic data,
    resident on the device."""
    num_warmup_steps: Count = 6
    """Steps before the clock, the first one not counted, at the least; more follow until the series is steady."""
    max_warmup_seconds: PositiveSeconds = 30.0
    """When the warm-up ends even though the series is not steady, unless `num_warmup_steps` take longer."""
    num_steps: Count = 30
    """Timed steps, at the least."""
    min_seconds: Seconds = 2.0
    """Length of the timed window, at the least: more steps than `num_steps` are taken until it is reached."""
    sampling_seconds: Seconds = 3.0
    """Length of the pass after the timed window, in which a GPU's clocks, power, energy and memory are sampled, at the
    least. 0: no such pass, no error of a precision, and on a CPU no matrix products before and after the window. A
    CPU's counters need no pass."""
    num_profiled_steps: Annotated[int, Field(ge=0, le=100)] = 5
    """Steps of the pass after that one, under the framework's profiler, which shows how long kernels keep a GPU busy.
    0: no such pass. A CPU has none. Five: equal steps have equal kernels, and a training step can have ten thousand,
    each an event to be kept and read."""
    pipelined_seconds: Seconds = 1.0
    """Length of a second window, on a GPU, in which steps are not synchronised one by one; its number of steps is set
    beforehand from the timed window. 0: none. On a CPU there is none."""
    sustain_seconds: Seconds = 0.0
    """How long the steps run on after the sampling pass, at the most, until their speed is flat. 0: not at all."""
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    """Seed of the weights and of the synthetic data."""
    tenants: Annotated[int, Field(ge=1, le=MAX_TENANTS)] = 1
    """Processes that use the cell's device at the same time, each with a model of its own: one GPU or slices of one, or
    the cores of the machine. 1: alone. Of several, only a window common to all of them is measured: no pipelined steps,
    no sampling and no profiler pass."""
    sharing: Sharing = "time-slicing"
    """What the tenants of a GPU share it by. `time-slicing`: the driver gives each process the whole GPU in turns, as
    it does without any setting. `mps`: NVIDIA's Multi-Process Service, which lets kernels of several processes run at
    once. `mig`: a slice of the GPU for each. With one tenant, what it is to be alone under MPS or on a slice. On a CPU
    always `time-slicing`."""
    neighbour: Neighbour | None = None
    """What tenants 1, 2, ... run; None: what tenant 0 runs."""

    def find_contradictions(self) -> Iterator[str]:
        if self.model not in MODELS:
            yield f"model: '{self.model}' is unknown; known are {', '.join(MODELS)}"
        yield from self._find_odd_framework(FRAMEWORKS[self.framework])
        yield from self._find_odd_model(MODELS[self.model])
        yield from self._find_limits(MODELS[self.model])
        if self.device == "cpu" and self.num_gpus != 1:
            yield "num_gpus: is 1 where device is 'cpu'"
        if self.batch_size % self.num_gpus:
            yield f"batch_size: {self.batch_size} cannot be shared evenly by {self.num_gpus} GPUs"
        if self.device == "cpu" and self.sharing != "time-slicing":
            yield f"sharing: '{self.sharing}' is for GPUs; leave it out where device is 'cpu'"
        if self.num_gpus != 1 and self.is_shared:
            yield "num_gpus: is 1 where a GPU is shared: tenants have one GPU between them"
        if self.tenants > 1 and self.sustain_seconds:
            yield "sustain_seconds: steps of several tenants do not run on after their window; give 0"
        if self.neighbour is not None and self.tenants == 1:
            yield "neighbour: takes 2 tenants or more, and the cell has 1"
        if self.neighbour is not None:
            try:
                self.as_tenant(1)
            except ValidationError as error:
                yield f"neighbour: {describe_error(error).removeprefix('no Cell: ')}"

    def _find_odd_framework(self, spec: FrameworkSpec) -> Iterator[str]:
        if self.mode not in spec.modes:
            yield f"mode: '{self.mode}' is not a mode of {self.framework}; it has {', '.join(spec.modes)}"
        if self.device not in spec.devices:
            yield f"device: {self.framework} has no '{self.device}'; it has {', '.join(spec.devices)}"

    def _find_odd_model(self, spec: ModelSpec) -> Iterator[str]:
        if FRAMEWORKS[self.framework].dialect not in spec.dialects:
            yield f"framework: {self.model} is not written for {self.framework}; leave it out of the matrix"
        if self.phase not in spec.phases:
            yield f"phase: '{self.phase}' makes no sense for {self.model}; it has {', '.join(spec.phases)}"
        if self.mode == "fused-norm" and not spec.has_batch_norm:
            yield f"mode: 'fused-norm' changes batch norms, and {self.model} has none; take 'graph'"
        if self.num_classes is None and spec.num_classes is not None:
            yield f"num_classes: {self.model} is a classifier and needs a number of classes"
        if self.num_classes is not None and spec.num_classes is None:
            yield f"num_classes: {self.model} has no classes; leave it out or give null"
        if self.input_size < spec.min_input_size or self.input_size % spec.input_size_multiple:
            step = "" if spec.input_size_multiple == 1 else f" and a multiple of {spec.input_size_multiple}"
            yield f"input_size: {self.input_size} does not fit {self.model}: at least {spec.min_input_size}{step}"
        if self.data_dir is not None and spec.data is None:
            yield f"data_dir: {self.model} runs on synthetic data only; leave it out"

    def _find_limits(self, spec: ModelSpec) -> Iterator[str]:
        if self.precision in EIGHT_BITS and spec.task != "text-generation":
            yield f"precision: '{self.precision}' is for language models; take bf16"
        if self.framework in spec.without:
            yield f"framework: {self.model} is not measured in {self.framework}: {spec.without[self.framework]}"
        if self.input_size > spec.max_input_size:
            yield f"input_size: {self.input_size} does not fit {self.model}: at most {spec.max_input_size}"
        if self.num_gpus > 1 and spec.task == "text-generation":
            yield f"num_gpus: {self.model} is measured on one GPU"

    @property
    def is_shared(self) -> bool:
        """Say whether several tenants use the cell's device, or one under MPS or on a slice of it."""
        return is_device_shared(self.tenants, self.sharing)

    def as_tenant(self, index: int) -> "Cell":
        """Return the cell that tenant `index` (0 is the first) runs, as a cell that has its device to itself."""
        alone = {"tenants": 1, "sharing": "time-slicing", "neighbour": None}
        differing = self.neighbour.model_dump() if self.neighbour is not None and index > 0 else {}
        return Cell.model_validate(self.model_dump() | alone | differing)

    @property
    def canonical_json(self) -> str:
        """The text that `cell_id` is computed from: keys sorted, no spaces; all fields but LATER_FIELDS at default."""
        defaults = {name: type(self).model_fields[name].default for name in LATER_FIELDS}
        fields = self.model_dump(mode="json").items()
        kept = {name: value for name, value in fields if name not in defaults or value != defaults[name]}
        return json.dumps(kept, sort_keys=True, separators=(",", ":"))

    @property
    def slug(self) -> str:
        """The readable part of `cell_id`."""
        device = self.device if self.num_gpus == 1 else f"{self.num_gpus}{self.device}"
        parts = [self.model, self.framework, device, self.phase, self.precision, self.mode, f"b{self.batch_size}"]
        if self.is_shared:
            parts.append(f"x{self.tenants}{'' if self.sharing == 'time-slicing' else self.sharing}")
        if self.neighbour is not None:
            parts.append("beside")
        return "-".join(parts)[:54].rstrip("-")

    @property
    def cell_id(self) -> str:
        """Slug and the first 8 hex digits of the SHA-256 of `canonical_json`."""
        return f"{self.slug}-{hash_text(self.canonical_json)}"
