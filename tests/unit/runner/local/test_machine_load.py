"""runner.local.progress: what others did between two readings, and what is said of it, when, and how often."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.schema import Device, PlannedCell, Result
from factories import make_cell, make_result, make_validity
from runner.local.progress import DisturbanceWatch, LoadReading, compare_readings, list_processes
from runner.matrix.plan import Repeat, order_repeats


def make_reading(second: float, others: dict[tuple[int, int], tuple[str, float]], busy: float) -> LoadReading:
    """Return a reading of a machine with two cores."""
    return LoadReading(at=second, busy_seconds=busy, own_seconds=second / 2, num_cores=2, others=others)


def test_what_this_process_took_is_not_that_of_others_and_the_busiest_of_them_are_named() -> None:
    """Ten seconds: 16 s busy, 5 s of them by this process; 10 s by others that are seen."""
    before = {(7, 1): ("ffmpeg", 20.0), (8, 1): ("chrome", 1.0), (9, 1): ("chrome", 1.0)}
    after = {
        (7, 1): ("ffmpeg", 26.0),
        (8, 1): ("chrome", 2.0),
        (9, 1): ("chrome", 2.0),
        (7, 2): ("sleeper", 0.1),
        (10, 2): ("new", 0.8),
    }
    load = compare_readings(make_reading(100.0, before, 50.0), make_reading(110.0, after, 66.0))
    assert round(load.busy_cores, 9) == 1.1
    assert load.busiest == (
        "ffmpeg (0.6 cores, process 7)",
        "chrome (0.2 cores, 2 processes)",
        "new (0.1 cores, process 10)",
    )


def test_processes_are_read_with_names_of_any_kind(tmp_path: Path) -> None:
    (tmp_path / "42").mkdir()
    ticks = os.sysconf("SC_CLK_TCK")
    fields = ["S", "7", *["0"] * 9, str(ticks), str(2 * ticks), "9", "9", *["0"] * 4, "777", "0"]
    (tmp_path / "42" / "stat").write_text(f"42 (a ) b) {' '.join(fields)}")
    (tmp_path / "43").mkdir()  # it ended meanwhile
    assert list(list_processes(tmp_path)) == [((42, 777), ("a ) b", 3.0))]


def test_this_machine_can_be_read() -> None:
    reading = LoadReading.take()
    assert reading is not None
    assert os.getpid() not in {pid for pid, _ in reading.others}


def make_repeat(device: Device = "cpu") -> Repeat:
    (repeat,) = order_repeats([PlannedCell(cell=make_cell(device=device), repeats=1, timeout_seconds=60.0)], None)
    return repeat


def read_load(others: float) -> Iterator[LoadReading]:
    """Yield readings, a second each, of a machine with two cores of which ffmpeg keeps `others` busy."""
    for second in range(100):
        seconds = others * second
        yield make_reading(second, {(9_999_999, 1): ("ffmpeg", seconds)}, seconds + second / 2)


def watch_load(others: float) -> tuple[DisturbanceWatch, list[str]]:
    said: list[str] = []
    readings = read_load(others)
    return DisturbanceWatch("RETRY", said.append, lambda: next(readings)), said


def end(*verdicts: str) -> Iterator[Result]:
    for verdict in verdicts:
        validity = make_validity() if verdict == "valid" else make_validity(verdict)  # type: ignore[arg-type]
        yield make_result(validity=validity)


def test_a_busy_machine_is_named_once_at_the_first_repeat() -> None:
    watching, said = watch_load(1.5)
    watching.start_repeat()
    for _ in range(3):
        watching.tick(make_repeat())
    assert said == [
        "others keep 1.5 of 2 cores busy now (ffmpeg (1.5 cores, process 9999999)): repeats that they disturb will be "
        "contaminated and not count"
    ]


@pytest.mark.parametrize(("others", "device"), [(0.15, "cpu"), (1.5, "gpu")])
def test_a_quiet_machine_is_not_mentioned_nor_cores_that_a_gpu_cell_leaves_free(others: float, device: Device) -> None:
    watching, said = watch_load(others)
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
    watching, said = watch_load(1.5)
    for result in end(*verdicts):
        watching.start_repeat()
        watching.finish_repeat(result)
    assert len(said) == num_warnings
    for warning in said:
        assert "busiest beside the run: ffmpeg (1.5 cores, process 9999999)" in warning
        assert warning.endswith(":\n  RETRY")


def test_who_does_too_little_to_disturb_a_repeat_is_not_named_as_the_culprit() -> None:
    watching, said = watch_load(0.15)
    for result in end("contaminated", "contaminated"):
        watching.start_repeat()
        watching.finish_repeat(result)
    (warning,) = said
    assert warning.startswith("2 repeats in a row were contaminated and do not count. End what disturbs")
