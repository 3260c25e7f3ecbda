"""A framework for attempts in the process of a test: its model does nothing, instantly, or cannot be built."""

from collections.abc import Callable

from bench.frameworks.interface import Framework
from bench.measure.harness import Workload
from bench.measure.passes import DeviceActivity
from bench.schema import Cell, Device

# Six steps of warm-up at the least, the first step before them, and three timed ones.
TEN_STEPS = {
    "num_steps": 3,
    "max_warmup_seconds": 1e-9,
    "num_warmup_steps": 6,
    "min_seconds": 0.0,
    "num_profiled_steps": 0,
    "pipelined_seconds": 0.0,
}


class StubFramework(Framework, Workload):
    """A framework that is there; its model either cannot be built or does nothing, instantly."""

    versions = {"stub": "1"}
    settings: dict[str, str | int | bool] = {}
    cuda_version = None
    cudnn_version = None

    def __init__(self, error: Exception | None = None, *, late_error: Exception | None = None) -> None:
        self._error = error
        self._late_error = late_error
        """What every step raises after the first 10."""
        self.num_steps = 0

    def build_workload(self, cell: Cell) -> "StubFramework":
        if self._error is not None:
            raise self._error
        return self

    def run_step(self) -> None:
        if self._late_error is not None and self.num_steps == 10:
            raise self._late_error
        self.num_steps += 1

    def device_kind(self) -> Device:
        return "cpu"

    def is_compiled(self) -> bool:
        return False

    def read_peak_memory(self) -> tuple[int, int]:
        return 1000 + self.num_steps, 2000

    def is_out_of_memory(self, error: BaseException) -> bool:
        return "no room" in str(error)


class ProfiledFramework(StubFramework):
    """A framework whose profiler sees one kernel of a microsecond, however many steps are run."""

    profiler_name = "jax.profiler"

    def record_activities(self, run: Callable[[], None]) -> list[DeviceActivity]:
        run()
        return [DeviceActivity(device_index=0, kind="kernel", start_ns=0.0, end_ns=1e3)]
