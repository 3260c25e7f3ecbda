"""Result: the terminal record of one attempt at one repeat of a cell; Failure and Tenancy are parts of it."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from bench.schema.cell import MAX_TENANTS, Cell
from bench.schema.document import (
    Amount,
    AttemptDocument,
    Bytes,
    CheckedDocument,
    Document,
    Integer,
    Name,
    Number,
    PositiveSeconds,
    Seconds,
    Time,
    VersionedDocument,
)
from bench.schema.environment import Environment
from bench.schema.measurement import (
    Calibration,
    CompiledPrograms,
    CpuUse,
    DeviceProfile,
    GpuUse,
    HostPeak,
    Memory,
    Phases,
    PipelinedWindow,
    PrecisionError,
    Reason,
    Roofline,
    Samples,
    SustainedRun,
    Validity,
)

Status = Literal["ok", "failed", "oom", "timeout", "preempted"]
FailureKind = Literal[
    "exception",
    "missing-framework",
    "out-of-memory",
    "killed",
    "exit",
    "timeout",
    "preempted",
    # Of several tenants: they did not all step at once, or not on one device.
    "no-common-window",
    # Of a cluster: the container never started, or its node could not hold it.
    "bad-image",
    "bad-configuration",
    "unschedulable",
    "infrastructure",
]


class Failure(Document):
    """Why a repeat did not end well."""

    kind: FailureKind
    message: str
    """One line for people."""
    exit_code: Integer | None = None
    signal: str | None = None
    """Name of the signal that ended the process, such as `SIGSEGV`."""
    stderr_tail: str = ""
    """The end of what the process wrote to stdout and stderr, or the traceback."""
    bytes_requested: int | None = Field(default=None, exclude=True, repr=False)
    """Ignored: earlier versions read it from the message."""


# The tenants of a repeat meet through the store (`bench.store.keys`, `meeting_key`). Tenant 0 calls the others when it
# has looked at the idle device. Each says where it runs when it is ready; all step, and each says at what pace. Tenant
# 0 sets a window common to all, and each leaves a TenantRecord, which tenant 0 gathers into the Tenancy of the Result.
# What lies at the meeting is no result: it is deleted when the Result is stored.
#
# All tenants run on one machine, so they read one clock, the kernel's CLOCK_MONOTONIC (`time.perf_counter`): times of
# several tenants can be compared without any skew. The kernel's boot id and the time namespace prove that it is one.
class TenantPlace(Document):
    """Says where a tenant runs; a field is None where that could not be read."""

    boot_id: str | None
    """Of the kernel (/proc/sys/kernel/random/boot_id): equal for all processes of one machine since it started."""
    time_namespace: str | None
    """Of the process (/proc/self/ns/time): in another one the clock may have an offset."""
    device: str | None
    """The UUID of the GPU or of the slice; None: a CPU, or NVML cannot be read."""
    pids: tuple[Number, ...]
    """The process and its descendants, by the numbers that it sees itself."""
    is_under_mps: bool | None = None
    """Whether CUDA shares its contexts through MPS; None: a CPU, or the driver cannot be asked (before CUDA 12.4)."""


class CommonWindow(VersionedDocument):
    """When all tenants are measured, in seconds of CLOCK_MONOTONIC; or why they are not.

    Every tenant steps from before the start until after the end, without looking at the store.
    """

    start_seconds: Seconds | None = None
    end_seconds: Seconds | None = None
    hold_until_seconds: Seconds | None = None
    """How long every tenant keeps its memory after the window: tenant 0 looks meanwhile who uses the device."""
    called_off: str | None = None
    """Why there is no window, in one line."""


class TenantRecord(VersionedDocument):
    """What one tenant of a repeat did: each leaves one. Its cell is `as_tenant(tenant)` of the Result's cell."""

    tenant: Annotated[int, Field(ge=0, lt=MAX_TENANTS)]
    """0 is the tenant whose Result this is."""
    status: Status
    error: Failure | None = None
    place: TenantPlace | None = None
    """None: the tenant ended before it was ready."""
    phases: Phases = Phases()
    """`steady_seconds`: from the start of the first step that counts to the end of the last one."""
    samples: Samples | None = None
    """`step_seconds` are the steps that lie within the common window as a whole, one straight after the other."""
    lateness_seconds: Seconds | None = None
    """From the start of the window to the start of the first step that counts: at most about one step."""
    memory: Memory | None = None
    device_memory_bytes: Bytes | None = None
    """What the tenant held on the GPU after the window, its CUDA context included, as NVML shows it to tenant 0. None:
    NVML does not show it, as in most containers; under MPS a part of it is the server's."""
    own_cores: Amount | None = None
    """CPU seconds of the tenant and its descendants over the seconds of the window."""
    reasons: tuple[Reason, ...] = ()
    """Why the tenant's measurement is not simply valid, as far as it can tell by itself."""
    probe_failures: tuple[str, ...] = ()
    """What this tenant could not read of the machine around the timing, one line each; tenant 0's are the Result's."""

    @property
    def steps_per_second(self) -> float | None:
        """Steps in the common window over the seconds that they took; None where none was measured."""
        if self.samples is None or not self.samples.step_seconds or self.phases.steady_seconds is None:
            return None
        return len(self.samples.step_seconds) / self.phases.steady_seconds


class Tenancy(Document):
    """All tenants of one repeat, and the window in which all of them stepped."""

    group: Name
    """The id of the tenants' meeting: the attempt on one machine, the Job's UID on a cluster."""
    window_seconds: PositiveSeconds | None
    """The common window; None: it did not come about."""
    device_memory_used_bytes: Bytes | None = None
    """What was in use on the GPU after the window, while every tenant held its memory; None: a CPU, or not readable."""
    tenants: tuple[TenantRecord, ...]
    """One for each tenant, in their order; tenant 0's figures are those of the Result."""

    @property
    def is_ok(self) -> bool:
        """Whether there was a common window and every tenant ended well."""
        return self.window_seconds is not None and all(record.status == "ok" for record in self.tenants)


class Result(CheckedDocument, AttemptDocument):
    """The terminal record of one attempt at one repeat of a cell. Each attempt leaves exactly one."""

    cell: Cell
    status: Status
    written_by: Literal["bench", "runner"]
    """`bench`: the measuring process. `runner`: written for a process that died before it could."""
    started_at: Time
    finished_at: Time
    phases: Phases = Phases()
    samples: Samples | None = None
    pipelined: PipelinedWindow | None = None
    """None: not asked for, or on a CPU, where the steps of PyTorch compute before their call returns."""
    sustained: SustainedRun | None = None
    """None: not asked for."""
    compiled_programs: CompiledPrograms | None = None
    """None: not counted, as in results of versions without it."""
    precision_error: PrecisionError | None = None
    """Of the first repeat of a language model: None where it was not measured."""
    memory: Memory | None = None
    cpu_use: CpuUse | None = None
    gpu_use: tuple[GpuUse, ...] = ()
    """One per GPU of the cell."""
    device_profile: DeviceProfile | None = None
    """None on a CPU, and where there was no such pass."""
    roofline: Roofline | None = None
    host_peak: HostPeak | None = None
    """Of a CPU cell: what `roofline.peak_flops_per_second` is the largest of."""
    calibration: Calibration | None = None
    """None: not measured, or of a version without it."""
    validity: Validity | None = None
    probe_failures: tuple[str, ...] = ()
    """What could not be read of the machine around the timing, one line each; the timing stands without it."""
    environment: Environment | None = None
    tenancy: Tenancy | None = None
    """What each tenant did, of a cell with several; the other fields are tenant 0's. None: of a cell with one, or ended
    before the tenants' records were gathered."""
    error: Failure | None = None

    def find_contradictions(self) -> Iterator[str]:
        if self.cell_id != self.cell.cell_id:
            yield f"cell_id: '{self.cell_id}' is not the id of its cell, '{self.cell.cell_id}'"
        if self.finished_at < self.started_at:
            yield "finished_at is before started_at"
        if self.status == "ok":
            yield from self._find_gaps()
        elif self.error is None:
            yield f"error: a result with status '{self.status}' must say why"

    def _find_gaps(self) -> Iterator[str]:
        """Yield what a result with status `ok` lacks; one that was cut short has the steps that it came to."""
        if self.error is not None:
            yield "error: a result with status 'ok' has none"
        tenancy, num_tenants = self.tenancy, self.cell.tenants
        if num_tenants > 1 and not (tenancy and tenancy.is_ok and len(tenancy.tenants) == num_tenants):
            yield "tenancy: a result with status 'ok' has a common window, and each of its tenants ended 'ok'"
        parts = (self.memory, self.environment, self.validity)
        if self.samples is None or None in parts or not self.phases.is_complete:
            yield "a result with status 'ok' needs samples, memory, environment, validity and every phase"
            return
        # The length of a window of several tenants is set beforehand: how many steps each takes in it is not.
        num_steps = self.cell.num_steps if tenancy is None else 1
        for name, num_expected, window_seconds in (
            ("step_seconds", num_steps, self.phases.steady_seconds),
            ("warmup_step_seconds", self.cell.num_warmup_steps, self.phases.warmup_seconds),
        ):
            series = getattr(self.samples, name)
            if len(series) < num_expected:
                yield f"{name}: {len(series)} values, the cell asks for at least {num_expected}"
            if (total := sum(series)) > (window_seconds or 0.0) * (1 + 1e-6):
                yield f"{name}: sums to {total:.6f} s, more than its window of {window_seconds:.6f} s"

    @property
    def window_samples_per_s(self) -> float | None:
        """Samples of the timed window over the seconds of the same window; None where nothing was timed.

        Of several tenants tenant 0's.
        """
        if self.samples is None or self.phases.steady_seconds is None:
            return None
        return len(self.samples.step_seconds) * self.cell.batch_size / self.phases.steady_seconds
