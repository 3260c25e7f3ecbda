"""Workloads whose steps take scripted times, on a clock that only they move."""

from collections.abc import Iterator

from bench.measure.harness import DeviceTimer, Workload
from bench.schema import Device


class Clock:
    """Seconds that pass only when `advance` says so; every reading is noted in `log`."""

    def __init__(self) -> None:
        self.now = 100.0
        self.log: list[str] = []

    def read(self) -> float:
        self.log.append("clock")
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


class ScriptedWorkload(Workload):
    """Steps that take the scripted durations, either in `run_step` or, as on a GPU, while `synchronize` waits."""

    def __init__(
        self,
        clock: Clock,
        durations: Iterator[float],
        *,
        is_asynchronous: bool = False,
        launch_seconds: float = 0.0,
        device_timer: "ScriptedTimer | None" = None,
    ) -> None:
        self._clock = clock
        self._durations = durations
        self._is_asynchronous = is_asynchronous
        self._launch_seconds = launch_seconds
        self._timer = device_timer
        self._pending = 0.0
        self.device_timer: DeviceTimer | None = device_timer

    def spin_up(self) -> None:
        self._clock.log.append("spin-up")
        self._clock.advance(1.0)

    def run_step(self) -> None:
        self._clock.log.append("step")
        self._clock.advance(self._launch_seconds)
        self._pending += next(self._durations)
        if self._timer is not None:
            self._timer.queue(self._pending)
        if not self._is_asynchronous:
            self._finish()

    def synchronize(self) -> None:
        self._clock.log.append("synchronize")
        self._finish()

    def reset_peak_memory(self) -> None:
        self._clock.log.append("reset")

    def device_kind(self) -> Device:
        return "cpu"

    def is_compiled(self) -> bool:
        return False

    def _finish(self) -> None:
        self._clock.advance(self._pending)
        self._pending = 0.0


class ScriptedTimer:
    """Events numbered in the order in which they were recorded, on a device whose clock counts queued work only."""

    def __init__(self) -> None:
        self._device_seconds = 0.0
        self.events: list[tuple[int, float]] = []

    def queue(self, seconds: float) -> None:
        self._device_seconds += seconds

    def make_event(self) -> list[float]:
        return []

    def record(self, event: list[float]) -> None:
        self.events.append((len(self.events), self._device_seconds))
        event[:] = self.events[-1]

    def read_seconds(self, start: list[float], end: list[float]) -> float:
        assert end[0] == start[0] + 1  # a pair, not across steps
        return end[1] - start[1]
