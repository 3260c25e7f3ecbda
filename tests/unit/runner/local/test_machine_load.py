"""runner.local.machine_load: what others did between two readings, and what is said of it, when, and how often."""

import os
import pwd
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.schema import Device, PlannedCell, Result
from factories import make_cell, make_result, make_validity
from runner.local.machine_load import DisturbanceWatch, LoadReading, ProcessTime, compare_readings
from runner.matrix.plan import Repeat, order_repeats

OWN, CHILD = (os.getpid(), 1), (900_001, 5)


def make_reading(
    at: float, busy: float, processes: dict[tuple[int, int], tuple[str, int, float, float]]
) -> LoadReading:
    """Return a reading of a machine with two cores; of each process name, parent, own and waited-for seconds."""
    times = {key: ProcessTime(*fields) for key, fields in processes.items()}
    return LoadReading(at=at, busy_seconds=busy, num_cores=2, processes=times)


def test_what_this_process_and_its_children_took_is_not_that_of_others() -> None:
    """Ten seconds: 1 s by this process, 4 s by a child that lives, 2 s by one that has ended; others took 9 s."""
    ended = (900_002, 6)
    before = make_reading(
        100.0,
        50.0,
        {
            OWN: ("python", 1, 10.0, 0.0),
            CHILD: ("python", OWN[0], 3.0, 0.0),
            ended: ("python", OWN[0], 1.0, 0.0),
            (7, 1): ("ffmpeg", 1, 20.0, 0.0),
            (8, 1): ("chrome", 1, 1.0, 0.0),
            (9, 1): ("chrome", 1, 1.0, 0.0),
        },
    )
    after = make_reading(
        110.0,
        66.0,
        {
            OWN: ("python", 1, 11.0, 3.0),
            CHILD: ("python", OWN[0], 7.0, 0.0),
            (7, 1): ("ffmpeg", 1, 26.0, 0.0),
            (8, 1): ("chrome", 1, 2.0, 0.0),
            (9, 1): ("chrome", 1, 2.0, 0.0),
            (7, 2): ("sleeper", 1, 0.1, 0.0),
            (10, 2): ("new", 1, 0.8, 0.0),
        },
    )

    load = compare_readings(before, after, Path("/nowhere"))

    assert round(load.busy_cores, 9) == 0.9
    assert load.busiest == (
        "ffmpeg (0.6 cores, process 7)",
        "chrome (0.2 cores, 2 processes)",
        "new (0.1 cores, process 10)",
    )


def test_a_busy_process_is_named_with_what_it_runs_and_its_user(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "cmdline").write_bytes(b"/usr/bin/python3\0/home/ada/train.py\0--token\0s3cret\0")
    user = pwd.getpwuid(os.getuid()).pw_name
    before, after = (make_reading(at, at, {(7, 1): ("python3", 1, at, 0.0)}) for at in (1.0, 2.0))
    assert compare_readings(before, after, tmp_path).busiest == (f"python3 train.py of {user} (1.0 cores, process 7)",)


def test_the_counters_of_the_kernel_are_read(tmp_path: Path) -> None:
    cores = sorted(os.sched_getaffinity(0))
    ticks = os.sysconf("SC_CLK_TCK")
    lines = [f"cpu{core} {ticks} 0 {ticks} 900 900 0 0 {ticks} 0 0" for core in cores]
    (tmp_path / "stat").write_text("\n".join(["cpu  1 2 3 4 5 6 7 8 9 10", *lines, "intr 5"]))
    (tmp_path / "42").mkdir()
    fields = ["S", "7", *["0"] * 9, *(str(number * ticks) for number in (1, 2, 3, 4)), *["0"] * 4, "777", "0"]
    (tmp_path / "42" / "stat").write_text(f"42 (a ) b) {' '.join(fields)}")
    (tmp_path / "43").mkdir()  # it ended meanwhile

    reading = LoadReading.take(tmp_path)

    assert reading is not None
    assert (reading.busy_seconds, reading.num_cores) == (3.0 * len(cores), len(cores))
    assert reading.processes == {(42, 777): ProcessTime("a ) b", 7, 3.0, 7.0)}
    assert LoadReading.take(tmp_path / "none") is None


def test_this_machine_can_be_read() -> None:
    reading = LoadReading.take()
    assert reading is not None
    assert os.getpid() in {pid for pid, _ in reading.list_own()}


def make_repeat(device: Device = "cpu") -> Repeat:
    (repeat,) = order_repeats([PlannedCell(cell=make_cell(device=device), repeats=1, timeout_seconds=60.0)], None)
    return repeat


def read_load(others: float) -> Iterator[LoadReading]:
    """Yield readings, a second each, of a machine with two cores of which ffmpeg keeps `others` busy."""
    for second in range(100):
        seconds = others * second
        process = ProcessTime("ffmpeg", 1, seconds, 0.0)
        yield LoadReading(at=float(second), busy_seconds=seconds, num_cores=2, processes={(9_999_999, 1): process})


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
