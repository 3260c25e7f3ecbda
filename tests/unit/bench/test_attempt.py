"""One attempt from environment variables to its record: real frameworks in real processes, and every way to fail."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bench import __main__ as program
from bench.attempt import Attempt, summarize_error
from bench.exit_codes import EXIT_USER_ERROR
from bench.order import Order
from bench.probes.cpu import THREAD_VARIABLES
from bench.schema import MODES, Cell, Device, Framework, GpuUse, Result
from factories import make_cell
from fake_nvml import MIB, UUIDS, FakeNvml
from framework_programs import choose_core

ROOT = Path(__file__).parents[3]
FRAMEWORKS: tuple[Framework, ...] = ("pytorch", "tensorflow", "jax")
# What no processor does: 64 float32 operations a cycle (two AVX-512 FMA units) on every core at 6 GHz, each counting
# for 2.25 (what Winograd's convolution saves).
MAX_FLOP_PER_CORE_SECOND = 64 * 6e9 * 2.25
SHORT = {"num_warmup_steps": 2, "max_warmup_seconds": 2.0, "num_steps": 5, "min_seconds": 0.3}


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How `python -m bench` ended."""

    exit_code: int
    output: str
    result: Result | None
    started_at: datetime
    wall_seconds: float
    store: Path


def run_bench(
    python: Path | str,
    cell: Cell,
    folder: Path,
    *,
    preexec: Callable[[], None] | None = None,
    cwd: Path | None = None,
    **variables: str,
) -> Ending:
    """Run the order of one cell in a process and return how it ended; `variables` override the environment."""
    store = folder / "store"
    order = Order(cell=cell, run_id="test-1", repeat=2, attempt="a1", store_url=f"file://{store}")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("BENCH_")}
    path = {"PYTHONPATH": str(ROOT / "images" / "bench" / "src"), "TZ": "America/New_York"}
    path["XDG_CACHE_HOME"] = str(folder / "cache")  # where the host's measured peak is kept
    started_at, start = datetime.now(UTC), time.perf_counter()
    process = subprocess.run(
        [str(python), "-m", "bench"],
        env={**inherited, **path, **order.to_variables(), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=cwd or folder,
        preexec_fn=preexec,
    )
    wall_seconds = time.perf_counter() - start
    record = store / "runs" / "test-1" / "results" / cell.cell_id / "2-a1.json"
    return Ending(
        exit_code=process.returncode,
        output=process.stdout,
        result=Result.model_validate_json(record.read_bytes()) if record.exists() else None,
        started_at=started_at,
        wall_seconds=wall_seconds,
        store=store,
    )


# Real cells


CASES = {
    "pytorch train": make_cell(batch_size=8, **SHORT),
    "pytorch infer": make_cell(model="resnet18", phase="infer", batch_size=2, input_size=64, **SHORT),
    "tensorflow train": make_cell(framework="tensorflow", mode="graph", batch_size=8, **SHORT),
    "tensorflow infer": make_cell(
        framework="tensorflow", model="resnet18", phase="infer", batch_size=2, input_size=64, **SHORT
    ),
    "jax train": make_cell(framework="jax", mode="compiled", batch_size=8, **SHORT),
}


@pytest.fixture(scope="module", params=CASES)
def ok(
    request: pytest.FixtureRequest, interpreters: dict[Framework, Path], tmp_path_factory: pytest.TempPathFactory
) -> Ending:
    """How a cell ended that had one core: threads that wait for each other in turns take minutes on a busy machine."""
    cell = CASES[request.param]
    core = choose_core()
    return run_bench(
        interpreters[cell.framework],
        cell,
        tmp_path_factory.mktemp("ok"),
        preexec=lambda: os.sched_setaffinity(0, {core}),
    )


def get_result(ending: Ending) -> Result:
    assert ending.result is not None, ending.output[-3000:]
    return ending.result


def test_a_real_cell_ends_with_one_complete_record(ok: Ending) -> None:
    result = get_result(ok)
    assert (0, "ok", "bench", None) == (ok.exit_code, result.status, result.written_by, result.error)
    assert ("test-1", 2, "a1") == (result.run_id, result.repeat, result.attempt)
    assert 1 == sum(path.is_file() for path in ok.store.rglob("*"))


def test_a_real_cell_is_measured_as_long_as_it_asks_for(ok: Ending) -> None:
    result = get_result(ok)
    assert result.samples is not None
    assert result.phases.steady_seconds is not None
    assert len(result.samples.step_seconds) >= 5
    assert result.phases.steady_seconds >= 0.3
    assert len(result.samples.warmup_step_seconds) >= 2
    assert result.samples.device_step_seconds is None


def test_the_times_fit_into_what_an_outside_stopwatch_shows(ok: Ending) -> None:
    result = get_result(ok)
    phases = result.phases.model_dump()
    assert sum(phases.values()) <= (result.finished_at - result.started_at).total_seconds() <= ok.wall_seconds
    assert ok.started_at <= result.started_at
    assert result.finished_at <= ok.started_at + timedelta(seconds=ok.wall_seconds)
    assert phases["import_seconds"] > 0.05  # nothing of the framework was imported before the clock was read


def test_records_are_in_utc_wherever_they_are_written(ok: Ending) -> None:
    result = get_result(ok)
    assert (timedelta(0), timedelta(0)) == (result.started_at.utcoffset(), result.finished_at.utcoffset())


def test_no_step_is_faster_than_any_processor(ok: Ending) -> None:
    result = get_result(ok)
    assert result.samples is not None
    assert result.environment is not None
    # GMAC of one forward pass: Conv6 at 32 px 0.1539, ResNet18 1.814 at 224 px and (64 / 224)^2 of that at 64 px.
    # Training takes three times a forward pass, less the first layer's input gradient: 2.9 at the least.
    if result.cell.model == "conv6":
        flop = 2 * 0.1539e9 * 2.9 * result.cell.batch_size
    else:
        flop = 2 * 1.814e9 * (64 / 224) ** 2 * result.cell.batch_size
    fastest = flop / (result.environment.num_visible_cores * MAX_FLOP_PER_CORE_SECOND)
    assert fastest < min(result.samples.step_seconds)


def test_memory_is_the_processs_own_and_no_gpu_is_claimed(ok: Ending) -> None:
    result = get_result(ok)
    assert result.memory is not None
    assert result.environment is not None
    assert 100e6 < (result.memory.peak_rss_bytes or 0) < 4e9
    assert (None, None) == (result.memory.peak_memory_allocated_bytes, result.memory.peak_memory_reserved_bytes)
    assert result.environment.gpu is None


def test_a_real_cell_says_who_used_the_cpus_and_how_near_the_peak_it_came(ok: Ending) -> None:
    result = get_result(ok)
    assert result.cpu_use is not None
    assert result.roofline is not None
    assert result.validity is not None
    assert ((), ()) == (result.gpu_use, result.probe_failures)
    assert 0.0 < result.cpu_use.own_cores <= 1.1  # it had one core
    assert result.phases.steady_seconds is not None
    assert result.phases.steady_seconds <= result.cpu_use.window_seconds
    if result.roofline.share_of_peak is None:
        assert "not measured: others kept the cores busy meanwhile" == result.roofline.peak_source
    else:
        assert 0.0 < result.roofline.share_of_peak
        assert "arithmetic" == result.roofline.bound
        assert "matrix product on this host, 1 threads" in result.roofline.peak_source
    # 0.3 s asked for: so short that a verdict other than valid is certain, and "too-short" is among the reasons.
    if result.phases.steady_seconds < 0.5:
        assert "too-short" in [reason.verdict for reason in result.validity.reasons]


# Missing things


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_missing_framework_is_a_record_of_its_own_kind(tmp_path: Path, framework: Framework) -> None:
    # From the folder whose sub-folders have the frameworks' names: they must not pass for the frameworks.
    ending = run_bench(
        sys.executable, make_cell(framework=framework, mode=MODES[framework][0]), tmp_path, cwd=ROOT / "images"
    )
    result = get_result(ending)
    assert result.error is not None
    assert (1, "failed", "missing-framework") == (ending.exit_code, result.status, result.error.kind)
    assert "No module named" in result.error.message
    assert f"failed: {result.error.message}" in ending.output
    assert "Traceback" in result.error.stderr_tail
    assert result.phases.import_seconds is None


def test_folders_with_a_frameworks_name_do_not_pass_for_it(tmp_path: Path) -> None:
    for name in ("torch", "torchvision"):
        (tmp_path / name).mkdir()
    result = get_result(run_bench(sys.executable, make_cell(), tmp_path))
    assert result.error is not None
    assert ("failed", "missing-framework") == (result.status, result.error.kind)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_cell_for_a_gpu_fails_where_none_is_visible(
    tmp_path: Path, interpreters: dict[Framework, Path], framework: Framework
) -> None:
    cell = make_cell(framework=framework, mode=MODES[framework][0], device="gpu")
    ending = run_bench(
        interpreters[framework], cell, tmp_path, CUDA_VISIBLE_DEVICES="", BENCH_PARENT_PID=str(os.getpid())
    )
    result = get_result(ending)
    assert result.error is not None
    assert (1, "failed", "exception") == (ending.exit_code, result.status, result.error.kind)
    assert result.error.message.startswith("DeviceMissingError: ")
    assert "sees 0 GPUs" in result.error.message


def test_a_container_without_a_gpu_says_so_before_anything_is_imported(tmp_path: Path) -> None:
    ending = run_bench(sys.executable, make_cell(device="gpu"), tmp_path, CUDA_VISIBLE_DEVICES="")
    assert (EXIT_USER_ERROR, None) == (ending.exit_code, ending.result)
    assert "cannot be measured here: device: " in ending.output


# Out of memory


def limit_address_space(num_bytes: int) -> Callable[[], None]:
    """Return what makes a process unable to hold more than `num_bytes`, so that no test fills the machine."""
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (num_bytes, num_bytes))


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_batch_that_fits_nowhere_is_out_of_memory(
    tmp_path: Path, interpreters: dict[Framework, Path], framework: Framework
) -> None:
    cell = make_cell(framework=framework, mode=MODES[framework][0], batch_size=10**9)
    ending = run_bench(interpreters[framework], cell, tmp_path, preexec=limit_address_space(30 * 10**9))
    result = get_result(ending)
    assert result.error is not None
    assert (1, "oom", "out-of-memory") == (ending.exit_code, result.status, result.error.kind)
    # 10^9 images of 3 x 32 x 32 float32: 12.288e12 bytes, 11.2 TiB.
    assert "Unable to allocate 11.2 TiB" in result.error.message
    assert round(11.2 * 2**40) == result.error.bytes_requested
    assert (None, None) == (result.samples, result.phases.build_seconds)
    assert result.environment is not None


def test_activations_that_do_not_fit_are_out_of_memory(tmp_path: Path, interpreters: dict[Framework, Path]) -> None:
    cell = make_cell(batch_size=20_000)
    result = get_result(run_bench(interpreters["pytorch"], cell, tmp_path, preexec=limit_address_space(8 * 10**9)))
    assert result.error is not None
    assert ("oom", "out-of-memory") == (result.status, result.error.kind)
    # The first convolution's output: 20,000 x 64 x 32 x 32 float32.
    assert 5_242_880_000 == result.error.bytes_requested
    assert result.phases.build_seconds is not None
    assert result.phases.first_step_seconds is None


# Orders and stores that are wrong


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"BENCH_CELL": "{}"}, "error: BENCH_CELL: model: Field required"),
        ({"BENCH_REPEAT": "0"}, "error: BENCH_REPEAT: '0' is no whole number"),
        ({"BENCH_RUN_ID": "../x"}, "error: BENCH_RUN_ID: '../x' is no name"),
        ({"BENCH_STORE": ""}, "error: BENCH_STORE: not set"),
        ({"BENCH_STORE": "ftp://x"}, "error: store: 'ftp://' is unknown"),
        ({"BENCH_STORE": f"file://{__file__}/x"}, "error: store file://"),
    ],
)
def test_a_wrong_order_ends_with_one_line_and_exit_code_2(
    tmp_path: Path, variables: dict[str, str], message: str
) -> None:
    ending = run_bench(sys.executable, make_cell(), tmp_path, preexec=None, cwd=None, **variables)
    assert (2, None) == (ending.exit_code, ending.result)
    assert ending.output.startswith(message)
    assert 1 == len(ending.output.splitlines())


def test_the_store_is_tried_before_the_work(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    order = Order(cell=make_cell(), run_id="r", repeat=1, attempt="a", store_url="file:///sys/kernel")  # never writable
    for name, value in order.to_variables().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("bench.__main__.Attempt", lambda order: pytest.fail("the work was begun"))
    assert 2 == program.main()
    assert capsys.readouterr().err.startswith("error: store file:///sys/kernel: ")


# The record of whatever happens inside


class StubFramework:
    """A framework that is there; its model either cannot be built or does nothing, instantly."""

    versions = {"stub": "1"}
    settings: dict[str, str | int | bool] = {}
    cuda_version = None
    cudnn_version = None
    device_timer = None

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

    def synchronize(self) -> None:
        pass

    def reset_peak_memory(self) -> None:
        pass

    def device_kind(self) -> Device:
        return "cpu"

    def read_peak_memory(self) -> tuple[int, int]:
        return 1000 + self.num_steps, 2000

    def is_out_of_memory(self, error: BaseException) -> bool:
        return "no room" in str(error)


@pytest.fixture
def attempt_with(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Result]:
    """Runs an attempt in this process whose framework is a stub, or cannot be loaded."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in (*THREAD_VARIABLES, "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        monkeypatch.setenv(name, "")  # the attempt sets them for good

    def run(framework: StubFramework | Exception, visible: str | None = None, **fields: Any) -> Result:
        if visible is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)

        def load(cell: Cell, num_threads: int) -> Any:
            if isinstance(framework, Exception):
                raise framework
            return framework

        monkeypatch.setattr("bench.attempt.load_framework", load)
        cell = make_cell(**fields)
        order = Order(cell=cell, run_id="r", repeat=1, attempt="a", store_url="-", image="i@sha256:0", git_revision="g")
        return Attempt(order).run()

    return run


def test_an_attempt_records_image_revision_and_memory_at_the_end_of_the_window(
    attempt_with: Callable[..., Result],
) -> None:
    result = attempt_with(StubFramework(), num_steps=10)
    assert result.environment is not None
    assert result.memory is not None
    assert result.samples is not None
    assert ("i@sha256:0", "g") == (result.environment.image, result.environment.git_revision)
    steps = 1 + len(result.samples.warmup_step_seconds) + len(result.samples.step_seconds)
    assert 1000 + steps == result.memory.peak_memory_allocated_bytes
    assert 2000 == result.memory.peak_memory_reserved_bytes


@pytest.mark.parametrize(
    ("framework", "expected"),
    [
        (ModuleNotFoundError("No module named 'torch'"), ("failed", "missing-framework")),
        (ImportError("libcudart.so.13: cannot open shared object file"), ("failed", "missing-framework")),
        (MemoryError(), ("oom", "out-of-memory")),
        (RuntimeError("driver too old"), ("failed", "exception")),
        (StubFramework(ImportError("late")), ("failed", "exception")),
        (StubFramework(MemoryError("no array")), ("oom", "out-of-memory")),
        (StubFramework(RuntimeError("no room for 5 bytes")), ("oom", "out-of-memory")),
        (StubFramework(ZeroDivisionError("division by zero")), ("failed", "exception")),
    ],
    ids=lambda value: repr(getattr(value, "_error", value)),
)
def test_what_is_raised_becomes_a_status_and_a_kind(
    attempt_with: Callable[..., Result], framework: StubFramework | Exception, expected: tuple[str, str]
) -> None:
    result = attempt_with(framework)
    assert result.error is not None
    assert expected == (result.status, result.error.kind)
    assert result == Result.model_validate_json(result.to_json())


# What goes wrong around the timing


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    """Three idle GPUs, looked at for an instant."""
    library = FakeNvml()
    monkeypatch.setattr("pynvml.nvmlLib", library)
    monkeypatch.setattr("pynvml._nvmlGetFunctionPointer_cache", {})
    monkeypatch.setattr("bench.probes.gpu.IDLE_SECONDS", 0.01)
    return library


# Six steps of warm-up at the least, the first step before them, and three timed ones.
TEN_STEPS = {"num_steps": 3, "max_warmup_seconds": 1e-9, "num_warmup_steps": 6, "min_seconds": 0.0}


def test_a_gpu_cell_is_sampled_after_the_timing(attempt_with: Callable[..., Result], nvml: FakeNvml) -> None:
    framework = StubFramework()
    result = attempt_with(framework, device="gpu", num_gpus=2, sampling_seconds=0.01, visible="0,1", **TEN_STEPS)
    assert ("ok", ()) == (result.status, result.probe_failures)
    assert [UUIDS[0], UUIDS[1]] == [use.uuid for use in result.gpu_use]
    assert {framework.num_steps - 10} == {use.num_steps for use in result.gpu_use}
    assert framework.num_steps > 10
    assert result.memory is not None
    assert 1010 == result.memory.peak_memory_allocated_bytes  # read before the pass
    assert result.validity is not None
    assert "wrong-device" == result.validity.verdict  # the stub's output lives on the CPU


def test_no_sampling_pass_is_run_where_none_is_asked_for(attempt_with: Callable[..., Result], nvml: FakeNvml) -> None:
    framework = StubFramework()
    result = attempt_with(framework, device="gpu", sampling_seconds=0.0, visible="0", **TEN_STEPS)
    assert (10, None) == (framework.num_steps, result.gpu_use[0].window_seconds)


@pytest.mark.parametrize("error", [RuntimeError("no room"), ValueError("CUDA error: an illegal access\nmore")])
def test_a_sampling_pass_that_fails_costs_no_timing(
    attempt_with: Callable[..., Result], nvml: FakeNvml, error: Exception
) -> None:
    framework = StubFramework(late_error=error)
    result = attempt_with(framework, device="gpu", visible="0", **TEN_STEPS)
    first_line = str(error).splitlines()[0]
    assert (f"sampling pass: {type(error).__name__}: {first_line}",) == result.probe_failures
    (use,) = result.gpu_use
    assert ("ok", None, 3 * MIB) == (result.status, use.window_seconds, use.memory_used_before_bytes)
    assert isinstance(use, GpuUse)


def test_a_matrix_product_that_fails_costs_no_timing(attempt_with: Callable[..., Result]) -> None:
    result = attempt_with(StubFramework(late_error=RuntimeError("no product")), **TEN_STEPS)
    assert ("ok", ("peak of the host: RuntimeError: no product",)) == (result.status, result.probe_failures)
    assert result.roofline is not None
    assert ("the host's peak was not measured", None) == (result.roofline.peak_source, result.roofline.share_of_peak)


def test_a_gpu_that_cannot_be_looked_at_is_noted(attempt_with: Callable[..., Result]) -> None:
    result = attempt_with(RuntimeError("stop here"), device="gpu", visible="0")
    (note,) = result.probe_failures
    assert note.startswith("GPU baseline: NVMLError")


def test_a_failed_attempt_claims_no_peak_of_a_gpu(attempt_with: Callable[..., Result]) -> None:
    result = attempt_with(StubFramework(RuntimeError("no room")))
    assert result.memory is not None
    assert (None, None) == (result.memory.peak_memory_allocated_bytes, result.memory.peak_memory_reserved_bytes)
    assert (result.memory.peak_rss_bytes or 0) > 0


def test_an_error_that_utf_8_cannot_hold_is_recorded_all_the_same(attempt_with: Callable[..., Result]) -> None:
    result = attempt_with(StubFramework(OSError("no file 'a\udcffb'")))
    assert result.error is not None
    assert "OSError: no file 'a?b'" == result.error.message
    assert result == Result.model_validate_json(result.to_json())


def test_a_clock_that_is_set_back_meanwhile_costs_no_result(
    attempt_with: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    class GoingBack(datetime):
        times = [datetime(2026, 3, 1, 12, 0, tzinfo=UTC), datetime(2026, 3, 1, 11, 0, tzinfo=UTC)]

        @classmethod
        def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]  # Self there
            return cls.times.pop(0)

    monkeypatch.setattr("bench.attempt.datetime", GoingBack)
    result = attempt_with(StubFramework())
    assert ("ok", datetime(2026, 3, 1, 12, 0, tzinfo=UTC)) == (result.status, result.started_at)
    assert timedelta(0) < result.finished_at - result.started_at < timedelta(minutes=10)


@pytest.mark.parametrize(("device", "expected"), [("cpu", ""), ("gpu", "3")])
def test_a_cpu_cell_sees_no_gpu_and_a_gpu_cell_those_that_it_was_given(
    attempt_with: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, device: str, expected: str
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    attempt_with(RuntimeError("stop here"), device=device)
    assert (expected, "PCI_BUS_ID") == (os.environ["CUDA_VISIBLE_DEVICES"], os.environ["CUDA_DEVICE_ORDER"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one\ntwo", "RuntimeError: one"),
        ("\n\n  one  \n", "RuntimeError: one"),
        ("", "RuntimeError: no message"),
        ("x" * 10_000, "RuntimeError: " + "x" * 486),
        (
            "Graph execution error:\n\nDetected at node x defined at:\nfile t\n\nfailed to allocate memory\n\t [[x]]",
            "RuntimeError: failed to allocate memory",
        ),
        (
            "Exception encountered when calling Conv2D.call().\n\n\x1b[1m{{node}} OOM when allocating tensor with "
            "shape[20000,32,32,64] and type float\x1b[0m\n",
            "RuntimeError: {{node}} OOM when allocating tensor with shape[20000,32,32,64] and type float",
        ),
    ],
)
def test_an_error_is_summarized_in_one_line(text: str, expected: str) -> None:
    assert expected == summarize_error(RuntimeError(text))


# Orphans


START_AND_SLEEP = '''
import os, subprocess, sys
child = """
import os, time
from bench.parent import die_with_parent
die_with_parent(os.getppid())
print("ready", flush=True)
time.sleep(600)
"""
process = subprocess.Popen([sys.executable, "-c", child], stdout=subprocess.PIPE)
process.stdout.readline()
print(process.pid, flush=True)
process.wait()
'''


def test_the_measuring_process_dies_with_the_runner_even_by_sigkill() -> None:
    with subprocess.Popen([sys.executable, "-c", START_AND_SLEEP], stdout=subprocess.PIPE, text=True) as runner:
        assert runner.stdout is not None
        orphan = int(runner.stdout.readline())
        assert is_alive(orphan)
        runner.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 30
    while is_alive(orphan):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_process_whose_runner_is_already_dead_kills_itself() -> None:
    code = "from bench.parent import die_with_parent; die_with_parent(999_999_999)"
    assert -signal.SIGKILL == subprocess.run([sys.executable, "-c", code]).returncode


def is_alive(pid: int) -> bool:
    """Return whether the process runs; one that only waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False
