"""Observes the machine around one measurement: idle GPUs before it, memory, GPU counters and roofline after it.

Nothing here happens inside the timed window. A probe that fails is noted in `failures` and does not end the attempt.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import TypeVar

from bench.device_profile import profile_steps
from bench.frameworks.interface import Framework
from bench.harness import Workload, run_steps
from bench.host_peak import find_host_peaks
from bench.models.flops import count_step_cost
from bench.peaks import Peaks, find_gpu_peaks
from bench.probes.gpu import IdleWatch, read_gpu_baselines, sample_gpus
from bench.probes.gpu_window import WindowWatch
from bench.probes.memory import read_peak_cgroup_bytes, read_peak_rss_bytes
from bench.roofline import make_roofline
from bench.schema import Cell, DeviceProfile, Environment, GpuUse, Memory, Roofline, Samples

T = TypeVar("T")


class Observer:
    """The probes of one attempt, in the order in which they are called."""

    def __init__(self, cell: Cell, num_threads: int) -> None:
        self._cell = cell
        self._num_threads = num_threads
        self._idle_watch: IdleWatch | None = None
        self.gpu_use: tuple[GpuUse, ...] = ()
        self.failures: list[str] = []
        """One line for each probe that failed."""

    def read_baseline(self) -> None:
        """Read the state of the cell's GPUs, before the framework is imported: it takes memory as soon as it starts."""
        if self._cell.device == "gpu":
            self.gpu_use = self.try_probe("GPU baseline", lambda: read_gpu_baselines(self._cell.num_gpus), ())
        if self.gpu_use:
            self._idle_watch = self.try_probe("idle power", lambda: IdleWatch(self.gpu_use), None)

    def end_idle_watch(self) -> None:
        """Note the idle power of the GPUs; the framework is imported and has no context on them yet."""
        watch = self._idle_watch
        if watch is not None:
            self.gpu_use = self.try_probe("idle power", watch.end, self.gpu_use)

    @contextmanager
    def watch_window(self) -> Iterator[None]:
        """Read the GPUs' clocks and counters before and after the body, which is the timed window."""
        watch: WindowWatch | None = None
        if self.gpu_use:
            watch = self.try_probe("GPUs in the window", lambda: WindowWatch(self.gpu_use), None)
        yield
        if watch is not None:
            self.gpu_use = self.try_probe("GPUs in the window", watch.end, self.gpu_use)

    def read_memory(self, framework: Framework) -> Memory:
        """Return the peaks, right after the timed window: what comes later would add to them."""
        unknown: tuple[int | None, int | None] = (None, None)
        allocated, reserved = self.try_probe("peak memory of the GPU", framework.read_peak_memory, unknown)
        return Memory(
            peak_rss_bytes=read_peak_rss_bytes(),
            peak_cgroup_bytes=self.try_probe("peak memory of the cgroup", read_peak_cgroup_bytes, None),
            peak_memory_allocated_bytes=allocated,
            peak_memory_reserved_bytes=reserved,
        )

    def sample_gpus(self, workload: Workload) -> None:
        """Run the sampling pass: steps as in the timed window, while the GPUs' counters are read."""
        baselines, seconds = self.gpu_use, self._cell.sampling_seconds
        if baselines and seconds > 0:
            self.gpu_use = self.try_probe(
                "sampling pass", lambda: sample_gpus(baselines, lambda: run_steps(workload, seconds)), baselines
            )

    def profile_steps(self, workload: Workload, framework: Framework, samples: Samples) -> DeviceProfile | None:
        """Run the profiler pass of a GPU cell and return how long its GPUs were busy; None where there is none."""
        cell = self._cell
        if cell.device != "gpu" or cell.num_profiled_steps == 0:
            return None
        return self.try_probe(
            "profiler pass",
            lambda: profile_steps(
                workload,
                framework.record_activities,
                source=framework.profiler_name,
                num_steps=cell.num_profiled_steps,
                median_step_seconds=median(samples.step_seconds),
            ),
            None,
        )

    def make_roofline(self, framework: Framework, environment: Environment, samples: Samples) -> Roofline | None:
        """Return the roofline of the median step. On a CPU this may measure the host's peak: all else must be over."""
        step_seconds = median(samples.step_seconds)
        peaks = self._find_peaks(framework, environment, step_seconds)
        return self.try_probe("roofline", lambda: make_roofline(self._cell, step_seconds, peaks), None)

    def try_probe(self, name: str, probe: Callable[[], T], fallback: T) -> T:
        """Return what `probe` returns; `fallback`, and a note, where it raises."""
        try:
            return probe()
        except Exception as error:  # whatever it is: the timing is worth more than a probe
            text = str(error).strip().splitlines() or ["no message"]
            self.failures.append(f"{name}: {type(error).__name__}: {text[0]}"[:500])
            return fallback

    def _find_peaks(self, framework: Framework, environment: Environment, step_seconds: float) -> Peaks:
        cell = self._cell
        if cell.device == "gpu":
            return find_gpu_peaks([gpu.name for gpu in environment.gpus], cell.precision)
        unknown = Peaks(
            flops_per_second=None, bytes_per_second=None, cache_bytes=0, source="the host's peak was not measured"
        )
        return self.try_probe(
            "peak of the host",
            lambda: find_host_peaks(
                cell, self._num_threads, count_step_cost(cell).flops / step_seconds, framework.build_workload
            ),
            unknown,
        )
