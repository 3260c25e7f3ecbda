"""The tables that come with the tool, against answers worked out by hand.

Multiply-adds of a forward pass per image: ResNet-50 4.089 thousand million, VGG-16 15.470, ResNet-18 1.814, AlexNet
0.7205, VGG-19 19.632; of CycleGAN's ResNet-9 49.55. Twice as many FLOPs, and three times the forward pass in training.
"""

import pytest

from collector.audit.rows import AuditedRow, audit_table
from runner.audit_tables import load_table


def audit(name: str) -> tuple[AuditedRow, ...]:
    """Return the rows of a shipped table with their verdicts, held against no run."""
    return audit_table(load_table(name))


def find_row(rows: tuple[AuditedRow, ...], name: str, figure: str) -> AuditedRow:
    (found,) = (row for row in rows if row.name == name and row.figure == figure)
    return found


def test_nvidias_figures_of_the_t4_are_all_possible() -> None:
    rows = audit("nvidia-t4-resnet50")
    assert {row.verdict for row in rows} == {"possible"}
    assert {row.row.precision for row in rows} == {"fp32", "amp", "fp16", "int8"}


@pytest.mark.parametrize(
    ("name", "figure", "tera_per_second", "percent"),
    [
        # 64 x 2 x 4.089 / 0.15273 of 8.1
        ("PyTorch FP32, Tesla T4, batch 64, fp32", "152.73 ms", 3.427, 42.3),
        # 1198 x 2 x 4.089 of 65: at FP32's peak it would be 121 %
        ("PyTorch AMP plateau, Tesla T4, batch 256, amp", "1,198 images/s", 9.797, 15.1),
        # 256 x 2 x 4.089 / 0.21446 of 65
        ("TensorFlow AMP XLA, Tesla T4, batch 256, amp", "214.46 ms", 9.762, 15.0),
        # 1280 x 2 x 4.089 of 65
        ("TensorRT FP16, Tesla T4, batch 128, fp16", "1,280 images/s", 10.468, 16.1),
        # 44977.8 x 2 x 4.089 of 8 x 130
        ("TensorRT INT8, MLPerf Offline on 8 GPUs, 8 x Tesla T4, batch 2048, int8", "44,977.8 images/s", 367.8, 35.4),
    ],
)
def test_nvidias_figures_imply_these_rates(name: str, figure: str, tera_per_second: float, percent: float) -> None:
    arithmetic = find_row(audit("nvidia-t4-resnet50"), name, figure).arithmetic
    assert arithmetic.share_of_bound is not None
    assert arithmetic.flops_per_second / 1e12 == pytest.approx(tera_per_second, rel=1e-3)
    assert 100 * arithmetic.share_of_bound == pytest.approx(percent, abs=0.05)


def test_of_cnn_benchmarks_three_rows_need_winograd_and_nothing_is_impossible() -> None:
    rows = audit("jcjohnson-cnn-benchmarks")
    found = {(row.row.label, row.row.device): row.verdict_in_words for row in rows if row.verdict != "possible"}
    assert found == dict.fromkeys(
        [
            ("VGG-16 forward", "Maxwell Titan X"),  # 16 x 30.94 / 62.30 of 1.2 x 6605 GFLOP/s: 1.003
            ("VGG-19 forward", "Maxwell Titan X"),  # 16 x 39.264 / 73.66: 1.076
            ("VGG-19 forward and backward", "Maxwell Titan X"),  # 16 x 117.62 / 225.14: 1.055
        ],
        "implausible without Winograd",
    )
    assert len(rows) == 50


def test_of_the_studys_table_five_times_need_winograd() -> None:
    rows = audit("study")
    found = {
        (row.row.model, row.row.framework, row.row.device, row.row.phase): row.verdict_in_words
        for row in rows
        if row.verdict != "possible"
    }
    assert found == {
        ("vgg16", "tensorflow", "Tesla T4", "train"): "implausible without Winograd",  # 9.84 of 8.1 TFLOP/s: 1.22
        ("vgg16", "pytorch", "Tesla T4", "train"): "implausible without Winograd",  # 9.01: 1.11
        # Beyond 2.25: F(2x2, 3x3) does not do, whatever the rest of the work.
        ("vgg16", "tensorflow", "Tesla T4", "infer"): "implausible",  # 29.9: 3.69
        ("vgg16", "pytorch", "Tesla T4", "infer"): "implausible",  # 28.0: 3.45
        (
            "vgg16",
            "tensorflow",
            "Xeon with 2 vCPUs",
            "infer",
        ): "implausible",  # 710 of 198.4: 3.58
    }
    # CycleGAN's times are possible with the U-Net of TensorFlow's tutorial alone: 59.4 to 63.1 GFLOP/s on the CPU.
    generator = next(row for row in rows if row.row.model == "cyclegan" and row.row.phase == "infer")
    assert generator.arithmetic.flops_per_second / 1e9 == pytest.approx(2 * 6.048 / 0.20357, rel=1e-3)
    assert generator.arithmetic.most_flops_per_second / 1e9 == pytest.approx(2 * 49.55 / 0.20357, rel=1e-3)
