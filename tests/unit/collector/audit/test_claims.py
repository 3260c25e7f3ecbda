"""All claims of a run together, and those that no run can decide."""

from pathlib import Path

from collector.audit.claims import evaluate_claims
from collector.audit.measured import gather_context
from collector.audit.study import load_study
from collector.results.summary import summarize_cells
from factories import make_validity
from measured_runs import collect_results
from study_runs import (
    IMPLAUSIBLE,
    TABLE_RATIOS,
    VGG16,
    WITHOUT_WINOGRAD,
    evaluate,
    evaluate_unmeasured,
    make_devices,
    make_ratios,
)


def test_without_runs_arithmetic_alone_decides(tmp_path: Path) -> None:
    claim_results = evaluate_unmeasured(tmp_path)
    decided = {
        "speedup-vgg16": WITHOUT_WINOGRAD,
        "inference-vgg16": IMPLAUSIBLE,
        "phases": IMPLAUSIBLE,
        "table": IMPLAUSIBLE,
        "tf32": "peak rates only",
        "v100": "peak rates only",
        "memory": "not decided",
    }
    assert {name: result.verdict for name, result in claim_results.items()} == (
        dict.fromkeys((claim.id for claim in load_study().claims), "not tested here") | decided
    )
    reasons = {name: result.reason for name, result in claim_results.items()}
    assert "122 % of the 8.10 TFLOP/s peak of a Tesla T4: out of reach of direct" in reasons["speedup-vgg16"]
    assert "5 of its 28 times" in reasons["table"]
    assert "0 of them even by Winograd's F(4x4, 3x3)" in reasons["table"]


def test_energy_gains_are_shown_beside_speedups(tmp_path: Path) -> None:
    result = evaluate(tmp_path, *make_devices(90.0, 1.0, **VGG16))["energy"]
    # two vCPUs at 8 W, a T4 at 70 W: 116 * 8 / 70
    assert (
        "the GPU then saves energy by a factor of about 13 (116 x 8 / 70), where the implied claim is 116"
        in (result.arithmetic[0])
    )
    (line,) = result.measured
    # CPU: 1920 J for 3 steps of 64; GPU: 180 J for 30 steps of 64
    assert "10.0 J a sample by the CPU's whole sockets, 0.0938 J by the GPU, a ratio of 107" in line


def test_rows_measured_under_faulty_conditions_decide_nothing(tmp_path: Path) -> None:
    results = make_ratios(TABLE_RATIOS)
    throttled = [result.model_copy(update={"validity": make_validity("throttled")}) for result in results]
    summary = summarize_cells(collect_results(tmp_path, *throttled))
    index = [claim.id for claim in load_study().claims].index("latency")
    assert evaluate_claims(gather_context(summary))[index].verdict == "not tested here"


def test_the_projection_of_memory_depends_on_the_last_year_of_its_data(tmp_path: Path) -> None:
    result = evaluate_unmeasured(tmp_path)["memory"]
    assert result.verdict == "not decided"
    # Within 288 / 1.25 to 288 x 1.25, 230 to 360: 344; none; 271 and 328; 250, 309 and 349.
    assert result.reason.startswith(
        "6 of 12 polynomials come within a factor of 1.25 of the largest GPU of 2025, 288 GB"
    )
    assert "up to 2022 they give 110 GB to 176 GB" in result.reason
    (finding,) = result.findings
    assert finding.name == "misses if fitted up to 2022"
    assert finding.reason == "fitted on GPUs up to 2022 they give 110 GB to 176 GB; none is right"
