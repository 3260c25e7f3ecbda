"""The options of `benchmatrix probe`: which cell they make, and what is refused."""

from collections.abc import Callable
from typing import Any

import pytest

from runner.capabilities import GpuKind
from runner.probe.search import ProbeReport

CallProbe = Callable[..., tuple[int, str, str]]


def read_report(text: str) -> ProbeReport:
    return ProbeReport.model_validate_json(text)


def test_a_trial_takes_the_fewest_steps_and_no_sampling(call_probe: CallProbe) -> None:
    cell = read_report(call_probe("--json")[1]).cell
    assert (cell.num_warmup_steps, cell.num_steps, cell.min_seconds) == (1, 1, 0.0)
    assert (cell.sampling_seconds, cell.num_profiled_steps) == (0.0, 0)
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
    assert (cell.phase, cell.mode, cell.input_size, cell.num_classes) == expected


def test_a_visible_gpu_is_taken_and_shares_the_batch_with_others(
    call_probe: CallProbe, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus = GpuKind(name="NVIDIA A100-SXM4-40GB", compute_capability=(8, 0), num_gpus=4)
    monkeypatch.setattr("runner.local.hardware.find_gpu", lambda: gpus)

    code, out, _ = call_probe("--num-gpus", "4", "--precision", "tf32", "--json")

    report = read_report(out)
    assert (code, report.cell.device, report.gpu, report.memory_limit_bytes) == (0, "gpu", gpus.name, None)
    assert [trial.batch_size for trial in report.tries] == [4, 8, 16, 12]
    assert report.largest_batch_size == 8


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--precision", "int4"], "--precision int4: "),
        (["--framework", "keras"], "--framework keras: "),
        (["--device", "tpu"], "--device tpu: "),
        (["--mode", "graph"], "--mode graph: 'graph' is not a mode of pytorch; it has eager, compiled"),
        (["--input-size", "4"], "--input-size 4: "),
        (["--num-classes", "1"], "--num-classes 1: "),
        (["--num-gpus", "2"], "--num-gpus 2: "),
        (["--num-gpus", "0"], "--num-gpus 0: "),
        (["--device", "gpu"], "this cannot be probed here: no NVIDIA GPU is visible on this machine"),
        (["--precision", "tf32"], "this cannot be probed here: tf32 is a mode of NVIDIA GPUs"),
        (["--max-batch-size", "0"], "--max-batch-size 0: "),
        (["--time-limit", "0"], "--deadline 0: "),
        (["--python", "/no/python"], "--python /no/python: "),
    ],
)
def test_an_error_of_the_user_is_one_message(words: list[str], message: str, call_probe: CallProbe) -> None:
    code, out, err = call_probe(*words)
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {message}")
    assert err.count("\n") == 1


def test_an_unknown_model_gets_the_nearest(call_probe: CallProbe) -> None:
    assert call_probe(model="vg16") == (2, "", "error: MODEL vg16: unknown; did you mean 'vgg16'?\n")
