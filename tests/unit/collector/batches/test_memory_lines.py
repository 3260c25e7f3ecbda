"""Lines of memory over the batch: which cells are on one, what they predict, and their intervals."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from collector.batches import CARDS, DRIVER_BYTES, MemoryLine, describe_key, describe_line, fit_line, fit_lines

MIB = 2**20
KEY = {
    "model": "resnet18",
    "framework": "pytorch",
    "phase": "train",
    "precision": "fp32",
    "mode": "eager",
    "input_size": 224,
    "num_classes": 10,
    "num_gpus": 1,
    "data_dir": None,
    "gpu_name": "NVIDIA H200",
    "framework_version": "2.11.0",
}


def make_line(points: dict[int, int]) -> MemoryLine:
    line = fit_line(KEY, points)
    assert line is not None
    return line


def make_results(*rows: dict[str, object]) -> pd.DataFrame:
    plain: dict[str, object] = {
        **KEY, "status": "ok", "device": "gpu", "batch_size": 64, "peak_memory_allocated_bytes": 1000,
        "peak_memory_reserved_bytes": None, "gpu_memory_peak_bytes": None, "tenants": 1, "sharing": "time-slicing",
        "environment_id": "0a1b2c3d",
    }  # fmt: skip
    frame = pd.DataFrame([plain | row for row in rows])
    memory = [name for name in frame.columns if name.endswith("_bytes")]
    return frame.astype(dict.fromkeys(memory, "Int64"))


def test_exact_line_gives_the_largest_batch_below_the_budget() -> None:
    line = make_line({1: 110, 4: 140, 16: 260})
    assert [line.fixed_bytes, line.sample_bytes] == pytest.approx([100, 10])
    assert line.find_largest(1005.0, 0.95).value == 90
    exact = line.find_largest(1005.0, 0.95)
    assert (exact.lower, exact.upper) == (90, 90)
    assert line.find_largest(50.0, 0.95).value == 0


def test_interval_holds_the_batches_whose_prediction_interval_holds_the_budget() -> None:
    points = {8: 190, 16: 255, 32: 430, 64: 735}
    line = make_line(points)
    batches, needed = np.array(list(points), dtype=float), np.array(list(points.values()), dtype=float)
    slope, fixed = np.polyfit(batches, needed, 1)
    spread = math.sqrt(((needed - fixed - slope * batches) ** 2).sum() / 2)
    reach = stats.t.ppf(0.975, 2)

    def bound(batch: float, sign: int) -> float:
        """Return a bound of the textbook's prediction interval of memory."""
        leverage = 1 + 1 / 4 + (batch - batches.mean()) ** 2 / ((batches - batches.mean()) ** 2).sum()
        return float(fixed + slope * batch + sign * reach * spread * math.sqrt(leverage))

    largest = line.find_largest(1200.0, 0.95)
    assert largest.lower < largest.value < largest.upper
    # The largest whole batch whose upper bound is within the budget, and the largest whose lower bound is.
    assert bound(largest.lower, +1) <= 1200 < bound(largest.lower + 1, +1)
    assert bound(largest.upper, -1) <= 1200 < bound(largest.upper + 1, -1)


def test_memory_that_may_not_grow_has_no_upper_bound_and_one_that_shrinks_no_largest_batch() -> None:
    noisy = make_line({1: 100, 2: 300, 4: 90, 8: 310})
    assert math.isinf(noisy.find_largest(10_000.0, 0.95).upper)
    shrinking = make_line({1: 300, 2: 200, 4: 100})
    assert math.isinf(shrinking.find_largest(1000.0, 0.95).value)
    assert describe_line(shrinking, 0.95)[0].endswith("so no largest batch follows.")


def test_a_line_says_why_it_may_not_hold() -> None:
    bent = make_line({8: 20 * 2**20, 9: 900 * 2**20, 10: 2000 * 2**20})
    assert bent.fixed_bytes < 0
    assert describe_line(bent, 0.95)[-1] == (
        "  it gives no sample less than no memory, so memory bends: larger batches may take more than it says."
    )
    scattered = make_line({8: 100 * 2**20, 16: 5000 * 2**20, 32: 100 * 2**20})
    assert " MiB: memory does not grow with the batch here" in describe_line(scattered, 0.95)[0]
    assert "single batches are off it by 3," in describe_line(scattered, 0.95)[0]
    assert "bends" not in " ".join(describe_line(make_line({8: 180, 16: 260, 32: 420}), 0.95))


def make_rows(points: dict[int, int | None], **fields: object) -> list[dict[str, object]]:
    return [{"batch_size": batch, "peak_memory_allocated_bytes": needed} | fields for batch, needed in points.items()]


def list_lines(*rows: dict[str, object]) -> list[dict[int, int]]:
    return [dict(zip(line.batches, line.needed_bytes, strict=True)) for line in fit_lines(make_results(*rows))]


def test_lines_are_of_cells_that_differ_in_the_batch_alone() -> None:
    points = {8: 180, 16: 260, 32: 420}
    alone = make_rows({**points})
    others: list[dict[str, object]] = [{"tenants": 2, "sharing": sharing} for sharing in ("time-slicing", "mps")]
    others += [{"status": "oom"}, {"device": "cpu"}, {"sharing": "mig"}, {"precision": "bf16"}]
    for other in others:
        assert list_lines(*alone, *make_rows({8: 9000}, **other)) == [points]
    assert list_lines(*alone, *make_rows({8: 190, 64: None})) == [points | {8: 190}]  # of two repeats the most counts
    assert list_lines(*make_rows({16: 160, 32: 320}, num_gpus=2)) == [{8: 160, 16: 320}]  # the batch of one GPU
    newer, unknown = ({8: 580, 16: 660}, "2.14.0"), ({8: 300, 16: 310}, None)
    rows = [row for needed, version in (newer, unknown) for row in make_rows({**needed}, framework_version=version)]
    assert list_lines(*rows, *alone) == [points, newer[0], unknown[0]]


def test_the_context_is_what_a_process_takes_beside_its_allocator() -> None:
    memory = {"peak_memory_reserved_bytes": 1000, "gpu_memory_peak_bytes": 1700}
    (line,) = fit_lines(make_results(*make_rows({16: 160, 32: 320}, **memory)))
    assert line.context_bytes == 700


def test_cards_leave_room_for_driver_and_context() -> None:
    t4 = CARDS[0]
    assert t4.find_budget(700 * MIB) == (15_360 - 700) * MIB - DRIVER_BYTES
    line = make_line({8: 1_000 * MIB, 16: 1_800 * MIB, 32: 3_400 * MIB})
    # 200 MiB and 100 a sample; 15,360 - 616 - 768 = 13,976 MiB hold 137.
    assert "16 GB (T4) 137 (137 to 137)" in describe_line(line, 0.95)[1]


def test_memory_that_is_the_same_at_all_batches_has_no_largest_batch() -> None:
    """Rounding alone would be a slope, and the largest batch for a T4 2,201,300,514,627,665,664."""
    line = make_line(dict.fromkeys((8, 16, 32, 64), 2**30))
    assert (line.sample_bytes, line.fixed_bytes, line.residual_bytes) == (0, 2**30, 0)
    assert describe_line(line, 0.95)[0].endswith("so no largest batch follows.")


def test_a_line_names_the_version_of_its_framework() -> None:
    named = [describe_key(KEY | {"framework_version": version}).split(", ")[1] for version in ("2.11.0", None)]
    assert named == ["pytorch 2.11.0 eager", "pytorch (version not recorded) eager"]
