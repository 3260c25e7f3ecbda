"""What one repeat yields: the times of its parts and steps, memory, use of the CPU, roofline and verdict."""

from collections.abc import Iterator
from statistics import fmean, median
from typing import Annotated, Literal

from pydantic import Field

from bench.registry import Framework
from bench.schema.document import (
    Amount,
    Bytes,
    CheckedDocument,
    Count,
    Document,
    Number,
    PositiveAmount,
    PositiveSeconds,
    Seconds,
    StepSeconds,
)

# From the gravest to none at all.
Verdict = Literal[
    "wrong-device",
    "not-as-asked",
    "over-peak",
    "contaminated",
    "throttled",
    "input-bound",
    "too-short",
    "not-steady",
    "noisy",
    "valid",
]


class Phases(Document):
    """How long each part of a repeat took. None: the repeat ended before that part did."""

    import_seconds: Seconds | None = None
    """Importing the framework; no framework has a context on a GPU yet."""
    build_seconds: Seconds | None = None
    """Building model, optimiser and data on the device, its context included."""
    spin_up_seconds: Seconds | None = None
    """Keeping a GPU busy before the first step, so that algorithms are not chosen at idle clocks; None also on a CPU
    and in results of versions without it."""
    first_step_seconds: StepSeconds | None = None
    """The first step: lazy initialisation, tracing, compilation, autotuning."""
    warmup_seconds: Seconds | None = None
    """The warm-up steps after the first one."""
    steady_seconds: PositiveSeconds | None = None
    """The timed window, from the start of its first step to the end of its last; where it was lengthened, the sum of
    its parts."""

    @property
    def is_complete(self) -> bool:
        """Whether every part that each repeat has was finished."""
        return None not in self.model_dump(exclude={"spin_up_seconds"}).values()


class CompiledPrograms(Document):
    """Where the compiled programs of a repeat came from, by the framework's own counters."""

    num_loaded: Number = 0
    """From a cache that an earlier process filled."""
    num_compiled: Number | None = None
    """Compiled by this process; None: the framework does not count them."""


class Samples(CheckedDocument):
    """The raw times, none left out, so that another reader can cut the warm-up elsewhere."""

    warmup_step_seconds: tuple[StepSeconds, ...]
    """Wall time of each warm-up step, the first step not included."""
    step_seconds: tuple[StepSeconds, ...]
    """Wall time of each timed step, from the call to the end of the device's work."""
    device_step_seconds: tuple[StepSeconds, ...] | None = None
    """Time of each timed step between two events on the GPU: from the start of the step's first kernel to the end of
    its last, gaps in which the GPU waits for the host included (`DeviceProfile` leaves them out). None where the
    framework has no such events. Of several GPUs the first one's, whereas `step_seconds` ends with the slowest."""
    reached_steady: bool
    """Whether the warm-up ended because the series was steady (False: because `max_warmup_seconds` had passed)."""
    data_wait_seconds: tuple[Seconds, ...] | None = None
    """What each timed step waited for its batch of the input pipeline, a part of its `step_seconds`; of several GPUs
    the first one's pipeline. None: synthetic data, or not recorded."""
    max_queued_batches: Count | None = None
    """The most batches that the input pipeline can hold ready. None: synthetic data, or not recorded."""
    summarized_by: Literal["median", "mean"] = "median"
    """The statistic of `step_seconds` that stands for the repeat: the mean where the steps jump between two levels,
    since their median is that of whichever level had more steps."""

    def find_contradictions(self) -> Iterator[str]:
        for name in ("device_step_seconds", "data_wait_seconds"):
            series = getattr(self, name)
            if series is not None and len(series) != len(self.step_seconds):
                yield f"{name} and step_seconds differ in length"

    @property
    def center_step_seconds(self) -> float:
        """The one step time that stands for the repeat, as `summarized_by` says; 0 without timed steps."""
        if not self.step_seconds:
            return 0.0
        return fmean(self.step_seconds) if self.summarized_by == "mean" else median(self.step_seconds)


class PipelinedWindow(Document):
    """Steps run back to back with one synchronisation at the end, as people train."""

    num_steps: Count
    seconds: PositiveSeconds
    """From the start of the first step until the device has finished the last."""

    @property
    def step_seconds(self) -> float:
        """Seconds of the window over its steps."""
        return self.seconds / self.num_steps


class PrecisionError(Document):
    """How far logits of a language model are from those that the same weights give in float64."""

    relative_error: Amount
    """The norm of the differences over that of the logits in float64."""
    equal_token_share: Annotated[float, Field(ge=0, le=1)]
    """Tokens whose logits are largest in both, of `num_tokens`."""
    num_tokens: Count
    """Behind a prompt, and behind each of the tokens that float64 chooses then."""


class SustainedRun(Document):
    """Steps that ran on until their speed was flat, each synchronised as in the timed window."""

    window_step_seconds: Annotated[tuple[StepSeconds, ...], Field(min_length=1)]
    """Seconds per step of each window, one after the other (measure.passes.WINDOW_SECONDS each, at the least)."""
    seconds: PositiveSeconds
    """How long the steps ran on."""
    flat_after_seconds: Seconds | None
    """From when on the speed was flat, to the end; None: it was not when `sustain_seconds` had passed."""


class Memory(Document):
    """Peaks of memory. None: not measurable there."""

    peak_rss_bytes: Bytes | None
    """Peak resident set of the process, VmHWM of /proc/self/status, import and build included; of several processes
    that take part (workers that read data, replicas), each with its share (PSS)."""
    peak_cgroup_bytes: Bytes | None = None
    """Peak of the process's cgroup, page cache and neighbours in it included: memory.peak (v2) or
    memory.max_usage_in_bytes (v1)."""
    peak_memory_allocated_bytes: Bytes | None = None
    """Peak of tensors in the framework's GPU allocator during the timed window; of the fullest GPU. JAX: what a step
    takes by XLA's plan for it, since its allocator's peak cannot be reset."""
    peak_memory_reserved_bytes: Bytes | None = None
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
    num_periods: Number | None = None
    """Periods of the cgroup's CPU quota within the window (cpu.stat)."""
    num_throttled_periods: Number | None = None
    """Those in which the quota was used up and threads had to wait."""
    throttled_seconds: Seconds | None = None
    energy_joules: Amount | None = None
    """RAPL, packages summed: the whole sockets, other processes included."""
    num_affinity_cores: Count | None = None
    """CPUs that the process's threads may run on. None here and below: not recorded, or not readable."""
    num_affinity_physical_cores: Count | None = None
    """Physical cores behind these CPUs."""
    affinity_other_cores: Amount | None = None
    """Busy CPUs of the affinity less `own_cores`; stolen time included."""
    num_sibling_cores: Number | None = None
    """CPUs outside the affinity that are hyperthreads of its cores."""
    sibling_busy_cores: Amount | None = None
    """Busy ones of them."""
    pressure_share: Amount | None = None
    """Share of the window in which a thread of the process's cgroup was ready and had to wait for a core, its own
    threads' competition included (PSI, `some` of cpu.pressure)."""
    machine_pressure_share: Amount | None = None
    """The same of all threads of the machine (/proc/pressure/cpu)."""


class HostPeak(Document):
    """What the peak rate of a CPU is taken from: a calculation, and matrix products around the timed window.

    None: not known, not measured, or measured while other processes kept the threads from their cores.
    """

    framework: Framework
    """Whose matrix product was measured."""
    num_threads: Count
    num_cores: Count | None
    """Physical cores that the threads can have at once, as far as the machine shows its hyperthreads."""
    flops_per_cycle: Count | None
    """Operations of one core in one cycle in the cell's precision: vector width, two units, two a multiply-add."""
    clock_hertz: PositiveAmount | None
    """The highest clock that cpufreq or /proc/cpuinfo show; many virtual machines show the base clock only."""
    theoretical_flops_per_second: PositiveAmount | None
    """The product of the three."""
    before_flops_per_second: PositiveAmount | None
    """The fastest matrix product between the build and the first step."""
    after_flops_per_second: PositiveAmount | None
    """The fastest matrix product after the timed window."""
    busy_cores: Amount | None = None
    """Cores that the process kept busy during the largest products."""

    @property
    def flops_per_second(self) -> float | None:
        """The largest of the three figures; None without any."""
        figures = (self.theoretical_flops_per_second, self.before_flops_per_second, self.after_flops_per_second)
        return max((figure for figure in figures if figure is not None), default=None)


class Roofline(Document):
    """The work of a step by analysis, and how near the device's bounds the median step came."""

    flops_per_step: Number
    """Floating-point operations, a multiply-add counting as two, counted layer by layer (bench.models.flops).
    Convolutions are counted as direct ones: Winograd's do fewer, so that shares of more than 1 can be right."""
    least_flops_per_step: Number | None = None
    """The fewest operations that known algorithms need for the step; None: not counted."""
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
    min_step_seconds: PositiveAmount | None
    """The longer of the time for the operations at peak and that for the bytes at peak, less the bytes that the last
    level of cache can keep from step to step: the roofline."""
    min_memory_seconds: Seconds | None = None
    """The latter of the two times; None: not recorded, or the bandwidth is not known."""
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
    """Whether the numbers hold. The bounds are constants of bench.verdicts, each with its reason."""

    verdict: Verdict
    """The gravest of the reasons, `valid` where there is none."""
    reasons: tuple[Reason, ...]
    unchecked: tuple[str, ...] = ()
    """What could not be checked, in words: the verdict does not cover it."""
    notes: tuple[str, ...] = ()
    """What a reader should know that does not count against the measurement, one line each."""

    @property
    def is_contaminated(self) -> bool:
        """Whether others disturbed the measurement, also where the verdict is a graver one."""
        return any(reason.verdict == "contaminated" for reason in self.reasons)


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


class GpuUse(CheckedDocument):
    """One GPU before the framework started and through the sampling pass, as NVML sees it. None: not readable."""

    uuid: str
    idle_power_watts: Amount | None = None
    """The lowest mean power of a second while the framework was imported, before it had a context on the GPU."""
    memory_used_before_bytes: Bytes | None
    """Memory in use on the device before the framework started, the driver's own reserve not counted."""
    memory_used_peak_bytes: Bytes | None = None
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
    window_seconds: PositiveSeconds | None = None
    """The sampling pass; None where there was none."""
    num_steps: Number = 0
    """Steps of the sampling pass."""
    energy_joules: Amount | None = None
    """Energy of the pass: its mean power times `window_seconds`."""
    energy_source: Literal["energy-counter", "power-samples"] | None = None
    """Where the mean power is from: the growth of the device's energy counter from its first to its last update in the
    pass, or, where there is no such counter, the samples of `power_watts`."""
    sample_seconds: tuple[Seconds, ...] = ()
    """When each sample was taken, from the start of the pass. The series below are as long, or empty where the device
    does not report the value."""
    sm_clock_mhz: tuple[Number, ...] = ()
    temperature_celsius: tuple[Number, ...] = ()
    power_watts: tuple[Amount, ...] = ()
    throttle_reasons: dict[str, Share] = {}
    """Reason (NVML's name in words) to the share of samples in which it was given."""
    utilization: tuple[Share, ...] = ()
    """Share of the time before each sample (NVML: up to a second) in which a kernel was running."""
    sample_reasons: tuple[tuple[str, ...], ...] = ()
    """The reasons of `throttle_reasons` that each sample gave."""

    def find_contradictions(self) -> Iterator[str]:
        for name in ("sm_clock_mhz", "temperature_celsius", "power_watts", "utilization", "sample_reasons"):
            if len(getattr(self, name)) not in (0, len(self.sample_seconds)):
                yield f"{name} and sample_seconds differ in length"

    @property
    def is_slice(self) -> bool:
        """Whether this is a MIG slice: clocks, heat, power and energy are its whole GPU's, and not read for it."""
        return self.uuid.startswith("MIG-")


class GpuActivity(Document):
    """What one GPU did in the profiled steps."""

    device_index: Number
    """Which of the GPUs that the measuring process sees, from 0."""
    num_kernels: Number
    num_copies: Number
    """Copies and fills of memory (memcpy, memset)."""
    busy_seconds: Seconds
    """Length of the union of the kernels' and copies' intervals: what ran at once, on several streams, counts once, and
    the gaps between them do not count."""


class DeviceProfile(Document):
    """How long the GPUs had work in the profiled steps. The profiler slows the host down, hardly the kernels."""

    source: Literal["torch.profiler", "tf.profiler", "jax.profiler"]
    step_seconds: Annotated[tuple[StepSeconds, ...], Field(min_length=1)]
    """Wall time of each profiled step, the profiler's cost included. What the profiler loads on first use may be in the
    first one."""
    gpus: Annotated[tuple[GpuActivity, ...], Field(min_length=1)]
    """Those that the profiler of the measuring process sees: all of the cell's in TensorFlow and JAX; in PyTorch, which
    has a process for each GPU, the first."""
    kernel_seconds_per_step: Seconds
    """`busy_seconds` of the busiest GPU over the number of profiled steps."""
    kernel_busy_share: Amount
    """`kernel_seconds_per_step` over the median step of the timed window, which no profiler slowed down: the part of a
    step in which the GPU had work. Above 1 where the kernels of the pass ran at lower clocks than those of the window,
    or the profiler slowed them down."""
    profiled_busy_share: Amount
    """`kernel_seconds_per_step` over the median of `step_seconds` but the first."""


class Calibration(Document):
    """What the machine did of such work in the cell's process, after the timed window and everything that follows it.

    None: not measured there, or others kept the threads from their cores meanwhile.
    """

    product_flops_per_second: PositiveAmount | None = None
    """Of a GPU: square matrix products (calibration.PRODUCT_SIZE) in the cell's precision, back to back. None on
    a CPU, where HostPeak has it."""
    copy_bytes_per_second: PositiveAmount | None = None
    """Bytes read and written per second of the fastest copy of `copy_bytes` within the device's memory."""
    copy_bytes: Bytes | None = None
    """How many bytes one copy reads, and writes as many."""
    cache_bytes: Bytes | None = None
    """Last level of cache that the copy has to pass: of the CPUs that the process may use, as far as the machine shows
    it, or of the GPU."""
    num_threads: Count | None = None
    """Threads that copied, on a CPU."""
    seconds: Seconds
    """What all of it took."""
