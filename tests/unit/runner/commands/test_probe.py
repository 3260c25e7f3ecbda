"""`benchmatrix probe`: the search and its options as users meet them, over stand-ins and a real Python."""

import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from bench.schema import Framework
from fake_interpreters import make_measuring_interpreter, read_log
from runner.matrix import GpuKind
from runner.probe import ProbeReport
from workspace import CallMain, Workspace

GIB = 2**30
REAL_SEARCH_SECONDS = 1800.0


@pytest.fixture
def call_probe(workspace: Workspace, monkeypatch: pytest.MonkeyPatch, call_main: CallMain) -> CallMain:
    """Calls `probe conv6 --python ./python`; 11 samples fit."""
    make_measuring_interpreter(workspace.folder / "python", log=workspace.log, num_samples_that_fit=11)
    monkeypatch.setattr("runner.local.hardware.find_gpu", lambda: None)
    return partial(call_main, "probe", "conv6", "--python", "./python")


def test_every_trial_is_printed_and_the_largest_batch_at_the_end(call_probe: CallMain, workspace: Workspace) -> None:
    code, out, err = call_probe()

    assert (code, err) == (0, "")
    first, *trials, last = out.splitlines()
    assert first == "probing conv6, pytorch, train, fp32, eager on the CPU: up to batch 65,536 and 1,800 s"
    assert [line.split()[1] for line in trials] == ["1", "4", "8", "16", "12", "10", "11"]
    outcomes = ["fits"] * 3 + ["out-of-memory"] * 2 + ["fits"] * 2
    assert [line.split()[2] for line in trials] == outcomes
    assert trials[0].endswith(" s  peak 1.00 GiB")
    assert trials[3].endswith(" s  OutOfMemoryError: there is no more")
    assert re.fullmatch(r"largest batch that fits into \d+\.\d\d GiB, the memory available here: 11 \(12 .*\)", last)
    assert len(read_log(workspace.log)) == 7  # each trial in a process of its own


def test_json_goes_to_stdout_and_the_trials_to_stderr(call_probe: CallMain) -> None:
    code, out, err = call_probe("--json", "--phase", "infer", "--precision", "bf16", "--input-size", "64")

    report = ProbeReport.model_validate_json(out)
    assert (code, report.ended_by) == (0, "found")
    assert (report.largest, report.smallest_failing) == (11, 12)
    cell = report.cell  # the fewest steps, and no sampling
    assert (cell.model, cell.phase, cell.precision, cell.input_size) == ("conv6", "infer", "bf16", 64)
    assert (cell.num_warmup_steps, cell.num_steps, cell.min_seconds) == (1, 1, 0.0)
    assert (cell.sampling_seconds, cell.num_profiled_steps, cell.max_warmup_seconds) == (0.0, 0, 1e-3)
    assert (report.tries[0].peak_bytes, report.tries[0].message) == (GIB, "")
    assert (report.tries[3].peak_bytes, report.tries[3].message) == (None, "OutOfMemoryError: there is no more")
    assert len(err.splitlines()) == 9


def test_the_largest_context_of_so_many_sequences(call_main: CallMain, call_probe: CallMain) -> None:
    words = ("llama-tiny", "--context-of", "3", "--phase", "decode", "--json")
    code, out, err = call_main("probe", *words, "--python", "./python", "--device", "cpu")

    report = ProbeReport.model_validate_json(out)
    assert (code, report.axis, report.cell.batch_size, report.ended_by) == (0, "input_size", 3, "max-size"), err
    assert [trial.size for trial in report.tries] == [1024, 2048]
    assert "context 2,048 fits" in err
    code, _, err = call_probe("--context-of", "3")
    assert (code, err) == (2, "error: --context-of 3: conv6 has no context; llama-tiny, llama-1b, llama-8b have one\n")


def test_trials_share_the_caches_of_compiled_kernels_which_end_with_the_search(
    call_probe: CallMain, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(workspace.folder / "mine"))
    note = 'echo "$TORCHINDUCTOR_CACHE_DIR $JAX_COMPILATION_CACHE_DIR $TRITON_CACHE_DIR" >> caches'
    make_measuring_interpreter(workspace.folder / "python", log=workspace.log, before=note)

    code, out, err = call_probe(
        *("--mode", "compiled", "--max-batch-size", "4", "--framework", "jax", "--num-classes", "7", "--json")
    )

    report = ProbeReport.model_validate_json(out)
    assert (code, report.ended_by, report.largest) == (0, "max-size", 4), err
    assert (report.cell.framework, report.cell.mode, report.cell.num_classes) == ("jax", "compiled", 7)
    lines = set((workspace.folder / "caches").read_text().splitlines())
    assert len(lines) == 1
    inductor, jax, triton = lines.pop().split()
    assert Path(inductor).parent == Path(jax).parent
    assert triton == str(workspace.folder / "mine")  # the user's own
    assert not Path(inductor).parent.exists()


def test_a_real_search_finds_what_fits_into_the_memory_that_there_is(
    workspace: Workspace, interpreters: dict[Framework, Path]
) -> None:
    """PyTorch multiplies 3,000 x 3,000 matrices, 36 MB each, three for every sample of the batch."""
    program = (
        "from runner import cli\nfrom runner import probe\n"
        "probe.read_available_bytes = lambda: 660 * 10**6\n"  # of which 90% may be taken
        "cli.main()\n"
    )
    words = ["probe", "matmul", "--input-size", "3000", "--device", "cpu", "--json", "--max-batch-size", "16"]
    command = [sys.executable, "-c", program, *words, "--python", str(interpreters["pytorch"])]
    done = subprocess.run(command, cwd=workspace.folder, capture_output=True, text=True, timeout=REAL_SEARCH_SECONDS)

    report = ProbeReport.model_validate_json(done.stdout)
    assert (done.returncode, report.ended_by) == (0, "found"), done.stderr
    assert report.memory_limit_bytes == 594 * 10**6
    assert report.largest is not None
    assert report.smallest_failing == report.largest + 1
    # The matrices alone stay below the limit; the rest is the framework's.
    assert 0.1 < report.largest * 3 * 3000**2 * 4 / report.memory_limit_bytes < 1.0


def test_a_visible_gpu_is_taken_and_shares_the_batch_with_others(
    call_probe: CallMain, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus = GpuKind(name="NVIDIA A100-SXM4-40GB", compute_capability=(8, 0), num_gpus=4)
    monkeypatch.setattr("runner.local.hardware.find_gpu", lambda: gpus)

    code, out, err = call_probe("--num-gpus", "4", "--precision", "tf32", "--json", "--deadline", "10m")
    assert "and 600 s" in err

    report = ProbeReport.model_validate_json(out)
    assert (code, report.cell.device, report.gpu, report.memory_limit_bytes) == (0, "gpu", gpus.name, None)
    assert [trial.size for trial in report.tries] == [4, 16, 8, 12]
    assert report.largest == 8


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--precision", "int4"], "--precision int4: "),
        (["--device", "tpu"], "--device tpu: "),
        (["--mode", "graph"], "--mode graph: 'graph' is not a mode of pytorch; it has eager, compiled"),
        (["--num-gpus", "2"], "--num-gpus 2: "),
        (["--device", "gpu"], "this cannot be probed here: no NVIDIA GPU is visible on this machine"),
        (["--precision", "tf32"], "this cannot be probed here: tf32 is a mode of NVIDIA GPUs"),
        (["--deadline", "0"], "--deadline 0: "),
    ],
)
def test_an_error_of_the_user_is_one_message(words: list[str], message: str, call_probe: CallMain) -> None:
    code, out, err = call_probe(*words)
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {message}")
    assert err.count("\n") == 1
