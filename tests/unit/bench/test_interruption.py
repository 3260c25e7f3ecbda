"""bench.worker.main: a measurement that is ended from outside leaves what it has, as a real process would."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from bench.exit_codes import EXIT_NOT_OK, EXIT_PREEMPTED
from bench.schema import Cell, Framework, Result
from bench.worker.request import Order
from factories import make_cell
from workspace import HANG_GUARD_SECONDS

ROOT = Path(__file__).parents[3]
# So long that it is never over: ended it must be. Its steps begin at once, without the measurement of the CPU's peak.
ENDLESS = make_cell(
    batch_size=2, num_warmup_steps=1, max_warmup_seconds=0.1, num_steps=10**9, min_seconds=0.0, sampling_seconds=0.0
)

# `python -m bench` that says when it has measured two steps.
TELLS_OF_STEPS = """
import runpy
from bench.measure import harness

class Steps(list):
    def append(self, seconds):
        super().append(seconds)
        if len(self) == 2:
            print("two steps", flush=True)

class TellingRecorder(harness.StepRecorder):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.steps = Steps()

harness.StepRecorder = TellingRecorder
runpy.run_module("bench", run_name="__main__", alter_sys=True)
"""


def start_bench(
    python: Path, cell: Cell, folder: Path, *program: str, timeout_seconds: float | None = None
) -> "subprocess.Popen[str]":
    """Start `python -m bench`, or `program` in its place, with the order to measure the cell."""
    order = Order(
        cell=cell,
        run_id="test-1",
        repeat=1,
        attempt="a1",
        store_url=f"file://{folder}/store",
        timeout_seconds=timeout_seconds,
    )
    path = {"PYTHONPATH": str(ROOT / "images" / "bench" / "src")}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("BENCH_")}
    return subprocess.Popen(
        [str(python), *(program or ("-m", "bench"))],
        env=inherited | path | order.to_variables(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
    )


def read_record(folder: Path, kind: str) -> Result:
    (path,) = (folder / "store" / "runs" / "test-1" / kind).glob("*/*.json")
    return Result.model_validate_json(path.read_bytes())


def test_sigterm_leaves_what_was_measured_beside_the_results(
    tmp_path: Path, interpreters: dict[Framework, Path]
) -> None:
    process = start_bench(interpreters["pytorch"], ENDLESS, tmp_path, "-c", TELLS_OF_STEPS)
    assert process.stdout is not None
    assert any(line == "two steps\n" for line in process.stdout)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=HANG_GUARD_SECONDS)

    assert process.returncode == EXIT_PREEMPTED, output
    result = read_record(tmp_path, "interrupted")
    assert (result.status, result.written_by) == ("preempted", "bench")
    assert result.error is not None
    assert result.error.signal == "SIGTERM"
    assert result.phases.build_seconds is not None
    assert result.samples is not None
    assert len(result.samples.step_seconds) > 1
    assert not list((tmp_path / "store" / "runs" / "test-1").glob("results/*/*.json"))


def test_the_end_of_the_time_is_a_terminal_record(tmp_path: Path, interpreters: dict[Framework, Path]) -> None:
    process = start_bench(interpreters["pytorch"], ENDLESS, tmp_path, timeout_seconds=1.5)
    output, _ = process.communicate(timeout=HANG_GUARD_SECONDS)

    assert process.returncode == EXIT_NOT_OK, output
    result = read_record(tmp_path, "results")
    assert result.status == "timeout"
    assert result.error is not None
    assert result.error.message == "still running after timeout_seconds = 1.5"


def test_a_child_of_the_process_dies_of_sigterm_and_the_process_gets_no_signal(tmp_path: Path) -> None:
    program = """
import os, signal, sys, time
from pathlib import Path
from bench.worker.attempt import Attempt
from bench.worker.delivery import Delivery
from bench.worker.main import Interruption
from bench.worker.request import Order
from bench.worker.shutdown import SigtermListener
from bench.store import Store
order = Order.from_variables(os.environ)
store = Store.open(order.store_url)
delivery = Delivery(store=store)
listener = SigtermListener()
listener.start()
Interruption(attempt=Attempt(order), terminal=delivery, interrupted=delivery, timeout_seconds=None).watch(listener)
child = os.fork()
if child == 0:
    time.sleep(60)
    os._exit(0)
os.kill(child, signal.SIGTERM)
_, status = os.waitpid(child, 0)
time.sleep(0.5)
print(os.WTERMSIG(status), "alive")
"""
    order = Order(cell=make_cell(), run_id="test-1", repeat=1, attempt="a1", store_url=f"file://{tmp_path}/store")
    environment = {**os.environ, **order.to_variables(), "PYTHONPATH": str(ROOT / "images" / "bench" / "src")}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "15 alive\n"), done.stderr
