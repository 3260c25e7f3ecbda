"""How a cell's GPUs were used before, during and after the timed window, by this process and by others."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bench.schema.document import Amount, Bytes, Document, Number, PositiveSeconds, Seconds

Share = Annotated[float, Field(ge=0, le=1)]


class ForeignProcess(Document):
    """A process other than the measured one that used the GPU."""

    pid: Number
    memory_bytes: Bytes | None


class GpuWindow(Document):
    """One GPU through the timed window, read just before it and just after it, which costs its steps nothing.

    None: not readable.
    """

    seconds: PositiveSeconds
    """From the first reading to the last: the window and some milliseconds around it."""
    sm_clock_before_mhz: Number | None
    sm_clock_after_mhz: Number | None
    sm_clock_mhz: tuple[Number, ...]
    """The samples of the clock that the driver took of its own accord in the window; empty where it keeps none."""
    energy_joules: Amount | None
    """Growth of the device's energy counter, which moves about every 0.1 s."""
    held_seconds: dict[str, Seconds]
    """What held the clock down (NVML's performance policies in words) to the seconds for which it did, by the driver's
    own counters; a policy whose counter cannot be read is missing."""


class GpuUse(Document):
    """One GPU before the framework started and through the sampling pass, as NVML sees it. None: not readable."""

    uuid: str
    idle_power_watts: Amount | None
    """The lowest mean power of a second while the framework was imported, before it had a context on the GPU."""
    memory_used_before_bytes: Bytes | None
    """Memory in use on the device before the framework started, the driver's own reserve not counted."""
    memory_used_peak_bytes: Bytes | None
    """The most seen in use on the device during the pass, whoever used it; `memory_used_before_bytes` included."""
    foreign_processes: tuple[ForeignProcess, ...] | None
    """Compute processes that were there before the framework started; None: NVML does not list any here. Where it hides
    those of others, as `processes_visible` tells, an empty list says nothing."""
    processes_visible: bool | None = None
    """Whether NVML listed this process itself after the window, so that it lists others as well; None: not asked."""
    foreign_processes_after: tuple[ForeignProcess, ...] | None = None
    """Compute processes after the window, less this one and its descendants; None: not asked, or not visible."""
    foreign_memory_after_bytes: Bytes | None = None
    """Memory in use after the window less that of this process and its descendants; None: not asked or not visible."""
    memory_free_after_bytes: Bytes | None = None
    """Memory that was still free after the window, while this process held its own; None: not asked."""
    max_sm_clock_mhz: Number | None
    power_limit_watts: Amount | None
    """The limit in force."""
    default_power_limit_watts: Amount | None = None
    """The limit that the device has by default: one in force below it was lowered by somebody."""
    application_clock_mhz: Number | None = None
    """The SM clock that applications are set to; devices that have no such setting, or none any more, do not say."""
    default_application_clock_mhz: Number | None = None
    window: GpuWindow | None = None
    """The timed window; None where it was not watched."""
    window_seconds: PositiveSeconds | None
    """The sampling pass; None where there was none."""
    num_steps: Number
    """Steps of the sampling pass."""
    energy_joules: Amount | None
    """Energy of the pass: its mean power times `window_seconds`."""
    energy_source: Literal["energy-counter", "power-samples"] | None
    """Where the mean power is from: the growth of the device's energy counter from its first to its last update in the
    pass, or, where there is no such counter, the samples of `power_watts`."""
    sample_seconds: tuple[Seconds, ...]
    """When each sample was taken, from the start of the pass. The series below are as long, or empty where the device
    does not report the value."""
    sm_clock_mhz: tuple[Number, ...]
    temperature_celsius: tuple[Number, ...]
    power_watts: tuple[Amount, ...]
    throttle_reasons: dict[str, Share]
    """Reason (NVML's name in words) to the share of samples in which it was given."""
    utilization: tuple[Share, ...] = ()
    """Share of the time before each sample (NVML: up to a second) in which a kernel was running."""
    sample_reasons: tuple[tuple[str, ...], ...] = ()
    """The reasons of `throttle_reasons` that each sample gave."""

    @property
    def is_slice(self) -> bool:
        """Whether this is a MIG slice: clocks, heat, power and energy are its whole GPU's, and not read for it."""
        return self.uuid.startswith("MIG-")

    @model_validator(mode="after")
    def _check_counts(self) -> Self:
        for name in ("sm_clock_mhz", "temperature_celsius", "power_watts", "utilization", "sample_reasons"):
            if len(getattr(self, name)) not in (0, len(self.sample_seconds)):
                raise ValueError(f"{name}: neither empty nor as long as sample_seconds")
        if (self.energy_joules is None) != (self.energy_source is None):
            raise ValueError("energy_joules and energy_source: one is there without the other")
        return self
