"""Tenancy: what each process did of those that used one device at the same time, and how they met for it.

The tenants of a repeat meet through the store (`bench.store.keys`, `meeting_key`). Tenant 0 calls the others when it
has looked at the idle device. Each says that it is ready; all step, and each says at what pace. Tenant 0 sets a window
common to all, and each leaves a TenantRecord, which tenant 0 gathers into the Tenancy of the Result. The documents of a
meeting are no results: they are deleted when the Result is stored.

All tenants run on one machine, so they read one clock, the kernel's CLOCK_MONOTONIC (`time.perf_counter`): times of
several tenants can be compared without any skew. The kernel's boot id and the time namespace prove that it is one.
"""

from typing import Annotated, Self

from pydantic import Field, model_validator

from bench.schema.document import (
    SCHEMA_VERSION,
    Amount,
    Bytes,
    Document,
    Name,
    Number,
    PositiveSeconds,
    Seconds,
    StepSeconds,
    Version,
)
from bench.schema.failure import Failure, Status
from bench.schema.measurement import Memory, Phases, Reason, Samples

TenantIndex = Annotated[int, Field(ge=0, lt=64)]


class TenantPlace(Document):
    """Where a tenant runs. None: not readable there."""

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


class TenantCall(Document):
    """Tenant 0 has looked at the idle device: the others may start to use it."""

    schema_version: Version = SCHEMA_VERSION
    attempt: Name
    """Of tenant 0: that of the Result."""


class TenantReady(Document):
    """A tenant has built its model and warmed up; it steps as soon as all others are ready or have ended."""

    schema_version: Version = SCHEMA_VERSION
    tenant: TenantIndex
    place: TenantPlace


class TenantPace(Document):
    """How fast a tenant steps while all others step."""

    schema_version: Version = SCHEMA_VERSION
    tenant: TenantIndex
    step_seconds: StepSeconds
    """Mean of the steps of the second half of the rehearsal."""


class CommonWindow(Document):
    """When all tenants are measured, in seconds of CLOCK_MONOTONIC; or why they are not.

    Every tenant steps from before the start until after the end, without looking at the store.
    """

    schema_version: Version = SCHEMA_VERSION
    start_seconds: Seconds | None = None
    end_seconds: Seconds | None = None
    hold_until_seconds: Seconds | None = None
    """How long every tenant keeps its memory after the window: tenant 0 looks meanwhile who uses the device."""
    called_off: str | None = None
    """Why there is no window, in one line."""

    @model_validator(mode="after")
    def _check_times(self) -> Self:
        times = (self.start_seconds, self.end_seconds, self.hold_until_seconds)
        if (self.called_off is None) == (None in times):
            raise ValueError("called_off: a window has all three times, or the reason why it has none of them")
        if None not in times and not times[0] < times[1] <= times[2]:  # type: ignore[operator]
            raise ValueError("start_seconds: the window does not start before it ends, or ends after the hold")
        return self


class TenantRecord(Document):
    """What one tenant of a repeat did: each leaves one. Its cell is `as_tenant(tenant)` of the Result's cell."""

    schema_version: Version = SCHEMA_VERSION
    tenant: TenantIndex
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

    @model_validator(mode="after")
    def _check_status(self) -> Self:
        if (self.status == "ok") != (self.error is None):
            raise ValueError(f"error: a record with status '{self.status}' must say why, and one with 'ok' has none")
        if self.status == "ok" and (self.place is None or self.steps_per_second is None):
            raise ValueError("a record with status 'ok' needs place, samples with a step, and the seconds of them")
        return self

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
