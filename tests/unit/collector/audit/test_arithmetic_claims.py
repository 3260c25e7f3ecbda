"""The claims that arithmetic alone speaks about: matrix product, peak rates, text classifier, memory."""

from pathlib import Path

import pytest

from study_runs import evaluate_unmeasured


def test_ten_seconds_on_cuda_are_no_kernel_time(tmp_path: Path) -> None:
    result = evaluate_unmeasured(tmp_path)["product"]
    (finding,) = result.findings
    assert (result.verdict, finding.title) == ("not tested here", "no kernel time")
    # 2 x 10,000^3 = 2 TFLOP in 10.6 s, of 2 x 2,496 x 0.562 GHz = 2.8 TFLOP/s, which do it in 0.714 s
    assert "imply 0.189 TFLOP/s, 6.74 % of the 2.80 TFLOP/s peak" in finding.reason
    assert "at that peak the product takes 714 ms" in finding.reason
    assert "26,500 ms for 2,000 GFLOP are 75.5 GFLOP/s" in result.arithmetic[0]
    assert result.arithmetic[0].endswith("a factor of 2.50")


@pytest.mark.parametrize(
    ("name", "reason", "others"),
    [
        # 312 / 15.7 = 19.9; 156 / 19.5 = 8, 156 / 15.7 = 9.94, 312 / 19.5 = 16
        ("tf32", "20 is the ratio of two peak rates, 19.9 (an A100's TF32 with structured", ["8.00", "9.94", "16.0"]),
        # 125 / 10.6 = 11.8; 125 / 21.2 = 5.90, 125 / 15.7 = 7.96
        ("v100", "12 is the ratio of two peak rates, 11.8 (a V100's FP16 on Tensor Cores over a", ["5.90", "7.96"]),
    ],
)
def test_a_ratio_of_data_sheets_is_called_one(tmp_path: Path, name: str, reason: str, others: list[str]) -> None:
    result = evaluate_unmeasured(tmp_path)[name]
    assert result.verdict == "peak rates only"
    assert result.reason.startswith(reason)
    assert all(any(line.startswith(f"{other} (") for line in result.arithmetic) for other in others)


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
