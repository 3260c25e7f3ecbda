"""runner.probe.search and its command: the search as users meet it, over stand-ins for a Python and over a real one."""

import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.capabilities import GpuKind
from bench.schema import Framework
from factories import make_cell, make_failed_result, make_memory, make_result
from fake_interpreters import is_running, make_interpreter, make_measuring_interpreter, read_log
from memory_cgroup import MemoryCgroup
from runner import cli
from runner.local.host_lock import hold_host_lock
from runner.probe.search import ProbeReport, name_outcome, read_peak_bytes
from workspace import PROGRAM, Workspace, open_terminal

GIB = 2**30
REAL_SEARCH_SECONDS = 240.0
CallProbe = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call_probe(workspace: Workspace, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> CallProbe:
    """Calls `probe conv6 --python ./python` in this process; 11 samples fit. Returns exit code, stdout and stderr."""
    make_measuring_interpreter(workspace.folder / "python", log=workspace.log, num_samples_that_fit=11)
    monkeypatch.setattr("runner.commands.probe.find_gpu", lambda: None)

    def call(*words: str, model: str = "conv6") -> tuple[int, str, str]:
        monkeypatch.chdir(workspace.folder)
        monkeypatch.setattr(sys, "argv", ["benchmatrix", "probe", model, "--python", "./python", *words])
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert isinstance(end.value.code, int)
        return end.value.code, *capfd.readouterr()

    return call


def read_report(text: str) -> ProbeReport:
    return ProbeReport.model_validate_json(text)


def test_every_try_is_printed_and_the_largest_batch_at_the_end(call_probe: CallProbe, workspace: Workspace) -> None:
    code, out, err = call_probe()

    assert (0, "") == (code, err)
    first, *tries, last = out.splitlines()
    assert "probing conv6, pytorch, train, fp32, eager on the CPU: up to batch 65,536 and 1,800 s" == first
    assert ["1", "2", "4", "8", "16", "12", "10", "11"] == [line.split()[1] for line in tries]
    outcomes = ["fits"] * 4 + ["out-of-memory"] * 2 + ["fits"] * 2
    assert outcomes == [line.split()[2] for line in tries]
    assert tries[0].endswith(" s  peak 1.00 GiB")
    assert tries[4].endswith(" s  asked for 16.00 GiB")
    assert re.fullmatch(r"largest batch that fits into \d+\.\d\d GiB, the memory to be had here: 11 \(12 .*\)", last)
    assert 8 == len(read_log(workspace.log))  # each try in a process of its own


def test_nothing_is_left_but_what_was_printed(call_probe: CallProbe, workspace: Workspace, lock_folder: Path) -> None:
    call_probe()

    assert ["benchmatrix.lock"] == [path.name for path in lock_folder.iterdir()]
    assert not (workspace.folder / "results").exists()


def test_json_goes_to_stdout_and_the_tries_to_stderr(call_probe: CallProbe) -> None:
    code, out, err = call_probe("--json", "--phase", "infer", "--precision", "bf16", "--input-size", "64")

    report = read_report(out)
    assert (0, 11, 12, "found") == (
        code,
        report.largest_batch_size,
        report.smallest_failing_batch_size,
        report.ended_by,
    )
    assert ("conv6", "infer", "bf16", 64, 10) == (
        report.cell.model,
        report.cell.phase,
        report.cell.precision,
        report.cell.input_size,
        report.cell.num_classes,
    )
    assert [1, 2, 4, 8, 16, 12, 10, 11] == [tried.batch_size for tried in report.tries]
    assert (GIB, None) == (report.tries[0].peak_bytes, report.tries[0].bytes_requested)
    assert (None, 16 * GIB) == (report.tries[4].peak_bytes, report.tries[4].bytes_requested)
    assert 10 == len(err.splitlines())


def test_a_try_takes_the_fewest_steps_and_no_sampling(call_probe: CallProbe) -> None:
    cell = read_report(call_probe("--json")[1]).cell
    assert (1, 1, 0.0, 0.0) == (cell.num_warmup_steps, cell.num_steps, cell.min_seconds, cell.sampling_seconds)
    assert cell.max_warmup_seconds < 0.01


@pytest.mark.parametrize(
    ("model", "framework", "expected"),
    [
        ("cyclegan", "tensorflow", ("train", "eager", 256, None)),
        ("matmul", "jax", ("infer", "compiled", 10_000, None)),
        ("vgg16", "pytorch", ("train", "eager", 224, 1000)),
    ],
)
def test_what_is_not_given_is_the_models_and_the_frameworks(
    model: str, framework: str, expected: tuple[Any, ...], call_probe: CallProbe
) -> None:
    _, out, _ = call_probe("--framework", framework, "--max-batch-size", "1", "--json", model=model)
    cell = read_report(out).cell
    assert expected == (cell.phase, cell.mode, cell.input_size, cell.num_classes)


def test_a_visible_gpu_is_taken_and_shares_the_batch_with_others(
    call_probe: CallProbe, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus = GpuKind(name="NVIDIA A100-SXM4-40GB", compute_capability=(8, 0), num_gpus=4)
    monkeypatch.setattr("runner.commands.probe.find_gpu", lambda: gpus)

    code, out, _ = call_probe("--num-gpus", "4", "--precision", "tf32", "--json")

    report = read_report(out)
    assert (0, "gpu", gpus.name, None) == (code, report.cell.device, report.gpu, report.memory_limit_bytes)
    assert [4, 8, 16, 12] == [tried.batch_size for tried in report.tries]
    assert 8 == report.largest_batch_size


def test_the_upper_bound_ends_the_search(call_probe: CallProbe) -> None:
    code, out, _ = call_probe("--max-batch-size", "5")
    assert (0, ["1", "2", "4", "5"]) == (code, [line.split()[1] for line in out.splitlines()[1:-1]])
    assert "batch 5 fits into" in out.splitlines()[-1]
    assert "this is the upper bound, raise --max-batch-size" in out.splitlines()[-1]


def test_where_nothing_fits_that_is_said_and_the_exit_code_is_1(call_probe: CallProbe, workspace: Workspace) -> None:
    make_measuring_interpreter(workspace.folder / "python", log=workspace.log, num_samples_that_fit=0)
    code, out, _ = call_probe()
    assert 1 == code
    assert "not even a batch of 1 fits into" in out.splitlines()[-1]


def test_another_failure_ends_the_search_with_its_message(call_probe: CallProbe, workspace: Workspace) -> None:
    fails = 'case "$BENCH_CELL" in *\'"batch_size":4,\'*) echo why >&2; exit 7;; esac'
    make_measuring_interpreter(workspace.folder / "python", log=workspace.log, before=fails)

    code, out, _ = call_probe()

    assert 1 == code
    assert re.fullmatch(r"batch +4  failure +\d+\.\d s  ended with exit code 7 and left no result", out.splitlines()[3])
    assert "the last try failed for another reason than memory; batch 2 fits" in out.splitlines()[-1]


def test_a_try_that_hangs_ends_with_the_time(call_probe: CallProbe, workspace: Workspace) -> None:
    hangs = 'case "$BENCH_CELL" in *\'"batch_size":2,\'*) sleep 60;; esac'
    make_measuring_interpreter(workspace.folder / "python", log=workspace.log, before=hangs)

    code, out, _ = call_probe("--time-limit", "3")

    assert 1 == code
    assert "time-limit" in out.splitlines()[-2]
    assert out.splitlines()[-1].startswith("the time is up: batch 1 fits into")


def test_a_kill_by_the_kernel_for_memory_does_not_fit(
    call_probe: CallProbe, workspace: Workspace, memory_cgroup: MemoryCgroup
) -> None:
    fill = f"{memory_cgroup.join_command}; exec {sys.executable} -S -c \"full = b'x' * 2**30\""
    kills = f'case "$BENCH_CELL" in *\'"batch_size":4,\'*) {fill};; esac'
    make_measuring_interpreter(workspace.folder / "python", log=workspace.log, before=kills)

    code, out, _ = call_probe("--json")

    report = read_report(out)
    assert (0, 3, 4) == (code, report.largest_batch_size, report.smallest_failing_batch_size)
    assert "killed by the kernel's OOM killer" in report.tries[2].message


def test_a_host_without_memory_ends_the_search_on_a_gpu_with_its_message(
    call_probe: CallProbe, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = GpuKind(name="NVIDIA H100 80GB HBM3", compute_capability=(9, 0), num_gpus=1)
    monkeypatch.setattr("runner.commands.probe.find_gpu", lambda: gpu)
    fails = 'case "$BENCH_CELL" in *\'"batch_size":4,\'*) echo std::bad_alloc >&2; exit 134;; esac'
    make_measuring_interpreter(workspace.folder / "python", log=workspace.log, before=fails)

    code, out, _ = call_probe()

    assert 1 == code
    assert re.fullmatch(r"batch +4  failure +\d+\.\d s  C\+\+ got no memory .*", out.splitlines()[3])
    assert "the last try failed for another reason than the GPU's memory; batch 2 fits" == out.splitlines()[-1]


@pytest.mark.parametrize(
    ("device", "message", "expected"),
    [
        ("gpu", "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "out-of-memory"),
        ("gpu", "ResourceExhaustedError: OOM when allocating tensor on device:GPU:0 by GPU_0_bfc", "out-of-memory"),
        ("gpu", "_ArrayMemoryError: Unable to allocate 29.5 GiB for an array with shape (64, 3, 6422)", "failure"),
        (
            "cpu",
            "_ArrayMemoryError: Unable to allocate 29.5 GiB for an array with shape (64, 3, 6422)",
            "out-of-memory",
        ),
        ("gpu", "RuntimeError: DefaultCPUAllocator: can't allocate memory", "failure"),
        ("gpu", "ResourceExhaustedError: OOM when allocating tensor on device:CPU:0 by allocator cpu", "failure"),
        ("gpu", "ResourceExhaustedError: OOM when allocating tensor by allocator gpu_host_bfc", "failure"),
    ],
)
def test_on_a_gpu_only_the_gpus_memory_counts(device: str, message: str, expected: str) -> None:
    result = make_failed_result(make_cell(device=device), status="oom", message=message)
    assert expected == name_outcome(result)


@pytest.mark.parametrize(("device", "expected"), [("cpu", "out-of-memory"), ("gpu", "failure")])
def test_a_process_that_died_for_memory_says_nothing_of_a_gpu(device: str, expected: str) -> None:
    killed = make_failed_result(make_cell(device=device), status="oom", written_by="runner", message="killed")
    assert expected == name_outcome(killed)


@pytest.mark.parametrize(
    ("device", "allocated", "reserved", "expected"),
    [("gpu", 2 * GIB, 3 * GIB, 3 * GIB), ("gpu", 2 * GIB, None, 2 * GIB), ("cpu", None, None, GIB)],
)
def test_the_peak_is_the_most_that_the_framework_tells(
    device: str, allocated: int | None, reserved: int | None, expected: int
) -> None:
    memory = make_memory(peak_memory_allocated_bytes=allocated, peak_memory_reserved_bytes=reserved)
    assert expected == read_peak_bytes(make_result(make_cell(device=device), memory=memory))


def test_a_terminal_is_told_what_is_being_tried(workspace: Workspace) -> None:
    command = (*PROGRAM, "probe", "conv6", "--device", "cpu", "--python", "./python", "--max-batch-size", "2")
    with open_terminal(workspace, command) as terminal:
        terminal.read_until(r"trying batch 1\b")
        terminal.read_until(r"trying batch 2\b")
        terminal.read_until(r"this is the upper bound")

    assert 0 == terminal.process.returncode


def test_while_a_run_measures_nothing_is_probed(call_probe: CallProbe, workspace: Workspace) -> None:
    with hold_host_lock("smoke-1"):
        code, out, err = call_probe()
    assert (2, "") == (code, out)
    assert "run smoke-1 measures on this machine" in err
    assert [] == read_log(workspace.log)


def test_ctrl_c_ends_the_search_and_its_process(workspace: Workspace) -> None:
    make_interpreter(workspace.folder / "python", "sleep 60 & echo $$ $! > hanging; wait")
    process = workspace.start(*PROGRAM, "probe", "conv6", "--device", "cpu", "--python", "./python")
    pids = [int(word) for word in workspace.await_file("hanging").split()]

    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=20)

    assert (130, "interrupted") == (process.returncode, out.splitlines()[-1])
    assert [] == [pid for pid in pids if is_running(pid)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--precision", "int4"], "--precision int4: Input should be 'fp32', 'tf32', 'fp16' or 'bf16'"),
        (["--framework", "keras"], "--framework keras: Input should be 'pytorch', 'tensorflow' or 'jax'"),
        (["--device", "tpu"], "--device tpu: Input should be 'cpu' or 'gpu'"),
        (["--mode", "graph"], "--mode graph: 'graph' is not a mode of pytorch; it has eager, compiled"),
        (["--input-size", "4"], "--input-size 4: 4 does not fit conv6: at least 8"),
        (["--num-classes", "1"], "--num-classes 1: Input should be greater than or equal to 2"),
        (["--num-gpus", "2"], "--num-gpus 2: is 1 where device is 'cpu'"),
        (["--num-gpus", "0"], "--num-gpus 0: Input should be greater than or equal to 1"),
        (["--device", "gpu"], "this cannot be probed here: no NVIDIA GPU is visible on this machine"),
        (["--precision", "tf32"], "this cannot be probed here: tf32 is a mode of NVIDIA GPUs"),
        (["--max-batch-size", "0"], "--max-batch-size 0: is below the smallest batch, 1"),
        (["--time-limit", "0"], "--time-limit 0: is no time to search in"),
        (["--python", "/no/python"], "--python /no/python: no such program"),
    ],
)
def test_a_fault_of_the_user_is_one_message(words: list[str], message: str, call_probe: CallProbe) -> None:
    code, out, err = call_probe(*words)
    assert (2, "") == (code, out)
    assert err.startswith(f"error: {message}")
    assert 1 == err.count("\n")


def test_an_unknown_model_gets_the_nearest(call_probe: CallProbe) -> None:
    assert (2, "", "error: MODEL vg16: unknown; did you mean 'vgg16'?\n") == call_probe(model="vg16")


def test_a_real_search_finds_what_fits_into_the_memory_that_there_is(
    workspace: Workspace, interpreters: dict[Framework, Path]
) -> None:
    """PyTorch multiplies 3,000 x 3,000 matrices, 36 MB each, three for every sample of the batch."""
    program = (
        "from runner import cli, probe\n"
        "probe.read_available_bytes = lambda: 3 * 2**28\n"  # of which 90% may be taken
        "cli.main()\n"
    )
    words = ["probe", "matmul", "--input-size", "3000", "--device", "cpu", "--json", "--max-batch-size", "16"]
    command = [sys.executable, "-c", program, *words, "--python", str(interpreters["pytorch"])]
    done = subprocess.run(command, cwd=workspace.folder, capture_output=True, text=True, timeout=REAL_SEARCH_SECONDS)

    report = read_report(done.stdout)
    assert (0, "found") == (done.returncode, report.ended_by), done.stderr
    assert report.memory_limit_bytes == int(0.9 * 3 * 2**28)
    assert report.largest_batch_size is not None
    assert report.largest_batch_size + 1 == report.smallest_failing_batch_size
    # The matrices alone stay below the limit; the rest is the framework's.
    assert 0.1 < report.largest_batch_size * 3 * 3000**2 * 4 / report.memory_limit_bytes < 1.0
