"""All claims of a run together, and those that no run can decide."""

from pathlib import Path

from collector.claims.page import evaluate_claims, find_claim_results
from collector.claims.study import load_study
from collector.forecast.fit import fit_forecast
from collector.forecast.gpu_table import load_gpu_table
from collector.results.summary import summarize_cells
from factories import make_cell, make_validity
from measured_runs import collect_results, make_repeats
from study_runs import IMPLAUSIBLE, VGG16, WITHOUT_WINOGRAD, evaluate, make_devices, make_latencies


def test_without_runs_arithmetic_alone_decides(tmp_path: Path) -> None:
    claim_results = evaluate(tmp_path, *make_repeats(make_cell(model="resnet18", batch_size=1), 0.1))
    assert {name: result.verdict for name, result in claim_results.items()} == {
        "speedup-conv6": "not tested here",
        "speedup-vgg16": WITHOUT_WINOGRAD,
        "speedup-resnet18": "not tested here",
        "speedup-cyclegan": "not tested here",
        "latency": "not tested here",
        "fusion": "not tested here",
        "table": IMPLAUSIBLE,
        "memory": "not tested here",
        "energy": "not tested here",
        "access": "not tested here",
    }
    reasons = {name: result.reason for name, result in claim_results.items()}
    assert "122 % of the 8.10 TFLOP/s peak of a Tesla T4: out of reach of direct" in reasons["speedup-vgg16"]
    assert "5 of its 28 times" in reasons["table"]
    assert "0 of them even by Winograd's F(4x4, 3x3)" in reasons["table"]


def test_the_projection_of_memory_is_replayed_from_what_was_known(tmp_path: Path) -> None:
    forecast = fit_forecast(load_gpu_table(None), year=2030)
    summary = summarize_cells(collect_results(tmp_path, *make_devices(9.0, 0.1)))
    claim_results = evaluate_claims(summary, forecast=forecast)
    (memory,) = (result for result in claim_results if "Polynomial" in result.statement)
    assert any(line.startswith("polynomial 2, fitted on GPUs up to 2022:") for line in memory.arithmetic)


def test_energy_gains_are_shown_beside_speedups(tmp_path: Path) -> None:
    result = evaluate(tmp_path, *make_devices(9.0, 0.1, **VGG16))["energy"]
    # two vCPUs at 8 W, a T4 at 70 W: 116 * 8 / 70
    assert (
        "the GPU then saves energy by a factor of about 13 (116 x 8 / 70), where the implied claim is 116"
        in (result.arithmetic[0])
    )
    (line,) = result.measured
    # CPU: 1920 J for 3 steps of 64; GPU: 180 J for 30 steps of 64
    assert "10.0 J a sample by the CPU's whole sockets, 0.0938 J by the GPU, a ratio of 107" in line


def test_rows_without_a_valid_repeat_decide_nothing_unless_asked(tmp_path: Path) -> None:
    results = make_latencies(0.85)
    noisy = [result.model_copy(update={"validity": make_validity("noisy")}) for result in results]
    summary = summarize_cells(collect_results(tmp_path, *noisy))
    index = [claim.id for claim in load_study().claims].index("latency")
    without, included = (evaluate_claims(summary, forecast=None, include_invalid=include) for include in (False, True))
    assert (without[index].verdict, included[index].verdict) == ("not tested here", "reproduced")


def test_a_run_that_bears_on_no_claim_has_no_results(tmp_path: Path) -> None:
    assert (
        find_claim_results(summarize_cells(collect_results(tmp_path, *make_repeats(make_cell(), 0.1))), forecast=None)
        == ()
    )
