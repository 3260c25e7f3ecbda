"""Watches a cell's GPUs through the timed window without a thread: it reads them just before and just after it.

What NVML and the driver count by themselves is read afterwards: the energy, for how long which policy held the clock
down, and the samples of the clock that some drivers keep. A thread that samples during the window would take the
interpreter's lock from the one that launches the work.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from time import perf_counter, time

from bench.probes.nvml import Device, open_nvml
from bench.probes.visible_gpus import find_visible_devices
from bench.schema import GpuUse, GpuWindow

# The driver brings its counters up to date about every 0.1 s (ml-energy/zeus, of the energy's): one may so gain a
# little more than the window lasted. One that gained still more does not count nanoseconds, and is not believed.
COUNTER_DELAY_SECONDS = 0.2


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One device at one end of the window."""

    sm_clock_mhz: int | None
    energy_joules: float | None
    held_seconds: dict[str, float]


class WindowWatch:
    """The GPUs of a cell from the making of the watch, just before the window, until it is asked, just after it."""

    def __init__(self, uses: Sequence[GpuUse]) -> None:
        self._uses = tuple(uses)
        self._nvml = ExitStack()
        self._nvml.enter_context(open_nvml())  # it takes tens of milliseconds: here and not after the window
        self._devices = find_visible_devices(len(self._uses))
        self._start, self._start_of_day = perf_counter(), time()
        self._before = [_read(device) for device in self._devices]

    def end(self) -> tuple[GpuUse, ...]:
        """Return what is known of each GPU with its window."""
        after = [_read(device) for device in self._devices]
        seconds = perf_counter() - self._start
        with self._nvml:
            clocks = [_read_clocks(device, self._start_of_day, seconds) for device in self._devices]
        ends = zip(self._uses, self._before, after, clocks, strict=True)
        return tuple(
            use.model_copy(update={"window": compare_readings(first, last, seconds, series)})
            for use, first, last, series in ends
        )


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


def _read(device: Device) -> Reading:
    return Reading(
        sm_clock_mhz=device.read_sm_clock_mhz(),
        energy_joules=device.read_energy_joules(),
        held_seconds=device.read_held_seconds(),
    )


def _read_clocks(device: Device, start: float, seconds: float) -> tuple[int, ...]:
    """Return the driver's samples of the clock from `start` (seconds since 1970) for `seconds`."""
    samples = device.read_clock_samples(int(start * 1e6))
    return tuple(clock for moment, clock in samples if start <= moment / 1e6 <= start + seconds)
