"""What a run leaves open by its data, its GPUs, the length of its windows and its order: said only where it is so."""

from datetime import UTC, datetime, timedelta

import pytest

from answered_runs import GPU_PYTORCH, answer, select_texts
from bench.schema import Result
from factories import make_cell
from measured_runs import Collect, make_repeats
from shared_runs import make_gpu_cell

CELLS = tuple(make_cell(batch_size=batch) for batch in (1, 2, 4))
START = datetime(2026, 11, 20, tzinfo=UTC)


def place(orders: tuple[tuple[int, ...], ...]) -> list[Result]:
    """Return repeats of CELLS that began in these orders, one for each round."""
    measured = {place: make_repeats(cell, *(0.1 for _ in orders)) for place, cell in enumerate(CELLS)}
    return [
        measured[number][round_number].model_copy(
            update={
                "started_at": START + timedelta(hours=round_number, minutes=minute),
                "finished_at": START + timedelta(hours=round_number, minutes=minute, seconds=30),
            }
        )
        for round_number, order in enumerate(orders)
        for minute, number in enumerate(order)
    ]


@pytest.mark.parametrize(
    ("orders", "is_said"),
    [
        (((0, 1, 2), (0, 1, 2)), True),
        (((0, 1, 2), (2, 0, 1)), False),
        (((0, 1, 2),), False),  # one round has no other
        (((0, 1), (0, 1)), False),  # as by chance
    ],
)
def test_cells_in_one_order_are_named(collect: Collect, orders: tuple[tuple[int, ...], ...], is_said: bool) -> None:
    texts = select_texts(answer(collect, place(orders)), "same-order")
    assert [text.partition(":")[0] for text in texts] == (
        [f"All {len(orders)} rounds measured the cells in one order"] if is_said else []
    )


def test_synthetic_data_and_single_gpus_are_named_where_they_are_all(collect: Collect) -> None:
    (text,) = select_texts(
        answer(collect, make_repeats(make_gpu_cell(), 0.1, 0.1, environment=GPU_PYTORCH)), "one-kind"
    )
    assert "one GPU at a time, synthetic data" in text
    real = make_cell(data_dir="/data/cifar")
    (text,) = select_texts(answer(collect, make_repeats(real, 0.1, 0.1)), "one-kind")
    assert "synthetic" not in text
    assert "GPU a cell" not in text


def test_tf32_is_said_to_be_off_where_other_precisions_stand_beside_fp32(collect: Collect) -> None:
    cells = [make_gpu_cell(precision=precision) for precision in ("fp32", "bf16")]
    results = [one for cell in cells for one in make_repeats(cell, 0.1, 0.1, environment=GPU_PYTORCH)]
    (text,) = select_texts(answer(collect, results), "one-kind")
    assert "one GPU at a time, TF32 off, synthetic data" in text


def test_seconds_are_not_hours(collect: Collect) -> None:
    (text,) = select_texts(answer(collect, make_repeats(make_cell(), 0.1, 0.1)), "short-windows")
    assert text.startswith("The speed over hours is not known: at most ")
    assert text.endswith(" s were timed in one go.")
    both = [one for cell in (make_cell(), make_gpu_cell()) for one in make_repeats(cell, 0.1, 0.1)]
    (text,) = select_texts(answer(collect, both), "short-windows")
    # Three steps of 0.1 s each: a long window on a CPU says nothing of the GPU's.
    assert text == (
        "The speed over hours is not known: at most 0.30 s on the CPU and 0.30 s on the GPU were timed in one go."
    )
