"""runner.local.machine_load: what is said of others on the machine, when, and how often."""

from collections.abc import Iterator

import pytest

from bench.schema import Device, PlannedCell, Result
from factories import make_cell, make_result, make_validity
from runner.local.machine_load import DisturbanceWatch, LoadReading, ProcessTime
from runner.matrix.plan import Repeat, order_repeats


def make_repeat(device: Device = "cpu") -> Repeat:
    (repeat,) = order_repeats([PlannedCell(cell=make_cell(device=device), repeats=1, timeout_seconds=60.0)], None)
    return repeat


def read_load(others: float) -> Iterator[LoadReading]:
    """Yield readings, a second each, of a machine with two cores of which ffmpeg keeps `others` busy."""
    for second in range(100):
        seconds = others * second
        process = ProcessTime(name="ffmpeg", parent=1, seconds=seconds, waited_seconds=0.0)
        yield LoadReading(at=float(second), busy_seconds=seconds, num_cores=2, processes={(7, 1): process})


def watch(others: float) -> tuple[DisturbanceWatch, list[str]]:
    said: list[str] = []
    readings = read_load(others)
    return DisturbanceWatch("RETRY", said.append, lambda: next(readings)), said


def end(*verdicts: str) -> Iterator[Result]:
    for verdict in verdicts:
        validity = make_validity() if verdict == "valid" else make_validity(verdict)  # type: ignore[arg-type]
        yield make_result(validity=validity)


def test_a_busy_machine_is_named_once_at_the_first_repeat() -> None:
    watching, said = watch(1.5)
    watching.start_repeat()
    for _ in range(3):
        watching.tick(make_repeat())
    assert said == [
        "others keep 1.5 of 2 cores busy now (ffmpeg (1.5 cores, process 7)): repeats that they disturb will be "
        "contaminated and not count"
    ]


@pytest.mark.parametrize(("others", "device"), [(0.15, "cpu"), (1.5, "gpu")])
def test_a_quiet_machine_is_not_mentioned_nor_cores_that_a_gpu_cell_leaves_free(others: float, device: Device) -> None:
    watching, said = watch(others)
    watching.start_repeat()
    watching.tick(make_repeat(device))
    assert said == []


@pytest.mark.parametrize(
    ("verdicts", "num_warnings"),
    [
        (("contaminated", "valid", "contaminated", "noisy", "contaminated"), 0),
        (("valid", "contaminated", "contaminated"), 1),
        (("contaminated",) * 6, 1),
    ],
)
def test_two_contaminated_repeats_in_a_row_are_warned_of_once(verdicts: tuple[str, ...], num_warnings: int) -> None:
    watching, said = watch(1.5)
    for result in end(*verdicts):
        watching.start_repeat()
        watching.finish_repeat(result)
    assert len(said) == num_warnings
    for warning in said:
        assert "busiest beside the run: ffmpeg (1.5 cores, process 7)" in warning
        assert warning.endswith(":\n  RETRY")


def test_who_does_too_little_to_disturb_a_repeat_is_not_named_as_the_culprit() -> None:
    watching, said = watch(0.15)
    for result in end("contaminated", "contaminated"):
        watching.start_repeat()
        watching.finish_repeat(result)
    (warning,) = said
    assert warning.startswith("2 repeats in a row were contaminated and do not count. End what disturbs")


def test_a_machine_that_cannot_be_read_is_warned_of_by_its_verdicts_alone() -> None:
    said: list[str] = []
    watching = DisturbanceWatch("RETRY", said.append, lambda: None)
    for result in end("contaminated", "contaminated"):
        watching.start_repeat()
        watching.tick(make_repeat())
        watching.finish_repeat(result)
    (warning,) = said
    assert warning.startswith("2 repeats in a row were contaminated and do not count. End what disturbs")
