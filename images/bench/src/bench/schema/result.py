"""Result: the terminal record of one attempt at one repeat of a cell."""

from typing import Literal, Self

from pydantic import model_validator

from bench.schema.cell import Cell
from bench.schema.document import SCHEMA_VERSION, CellId, Count, Name, StoredDocument, Time, Version
from bench.schema.environment import Environment
from bench.schema.failure import Failure, Status
from bench.schema.measurement import (
    Calibration,
    CpuUse,
    DeviceProfile,
    GpuUse,
    HostPeak,
    Memory,
    Phases,
    PipelinedWindow,
    Roofline,
    Samples,
    SustainedRun,
    Validity,
)
from bench.schema.tenancy import Tenancy, TenantRecord


class Result(StoredDocument):
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
    started_at: Time
    finished_at: Time
    phases: Phases = Phases()
    samples: Samples | None = None
    pipelined: PipelinedWindow | None = None
    """None: not asked for, or on a CPU, where the steps of PyTorch compute before their call returns."""
    sustained: SustainedRun | None = None
    """None: not asked for."""
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
        parts = (self.samples, self.memory, self.environment, self.validity)
        if None in parts or not self.phases.is_complete:
            raise ValueError("a result with status 'ok' needs samples, memory, environment, validity and every phase")
        return self

    @model_validator(mode="after")
    def _check_samples(self) -> Self:
        if self.samples is None or self.status != "ok":  # one that was cut short has the steps that it came to
            return self
        # The length of a window of several tenants is set beforehand: how many steps each takes in it is not.
        num_expected = self.cell.num_steps if self.tenancy is None else 1
        check_series("step_seconds", self.samples.step_seconds, num_expected, self.phases.steady_seconds)
        check_series(
            "warmup_step_seconds",
            self.samples.warmup_step_seconds,
            self.cell.num_warmup_steps,
            self.phases.warmup_seconds,
        )
        for record in () if self.tenancy is None else self.tenancy.tenants:
            check_tenant_series(record, self.cell.num_warmup_steps)
        return self

    @model_validator(mode="after")
    def _check_tenancy(self) -> Self:
        tenancy = self.tenancy
        if tenancy is None:
            if self.status == "ok" and self.cell.tenants > 1:
                raise ValueError("tenancy: a result with status 'ok' of a cell with several tenants has one")
            return self
        if self.cell.tenants == 1:
            raise ValueError("tenancy: the cell has one tenant, whose result has none")
        if [record.tenant for record in tenancy.tenants] != list(range(self.cell.tenants)):
            raise ValueError(f"tenancy: has not one record for each of the {self.cell.tenants} tenants, in their order")
        if self.status == "ok" and not tenancy.is_ok:
            raise ValueError("tenancy: a result with status 'ok' has a common window, and every tenant ended 'ok'")
        return self

    @property
    def window_samples_per_s(self) -> float | None:
        """Samples of the timed window over the seconds of the same window; None where nothing was timed.

        Of several tenants tenant 0's.
        """
        if self.samples is None or self.phases.steady_seconds is None:
            return None
        return len(self.samples.step_seconds) * self.cell.batch_size / self.phases.steady_seconds


def check_series(name: str, series: tuple[float, ...], num_expected: int, window_seconds: float | None) -> None:
    """Raise ValueError where a series of step times is too short or longer in sum than the window it was taken in."""
    if len(series) < num_expected:
        raise ValueError(f"{name}: {len(series)} values, the cell asks for at least {num_expected}")
    if window_seconds is None:
        raise ValueError(f"{name}: there, but the phase that it belongs to is missing")
    if sum(series) > window_seconds * (1 + 1e-6):
        raise ValueError(f"{name}: sums to {sum(series):.6f} s, more than its window of {window_seconds:.6f} s")


def check_tenant_series(record: TenantRecord, num_warmup_steps: int) -> None:
    """Raise ValueError where the series of a tenant do not fit the phases that it says they were taken in."""
    if record.samples is None:
        return
    for name, num_expected, seconds in (
        ("step_seconds", 1, record.phases.steady_seconds),
        ("warmup_step_seconds", num_warmup_steps, record.phases.warmup_seconds),
    ):
        series = getattr(record.samples, name)
        check_series(f"tenancy.tenants.{record.tenant}.samples.{name}", series, num_expected, seconds)
