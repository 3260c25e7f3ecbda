"""Finds a cell's GPUs through NVML, in CUDA's order, and reads their use by this and other processes.

NVIDIA's MIG user guide ("CUDA device enumeration"): a process sees one MIG slice at most, the first one that is
available to it, and no GPU beside it that is not in MIG mode.

Use is read before the framework starts, in a sampling pass after the timed window, and just before and just after the
window, without a thread in it. What NVML and the driver count by themselves is read afterwards: the energy, for how
long which policy held the clock down, and the samples of the clock that some drivers keep. A thread that samples during
the window would take the interpreter's lock from the one that launches the work.
"""

import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from time import perf_counter, time
from typing import Any, NamedTuple

import pynvml

from bench.probes.nvml import Device, NvmlError, open_nvml
from bench.schema import ForeignProcess, Gpu, GpuUse, GpuWindow


def find_visible_devices(num_gpus: int) -> list[Device]:
    """Return the first `num_gpus` devices that CUDA shows to this process, fewer where it shows fewer.

    CUDA_VISIBLE_DEVICES holds indexes in the order of the PCI bus, UUIDs, or their beginnings; unset: every device. A
    GPU in MIG mode stands for its first slice. Raises NvmlError for a device that is not there.
    """
    text = os.environ.get("CUDA_VISIBLE_DEVICES")
    if text is None:
        handles = _list_gpus()
    else:
        handles = [_find_handle(entry.strip()) for entry in text.split(",") if entry.strip()]
    slices = [mig_slice for handle in handles for mig_slice in list_slices(handle)]
    whole = [handle for handle in handles if not _is_partitioned(handle)]
    return [Device(handle) for handle in slices[:1] or whole[:num_gpus]]


def find_first_uuid() -> str | None:
    """Return the UUID of the device that a cell with one GPU uses; None if there is none."""
    with suppress(NvmlError), open_nvml():
        return next((device.uuid for device in find_visible_devices(1)), None)
    return None


def restrict_to_cell(num_gpus: int) -> None:
    """Set CUDA_VISIBLE_DEVICES to the UUIDs of the cell's GPUs: frameworks open contexts on all that they see.

    For this process and those that it starts. Nothing is changed where the cell has no GPU here, or NVML cannot say.
    """
    try:
        with open_nvml():
            uuids = [device.uuid for device in find_visible_devices(num_gpus)]
    except NvmlError:
        return
    if uuids:
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(uuids)


def _list_gpus() -> list[Any]:
    return [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]


def _find_handle(entry: str) -> Any:
    if entry.isdigit():
        return pynvml.nvmlDeviceGetHandleByIndex(int(entry))
    if entry.startswith("GPU-"):
        for handle in _list_gpus():
            if pynvml.nvmlDeviceGetUUID(handle).startswith(entry):
                return handle
    return pynvml.nvmlDeviceGetHandleByUUID(entry)


def _is_slice(handle: Any) -> bool:
    return str(pynvml.nvmlDeviceGetUUID(handle)).startswith("MIG-")


def _is_partitioned(handle: Any) -> bool:
    """Return whether a GPU is in MIG mode; CUDA does not show it as a whole then. False before Ampere."""
    try:
        return not _is_slice(handle) and pynvml.nvmlDeviceGetMigMode(handle)[0] == pynvml.NVML_DEVICE_MIG_ENABLE
    except NvmlError:
        return False


def list_slices(handle: Any) -> Iterator[Any]:
    """Yield a slice itself, or the slices of a GPU that this process may use; a container may use some only."""
    if _is_slice(handle):
        yield handle
    elif _is_partitioned(handle):
        for index in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
            try:
                yield pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
            except NvmlError:
                continue


# The energy counter moves about every 0.1 s (ml-energy/zeus); half of that meets each of its values.
SAMPLE_INTERVAL_SECONDS = 0.05
# A GPU that has just worked cools down over seconds, and from Ampere on what NVML calls power is the mean of the last
# second. So the idle power is watched all the time that the framework's import takes, and the lowest second counts.
IDLE_SECONDS = 1.0
# The driver brings its counters up to date about every 0.1 s (ml-energy/zeus, of the energy's): one may so gain a
# little more than the window lasted. One that gained still more does not count nanoseconds, and is not believed.
COUNTER_DELAY_SECONDS = 0.2
MPS_PROGRAM = "nvidia-cuda-mps"
"""How the names of MPS's own processes begin, which the kernel cuts to 15 characters (proc_pid_comm(5))."""
DeviceMemory = tuple[int | None, Mapping[int, int]]
"""The bytes in use on a GPU, of all processes (None: not known) and of each of which NVML says it."""
Series = Sequence[Mapping[str, Any]]
"""What one device said at each sample of a sampling pass, as `Device.read_sample` returns it."""


class Reading(NamedTuple):
    """One device at one end of the window."""

    sm_clock_mhz: int | None
    energy_joules: float | None
    held_seconds: dict[str, float]


class GpuProbe:
    """The GPUs that a cell can use, up to `num_gpus`, and what is known of each: `uses`, from before the cell uses it.

    NVML is opened here and stays open. A probe that raises leaves `uses` as they were.
    """

    def __init__(self, num_gpus: int, *, is_under_mps: bool = False) -> None:
        pynvml.nvmlInit()  # it takes tens of milliseconds: here and not beside the window
        self._is_under_mps = is_under_mps
        self._devices = find_visible_devices(num_gpus)
        self.uses = tuple(map(self._read_baseline, self._devices))

    def _read_baseline(self, device: Device) -> GpuUse:
        processes = device.read_compute_processes()
        if processes is not None:
            servers = self._find_servers(processes)  # they compute for the cell
            processes = tuple(process for process in processes if process.pid not in servers)
        return device.read_baseline(processes)

    def watch_idle(self) -> Callable[[], None]:
        """Watch the power of the idle GPUs until what is returned is called.

        It must be before the first framework's context is there: a context alone lifts a GPU out of its idle state.
        """
        powers: list[list[float]] = [[] for _ in self._devices]

        def look() -> None:
            for device, watts in zip(self._devices, powers, strict=True):
                watts.extend(power for power in [device.read_power_watts()] if power is not None)

        stop = start_sampling(look)

        def end() -> None:
            stop()
            num_values = max(1, round(IDLE_SECONDS / SAMPLE_INTERVAL_SECONDS))
            self._add({"idle_power_watts": find_lowest_mean(watts, num_values)} for watts in powers)

        return end

    def watch_window(self) -> Callable[[], None]:
        """Read the GPUs just before the window; just after it, what is returned is to be called."""
        start, start_of_day = perf_counter(), time()
        before = list(map(_read_ends, self._devices))

        def end() -> None:
            after = list(map(_read_ends, self._devices))
            seconds = perf_counter() - start
            clocks = [device.read_clock_samples(start_of_day, seconds) for device in self._devices]
            ends = zip(before, after, clocks, strict=True)
            self._add({"window": compare_readings(first, last, seconds, series)} for first, last, series in ends)

        return end

    def sample(self, run_steps: Callable[[], int]) -> None:
        """Call `run_steps`, which returns how many steps it ran to their end, and sample every device in a thread."""
        samples: list[Series] = []
        start = perf_counter()
        end_sampling = start_sampling(lambda: samples.append([device.read_sample(start) for device in self._devices]))
        try:
            num_steps = run_steps()
        finally:
            window_seconds = perf_counter() - start
            end_sampling()
        self._add(summarize_pass(series, window_seconds, num_steps) for series in zip(*samples, strict=True))

    def look_for_neighbours(self, own_pids: Collection[int]) -> None:
        """Look for the users of each GPU other than `own_pids`, who must be using the GPUs now."""
        self._add(self._find_neighbours(device, own_pids) for device in self._devices)

    def _find_neighbours(self, device: Device, own_pids: Collection[int]) -> dict[str, Any]:
        """Return what is known now: in a container, who does not see itself by its own number sees nobody."""
        processes = device.read_compute_processes() or ()
        own_pids = {*own_pids, *self._find_servers(processes)}
        sizes = [process.memory_bytes for process in processes if process.pid in own_pids]
        used, free = device.read_memory_bytes()
        found: dict[str, Any] = {"memory_free_after_bytes": free, "processes_visible": bool(sizes)}
        if sizes:
            is_known = used is not None and None not in sizes
            found |= {
                "foreign_processes_after": tuple(process for process in processes if process.pid not in own_pids),
                "foreign_memory_after_bytes": max(0, (used or 0) - sum(filter(None, sizes))) if is_known else None,
            }
        return found

    def read_memory(self) -> DeviceMemory:
        device = self._devices[0]
        processes = device.read_compute_processes() or ()
        sizes = {process.pid: process.memory_bytes for process in processes if process.memory_bytes is not None}
        return device.read_memory_bytes()[0], sizes

    def _find_servers(self, processes: Sequence[ForeignProcess]) -> frozenset[int]:
        return find_mps_servers([process.pid for process in processes]) if self._is_under_mps else frozenset()

    def _add(self, found: Iterable[Mapping[str, Any]]) -> None:
        pairs = zip(self.uses, found, strict=True)
        self.uses = tuple(use.model_copy(update=update) for use, update in pairs)


def read_gpus(num_gpus: int, cuda_version: str | None, cudnn_version: str | None) -> tuple[Gpu, ...]:
    with open_nvml():
        return tuple(device.describe(cuda_version, cudnn_version) for device in find_visible_devices(num_gpus))


def start_sampling(look: Callable[[], None]) -> Callable[[], None]:
    """Call `look` in a thread, every SAMPLE_INTERVAL_SECONDS and once at least, until what is returned is called."""
    stop = threading.Event()

    def run() -> None:
        is_over = False
        while not is_over:
            look()
            is_over = stop.wait(SAMPLE_INTERVAL_SECONDS)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def end() -> None:
        stop.set()
        thread.join()

    return end


def find_lowest_mean(values: Sequence[float], length: int) -> float | None:
    if not values:
        return None
    length = min(length, len(values))
    return min(sum(values[start : start + length]) / length for start in range(len(values) - length + 1))


def summarize_pass(series: Series, window_seconds: float, num_steps: int) -> dict[str, Any]:
    """Return what one device did in a sampling pass, by the names of GpuUse's fields."""
    energy_joules, energy_source = measure_energy(series, window_seconds)
    reasons = _find_complete(series, "throttle_reasons")
    given = [reason for sample in reasons for reason in sample]
    names = ("sm_clock_mhz", "temperature_celsius", "power_watts", "utilization")
    return {
        "memory_used_peak_bytes": max((sample["memory_used_bytes"] or 0 for sample in series), default=0) or None,
        "window_seconds": window_seconds,
        "num_steps": num_steps,
        "energy_joules": energy_joules,
        "energy_source": energy_source,
        "sample_seconds": tuple(sample["seconds"] for sample in series),
        "throttle_reasons": {reason: given.count(reason) / len(reasons) for reason in sorted(set(given))},
        "sample_reasons": reasons,
    } | {name: _find_complete(series, name) for name in names}


def measure_energy(series: Series, window_seconds: float) -> tuple[float | None, str | None]:
    """Return the joules of a pass, its mean power times its length, and where the mean power is from.

    The energy counter moves in jumps: the mean power is its growth from one jump to another over the time between them.
    Where it moves less than twice in the pass, falls (a driver that was reset begins at 0 again), or is not there: the
    mean of the power samples.
    """
    joules = _find_complete(series, "energy_joules")
    if any(later < earlier for earlier, later in pairwise(joules)):
        joules = ()
    jumps = [index for index in range(1, len(joules)) if joules[index] != joules[index - 1]]
    if len(jumps) >= 2:
        first, last = jumps[0], jumps[-1]
        watts = (joules[last] - joules[first]) / (series[last]["seconds"] - series[first]["seconds"])
        return watts * window_seconds, "energy-counter"
    powers = _find_complete(series, "power_watts")
    if powers:
        return sum(powers) / len(powers) * window_seconds, "power-samples"
    return None, None


def _find_complete(series: Series, name: str) -> tuple[Any, ...]:
    """Return one reading of every sample; nothing where one of them lacks it."""
    readings = tuple(sample[name] for sample in series)
    return () if None in readings else readings


def compare_readings(before: Reading, after: Reading, seconds: float, clocks: tuple[int, ...]) -> GpuWindow:
    """Return what happened between two readings that lie `seconds` apart; `clocks`: the driver's samples, MHz."""
    energy_joules = None
    if before.energy_joules is not None and after.energy_joules is not None:
        energy_joules = max(0.0, after.energy_joules - before.energy_joules)
    growth = {
        name: after.held_seconds[name] - held
        for name, held in before.held_seconds.items()
        if name in after.held_seconds
    }
    return GpuWindow(
        seconds=seconds,
        sm_clock_before_mhz=before.sm_clock_mhz,
        sm_clock_after_mhz=after.sm_clock_mhz,
        sm_clock_mhz=clocks,
        energy_joules=energy_joules,
        held_seconds={
            name: min(held, seconds) for name, held in growth.items() if 0 <= held <= seconds + COUNTER_DELAY_SECONDS
        },
    )


def _read_ends(device: Device) -> Reading:
    return Reading(device.read_sm_clock_mhz(), device.read_energy_joules(), device.read_held_seconds())


def find_mps_servers(pids: Collection[int]) -> frozenset[int]:
    found = set()
    for pid in pids:
        with suppress(OSError):  # of another namespace, or ended
            if Path(f"/proc/{pid}/comm").read_text(errors="replace").startswith(MPS_PROGRAM):
                found.add(pid)
    return frozenset(found)
