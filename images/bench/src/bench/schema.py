"""The contract between the parts: a Cell goes into a container, a Result comes out, a Run says what was planned.

All documents are frozen, versioned and strict: unknown fields, NaN, negative times and inconsistent counts are refused.
Units are in the names: seconds, bytes. A reader of version 1 refuses other versions in words.
"""

import hashlib
import json
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from bench.catalog import MODELS

SCHEMA_VERSION: Literal[1] = 1

Framework = Literal["pytorch", "tensorflow"]
Device = Literal["cpu", "gpu"]
Phase = Literal["train", "infer"]
Precision = Literal["fp32"]
Mode = Literal["eager", "graph"]
Status = Literal["ok", "failed", "oom", "timeout", "preempted"]
FailureKind = Literal["exception", "missing-framework", "out-of-memory", "killed", "exit", "timeout", "preempted"]

# The modes that each framework has; `graph` is tf.function without XLA, which PyTorch has no counterpart of.
MODES: dict[Framework, tuple[Mode, ...]] = {"pytorch": ("eager",), "tensorflow": ("eager", "graph")}


def check_version(value: object) -> object:
    """Return the version of a document; ValueError where it is none that this program reads."""
    if type(value) is not int or value != SCHEMA_VERSION:
        raise ValueError(f"this program reads version {SCHEMA_VERSION} of its documents, not {value!r}")
    return value


Version = Annotated[Literal[1], BeforeValidator(check_version)]
# + 0.0 turns -0.0 into 0.0: they are equal, so their cells must have equal ids.
Seconds = Annotated[float, Field(ge=0), AfterValidator(lambda value: value + 0.0)]
PositiveSeconds = Annotated[float, Field(gt=0)]
Bytes = Annotated[int, Field(ge=0)]
Count = Annotated[int, Field(ge=1, le=10**9)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
CellId = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,54}-[0-9a-f]{8}$")]


class Document(BaseModel):
    """Base of every document: immutable, no unknown field, no silent conversion, no NaN or infinity."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        revalidate_instances="always",  # `model_copy` checks nothing: a part made by it is checked with the whole
        use_attribute_docstrings=True,
    )

    def to_json(self) -> bytes:
        """Return the document as UTF-8 JSON, indented for people."""
        return self.model_dump_json(indent=1).encode()


class Cell(Document):
    """One combination of axis values: what to measure and how. Equal cells have equal `cell_id` on every machine."""

    schema_version: Version = SCHEMA_VERSION
    model: str
    """A name in `bench.catalog.MODELS`."""
    framework: Framework
    device: Device
    """`cpu`, or `gpu`: one NVIDIA GPU."""
    phase: Phase
    """`train`: forward, backward and one optimiser update. `infer`: one forward pass without gradients."""
    precision: Precision = "fp32"
    """`fp32`: true float32, TF32 switched off."""
    mode: Mode = "eager"
    """`eager`: op by op. `graph`: tf.function without XLA (TensorFlow only)."""
    batch_size: Count
    """Samples of one step."""
    input_size: Annotated[int, Field(ge=8, le=65_536)]
    """Height and width of the input in pixels."""
    num_classes: Annotated[int, Field(ge=2, le=10**7)]
    num_warmup_steps: Count = 6
    """Steps before the clock, the first one not counted, at the least; more follow until the series is steady."""
    max_warmup_seconds: PositiveSeconds = 30.0
    """When the warm-up ends even though the series is not steady, unless `num_warmup_steps` take longer."""
    num_steps: Count = 30
    """Timed steps, at the least."""
    min_seconds: Seconds = 2.0
    """Length of the timed window, at the least: more steps than `num_steps` are taken until it is reached."""
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    """Seed of the weights and of the synthetic data."""

    @model_validator(mode="after")
    def _check_combination(self) -> Self:
        if self.model not in MODELS:
            raise ValueError(f"model: '{self.model}' is unknown; known are {', '.join(MODELS)}")
        if self.mode not in MODES[self.framework]:
            raise ValueError(
                f"mode: '{self.mode}' is not a mode of {self.framework}; it has {', '.join(MODES[self.framework])}"
            )
        return self

    @property
    def canonical_json(self) -> str:
        """The text that `cell_id` is computed from: every field, keys sorted, no spaces."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))

    @property
    def slug(self) -> str:
        """The readable part of `cell_id`."""
        parts = (self.model, self.framework, self.device, self.phase, self.precision, self.mode, f"b{self.batch_size}")
        return "-".join(parts)[:54].rstrip("-")

    @property
    def cell_id(self) -> str:
        """Slug and the first 8 hex digits of the SHA-256 of `canonical_json`."""
        return f"{self.slug}-{hash_text(self.canonical_json)}"


class Phases(Document):
    """How long each part of a repeat took. None: the repeat ended before that part did."""

    import_seconds: Seconds | None = None
    """Importing the framework."""
    build_seconds: Seconds | None = None
    """Building model, optimiser and data on the device."""
    first_step_seconds: PositiveSeconds | None = None
    """The first step: lazy initialisation, tracing, autotuning."""
    warmup_seconds: Seconds | None = None
    """The warm-up steps after the first one."""
    steady_seconds: PositiveSeconds | None = None
    """The timed window, from the start of its first step to the end of its last."""

    @property
    def is_complete(self) -> bool:
        """Whether every part was finished."""
        return None not in self.model_dump().values()


class Samples(Document):
    """The raw times, none left out, so that another reader can cut the warm-up elsewhere."""

    warmup_step_seconds: tuple[PositiveSeconds, ...]
    """Wall time of each warm-up step, the first step not included."""
    step_seconds: tuple[PositiveSeconds, ...]
    """Wall time of each timed step, from the call to the end of the device's work."""
    device_step_seconds: tuple[PositiveSeconds, ...] | None
    """Time of each timed step between two events on the GPU; None where the framework has no such events."""
    reached_steady: bool
    """Whether the warm-up ended because the series was steady (False: because `max_warmup_seconds` had passed)."""

    @model_validator(mode="after")
    def _check_counts(self) -> Self:
        if self.device_step_seconds is not None and len(self.device_step_seconds) != len(self.step_seconds):
            raise ValueError("device_step_seconds and step_seconds differ in length")
        return self


class Memory(Document):
    """Peaks of memory. None: not measurable there."""

    peak_rss_bytes: Bytes | None
    """Peak resident set of the process, VmHWM of /proc/self/status, import and build included."""
    peak_memory_allocated_bytes: Bytes | None
    """Peak of tensors in the framework's GPU allocator during the timed window."""
    peak_memory_reserved_bytes: Bytes | None
    """Peak of what the framework's GPU allocator held, used or not, during the timed window."""


class Gpu(Document):
    """The GPU that a cell ran on, as NVML names it."""

    name: str
    uuid: str
    driver_version: str
    memory_total_bytes: Bytes
    cuda_version: str | None
    """The CUDA version that the framework was built for or runs on."""
    cudnn_version: str | None


class Environment(Document):
    """Where a repeat ran. Results whose environments differ are not aggregated."""

    hostname: str
    kernel: str
    python_version: str
    cpu_model: str
    num_visible_cores: Count
    """Cores in the scheduler's affinity mask."""
    cpu_quota_cores: Annotated[float, Field(gt=0)] | None
    """The cgroup's CPU quota in cores; None: no quota."""
    num_threads: Count
    """floor(quota or visible cores), at least 1: given to every library."""
    cpu_governor: str | None
    memory_total_bytes: Bytes
    versions: dict[str, str]
    """Package name to version, for everything that can change a time."""
    settings: dict[str, str | int | bool]
    """The framework's switches as they stood during the measurement."""
    gpu: Gpu | None
    image: str | None
    """The container image by digest; None outside containers."""
    git_revision: str | None
    """Revision of the benchmatrix checkout; ends in `-dirty` where it had changes."""


class Failure(Document):
    """Why a repeat did not end well."""

    kind: FailureKind
    message: str
    """One line for people."""
    exit_code: int | None = None
    signal: str | None = None
    """Name of the signal that ended the process, `SIGSEGV` for one."""
    stderr_tail: str = ""
    """The end of what the process wrote to stdout and stderr, or the traceback."""


class Result(Document):
    """The terminal record of one attempt at one repeat of a cell. Each attempt leaves exactly one."""

    schema_version: Version = SCHEMA_VERSION
    run_id: Name
    cell: Cell
    cell_id: CellId
    repeat: Count
    """1, 2, ...: the n-th independent container of the cell."""
    attempt: Name
    """Unique id of the container."""
    status: Status
    written_by: Literal["bench", "runner"]
    """`bench`: the measuring process. `runner`: written for a process that died before it could."""
    started_at: AwareDatetime
    finished_at: AwareDatetime
    phases: Phases = Phases()
    samples: Samples | None = None
    memory: Memory | None = None
    environment: Environment | None = None
    error: Failure | None = None

    @model_validator(mode="after")
    def _check_identity(self) -> Self:
        if self.cell_id != self.cell.cell_id:
            raise ValueError(f"cell_id: '{self.cell_id}' is not the id of its cell, '{self.cell.cell_id}'")
        if self.finished_at < self.started_at:
            raise ValueError("finished_at is before started_at")
        return self

    @model_validator(mode="after")
    def _check_completeness(self) -> Self:
        if self.status != "ok":
            if self.error is None:
                raise ValueError(f"error: a result with status '{self.status}' must say why")
            return self
        if self.error is not None:
            raise ValueError("error: a result with status 'ok' has none")
        if self.samples is None or self.memory is None or self.environment is None or not self.phases.is_complete:
            raise ValueError("a result with status 'ok' needs samples, memory, environment and every phase")
        return self

    @model_validator(mode="after")
    def _check_samples(self) -> Self:
        if self.samples is None:
            return self
        check_series("step_seconds", self.samples.step_seconds, self.cell.num_steps, self.phases.steady_seconds)
        check_series(
            "warmup_step_seconds",
            self.samples.warmup_step_seconds,
            self.cell.num_warmup_steps,
            self.phases.warmup_seconds,
        )
        return self

    @property
    def throughput_samples_per_s(self) -> float | None:
        """Samples of the timed window over the seconds of the same window; None where nothing was timed."""
        if self.samples is None or self.phases.steady_seconds is None:
            return None
        return len(self.samples.step_seconds) * self.cell.batch_size / self.phases.steady_seconds


class PlannedCell(Document):
    """A cell with what the executor needs to know about it."""

    cell: Cell
    repeats: Count
    timeout_seconds: PositiveSeconds
    """How long one attempt may take, import included."""


class LeftOutCell(Document):
    """A cell of the matrix that cannot run where the run takes place."""

    cell: Cell
    reason: str


class Run(Document):
    """What one execution of a matrix set out to do. Progress is its planned repeats minus the result keys present."""

    schema_version: Version = SCHEMA_VERSION
    run_id: Name
    matrix: Name
    created_at: AwareDatetime
    executor: Literal["local"]
    hostname: str
    user: str
    tool_version: str
    git_revision: str | None
    cells: tuple[PlannedCell, ...]
    left_out: tuple[LeftOutCell, ...]

    @property
    def plan_id(self) -> str:
        """8 hex digits, equal for equal plans: same cells, each with as many repeats. Time limits may differ."""
        return hash_text(json.dumps(sorted((planned.cell.cell_id, planned.repeats) for planned in self.cells)))

    @property
    def num_repeats(self) -> int:
        """Planned repeats of all cells."""
        return sum(planned.repeats for planned in self.cells)


def check_series(name: str, series: tuple[float, ...], num_expected: int, window_seconds: float | None) -> None:
    """Raise ValueError where a series of step times is too short or longer in sum than the window it was taken in."""
    if len(series) < num_expected:
        raise ValueError(f"{name}: {len(series)} values, the cell asks for at least {num_expected}")
    if window_seconds is None:
        raise ValueError(f"{name}: there, but the phase that it belongs to is missing")
    if sum(series) > window_seconds * (1 + 1e-6):
        raise ValueError(f"{name}: sums to {sum(series):.6f} s, more than its window of {window_seconds:.6f} s")


def hash_text(text: str) -> str:
    """Return the first 8 hex digits of the SHA-256 of `text`."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def export_json_schema() -> dict[str, Any]:
    """Return one JSON Schema document with Cell, Result and Run under `$defs`."""
    from pydantic.json_schema import models_json_schema

    _, schema = models_json_schema(
        [(Cell, "validation"), (Result, "validation"), (Run, "validation")],
        title="benchmatrix documents",
        ref_template="#/$defs/{model}",
    )
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
