"""Observes the machine around one measurement: idle GPUs before it, memory, GPU counters and roofline after it.

Nothing here happens inside the timed window. A probe that fails is noted in `failures` and does not end the attempt.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, ParamSpec, TypeVar

from bench.frameworks.interface import Framework
from bench.measure.calibration import calibrate_cpu, calibrate_gpu
from bench.measure.harness import Workload, run_steps
from bench.measure.host_peak import find_host_peaks, make_host_peak, measure_matrix_product, repeat_undisturbed
from bench.measure.passes import profile_steps, run_pipelined, run_sustained
from bench.measure.roofline import find_gpu_peaks, make_roofline
from bench.probes import try_probe
from bench.probes.cpu import list_own_pids
from bench.probes.gpu import DeviceMemory, GpuProbe
from bench.probes.memory import read_peak_cgroup_bytes, read_peak_rss_bytes, reset_peak_rss
from bench.schema import Calibration, Cell, Environment, GpuUse, HostPeak, Memory, Roofline, Samples

T = TypeVar("T")
P = ParamSpec("P")


class Observer:
    """The probes of one attempt, in the order in which they are called."""

    def __init__(self, cell: Cell, num_threads: int, *, is_under_mps: bool = False) -> None:
        self._cell = cell
        self._is_under_mps = is_under_mps
        self._num_threads = num_threads
        self._gpus: GpuProbe | None = None
        self._end_idle_watch: Callable[[], None] | None = None
        self._host_before: tuple[float, float] | None = None
        self._peak_rss_before_bytes = 0
        self.host_peak: HostPeak | None = None
        """Of a CPU cell, once its roofline was made."""
        self.calibration: Calibration | None = None
        self.failures: list[str] = []
        """One line for each probe that failed."""

    def read_baseline(self, *, watches_idle: bool = True) -> None:
        """Read the state of the cell's GPUs, before the framework is imported: it takes memory as soon as it starts.

        `watches_idle`: whether nobody else is going to use them during the import, so that their idle power shows.
        """
        if self._cell.device == "gpu":
            gpus = self.run("GPU baseline", None, GpuProbe, self._cell.num_gpus, is_under_mps=self._is_under_mps)
            self._gpus = gpus if gpus and gpus.uses else None
        if self._gpus and watches_idle:
            self._end_idle_watch = self.run("idle power", None, self._gpus.watch_idle)

    @property
    def gpu_use(self) -> tuple[GpuUse, ...]:
        return self._gpus.uses if self._gpus else ()

    def end_idle_watch(self) -> None:
        if self._end_idle_watch is not None:
            self.run("idle power", None, self._end_idle_watch)

    def measure_host_before(self, framework: Framework) -> None:
        """Measure the host's matrix product before the first step of a CPU cell; its memory enters no peak."""
        if self._measures_host:
            self._peak_rss_before_bytes = self.read_peak_rss() or 0
            self._host_before = self._measure_host(framework, "before")
            self.run("peak memory without the matrix product", None, reset_peak_rss)

    @contextmanager
    def watch_window(self) -> Iterator[None]:
        """Read the GPUs' clocks and counters before and after the body, which is the timed window."""
        end = self.run("GPUs in the window", None, self._gpus.watch_window) if self._gpus else None
        yield
        if end is not None:
            self.run("GPUs in the window", None, end)

    def read_memory(self, framework: Framework) -> Memory:
        """Return the peaks, right after the timed window: what comes later would add to them."""
        unknown: tuple[int | None, int | None] = (None, None)
        allocated, reserved = self.run("peak memory of the GPU", unknown, framework.read_peak_memory)
        peak_rss = self.read_peak_rss()
        return Memory(
            peak_rss_bytes=None if peak_rss is None else max(self._peak_rss_before_bytes, peak_rss),
            peak_cgroup_bytes=self.run("peak memory of the cgroup", None, read_peak_cgroup_bytes),
            peak_memory_allocated_bytes=allocated,
            peak_memory_reserved_bytes=reserved,
        )

    def read_peak_rss(self) -> int | None:
        return self.run("peak memory of the process", None, read_peak_rss_bytes)

    def look_for_neighbours(self, tenant_pids: Callable[[], frozenset[int]] = frozenset) -> None:
        """Look who uses the GPUs beside this process and those of the cell's other tenants, which hold their memory."""
        if self._gpus:
            gpus = self._gpus
            self.run("neighbours on the GPU", None, lambda: gpus.look_for_neighbours(list_own_pids() | tenant_pids()))

    def read_device_memory(self) -> DeviceMemory:
        """Return what several tenants hold on their GPU."""
        nothing: DeviceMemory = (None, {})
        return self.run("memory of the tenants", nothing, self._gpus.read_memory) if self._gpus else nothing

    def run_passes(self, workload: Workload, framework: Framework, samples: Samples) -> dict[str, Any]:
        """Run what comes after the timed window, while this process still holds the GPUs; return a Result's fields.

        What is missing was not asked for, or failed. The profiler comes last: it stays attached to the driver.
        """
        cell, step_seconds = self._cell, samples.center_step_seconds
        passes: dict[str, Any] = {}
        on_gpu = cell.device == "gpu"
        self.look_for_neighbours()
        if on_gpu and cell.pipelined_seconds:
            pipelined = partial(run_pipelined, workload, cell.pipelined_seconds, step_seconds)
            passes["pipelined"] = self.run("pipelined window", None, pipelined)
        if self._gpus and cell.sampling_seconds > 0:
            self.run("sampling pass", None, self._gpus.sample, partial(run_steps, workload, cell.sampling_seconds))
        if cell.sustain_seconds:
            passes["sustained"] = self.run("sustained run", None, run_sustained, workload, cell.sustain_seconds)
        if on_gpu and cell.num_profiled_steps:
            profile = partial(profile_steps, workload, framework.record_activities, source=framework.profiler_name)
            passes["device_profile"] = self.run("profiler pass", None, profile, cell.num_profiled_steps, step_seconds)
        return passes

    def make_roofline(self, framework: Framework, environment: Environment, samples: Samples) -> Roofline | None:
        """Return the roofline of a step. On a CPU this measures the host's peak: all else must be over."""
        cell = self._cell
        if cell.device == "gpu":
            peaks = find_gpu_peaks([gpu.name for gpu in environment.gpus], cell.precision)
        else:
            products = (self._host_before, self._measure_host(framework, "after"))
            self.host_peak = self.run("peak of the host", None, make_host_peak, cell, self._num_threads, *products)
            peaks = find_host_peaks(self.host_peak)
        return self.run("roofline", None, make_roofline, cell, samples.center_step_seconds, peaks)

    def calibrate(self, framework: Framework, environment: Environment) -> None:
        """Calibrate the machine, after everything else; not for several GPUs, of which each would be another machine's.

        A cell whose `sampling_seconds` are 0 wants nothing to be observed beyond its window.
        """
        cell = self._cell
        if cell.sampling_seconds <= 0 or cell.num_gpus > 1:
            return
        if cell.device == "cpu":
            calibrate = partial(calibrate_cpu, self._num_threads)
        else:
            names = [gpu.name for gpu in environment.gpus]
            calibrate = partial(calibrate_gpu, cell, framework.build_product, names)
        self.calibration = self.run("calibration", None, calibrate)

    def run(self, name: str, fallback: T, probe: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return try_probe(self.failures, name, lambda: probe(*args, **kwargs), fallback)

    @property
    def _measures_host(self) -> bool:
        return self._cell.device == "cpu" and self._cell.sampling_seconds > 0

    def _measure_host(self, framework: Framework, when: str) -> tuple[float, float] | None:
        if not self._measures_host:
            return None
        measure = partial(measure_matrix_product, self._cell, framework.build_workload)
        return self.run(f"matrix product {when} the window", None, repeat_undisturbed, self._num_threads, measure)
