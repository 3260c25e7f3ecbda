"""The tables that come with the tool, against answers worked out by hand.

Multiply-adds of a forward pass per image: ResNet-50 4.089 thousand million, VGG-16 15.470, ResNet-18 1.814, AlexNet
0.7205, VGG-19 19.632; of CycleGAN's ResNet-9 49.55. Twice as many FLOPs, and three times the forward pass in training.
"""

from collector.audit.rows import audit_table
from runner.analysis_inputs import load_table


def test_of_cnn_benchmarks_three_rows_need_winograd_and_nothing_is_impossible() -> None:
    rows = audit_table(load_table("jcjohnson-cnn-benchmarks"))
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
