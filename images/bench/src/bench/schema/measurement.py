"""What one repeat yields: the times of its parts and steps, memory, use of CPU and GPU, roofline and verdict."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bench.schema.document import Amount, Bytes, Count, Document, Number, PositiveAmount, PositiveSeconds, Seconds

# From the gravest to none at all.
Verdict = Literal["wrong-device", "over-peak", "contaminated", "throttled", "too-short", "not-steady", "noisy", "valid"]

Share = Annotated[float, Field(ge=0, le=1)]


class Phases(Document):
    """How long each part of a repeat took. None: the repeat ended before that part did."""

    import_seconds: Seconds | None = None
    """Importing the framework; no framework has a context on a GPU yet."""
    build_seconds: Seconds | None = None
    """Building model, optimiser and data on the device, its context included."""
    first_step_seconds: PositiveSeconds | None = None
    """The first step: lazy initialisation, tracing, compilation, autotuning."""
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
    """Time of each timed step between two events on the GPU: from the start of the step's first kernel to the end of
    its last, gaps in which the GPU waits for the host included (`DeviceProfile` leaves them out). None where the
    framework has no such events. Of several GPUs the first one's, whereas `step_seconds` ends with the slowest."""
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
    peak_cgroup_bytes: Bytes | None = None
    """Peak of the process's cgroup, page cache and neighbours in it included: memory.peak (v2) or
    memory.max_usage_in_bytes (v1)."""
    peak_memory_allocated_bytes: Bytes | None
    """Peak of tensors in the framework's GPU allocator during the timed window; of the fullest GPU. JAX: what a step
    takes by XLA's plan for it, since its allocator's peak cannot be reset."""
    peak_memory_reserved_bytes: Bytes | None
    """Peak of what the framework's GPU allocator held, used or not, during the timed window; of the fullest GPU."""


class CpuUse(Document):
    """Who used the CPUs during the timed window. None: not readable there."""

    window_seconds: PositiveSeconds
    own_cores: Amount
    """CPU seconds of this process and its descendants over the seconds of the window."""
    other_cores: Amount | None
    """Busy cores of the machine less `own_cores`; stolen time included."""
    num_machine_cores: Count
    """Cores that /proc/stat counts."""
    num_periods: Number | None
    """Periods of the cgroup's CPU quota within the window (cpu.stat)."""
    num_throttled_periods: Number | None
    """Those in which the quota was used up and threads had to wait."""
    throttled_seconds: Seconds | None
    energy_joules: Amount | None
    """RAPL, packages summed: the whole sockets, other processes included."""


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
    foreign_processes: tuple[ForeignProcess, ...]
    """Compute processes that were there before the framework started."""
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


class Roofline(Document):
    """The work of a step by analysis, and how near the device's bounds the median step came."""

    flops_per_step: Number
    """Floating-point operations, a multiply-add counting as two, counted layer by layer (bench.models.flops)."""
    min_bytes_per_step: Bytes
    """Bytes that have to cross the device's memory whatever the implementation: weights, optimiser state, input and
    output, once each."""
    achieved_flops_per_second: Amount
    peak_flops_per_second: PositiveAmount | None
    """The peak of all GPUs of the cell together; None: the device is not in the table and could not be measured."""
    peak_bytes_per_second: PositiveAmount | None
    peak_clock_mhz: PositiveAmount | None = None
    """The clock that a GPU's peak is stated for: some run at higher ones."""
    peak_source: str
    """Where the peaks come from, in words."""
    share_of_peak: Amount | None
    """achieved_flops_per_second over peak_flops_per_second."""
    min_step_seconds: PositiveSeconds | None
    """The longer of the time for the operations at peak and that for the bytes at peak, less the bytes that the last
    level of cache can keep from step to step: the roofline."""
    bound: Literal["arithmetic", "memory"] | None
    """Which of the two is longer."""
    share_of_roofline: Amount | None
    """min_step_seconds over the median step."""


class Reason(Document):
    """Why a measurement is not simply valid."""

    verdict: Verdict
    message: str
    """One line with the value found and the bound it broke."""


class Validity(Document):
    """Whether the numbers hold. The bounds are constants of bench.validity, each with its reason."""

    verdict: Verdict
    """The gravest of the reasons, `valid` where there is none."""
    reasons: tuple[Reason, ...]
    unchecked: tuple[str, ...] = ()
    """What could not be checked, in words: the verdict does not cover it."""
    notes: tuple[str, ...] = ()
    """What a reader should know that does not count against the measurement, one line each."""

    @model_validator(mode="after")
    def _check_verdict(self) -> Self:
        if (self.verdict == "valid") != (not self.reasons):
            raise ValueError("verdict: is 'valid' where there are no reasons, and only there")
        if self.reasons and self.verdict not in {reason.verdict for reason in self.reasons}:
            raise ValueError(f"verdict: '{self.verdict}' is the verdict of none of the reasons")
        return self
