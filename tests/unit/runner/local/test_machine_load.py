"""runner.local.machine_load: what others did between two readings of made-up and of real counters."""

import os
import pwd
from dataclasses import replace
from pathlib import Path

from runner.local.machine_load import LoadReading, ProcessTime, compare_readings

OWN, CHILD = (os.getpid(), 1), (900_001, 5)


def make_reading(
    at: float, busy: float, processes: dict[tuple[int, int], tuple[str, int, float, float]]
) -> LoadReading:
    """Return a reading of a machine with two cores; of each process name, parent, own and waited-for seconds."""
    times = {
        key: ProcessTime(name=name, parent=parent, seconds=seconds, waited_seconds=waited)
        for key, (name, parent, seconds, waited) in processes.items()
    }
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

    load = compare_readings(before, after)

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
    before, after = (
        replace(make_reading(at, at, {OWN: ("python", 1, 0.0, 0.0), (7, 1): ("python3", 1, at, 0.0)}), proc=tmp_path)
        for at in (1.0, 2.0)
    )
    assert compare_readings(before, after).busiest == (f"python3 train.py of {user} (1.0 cores, process 7)",)


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
    assert reading.processes == {(42, 777): ProcessTime(name="a ) b", parent=7, seconds=3.0, waited_seconds=7.0)}
    assert LoadReading.take(tmp_path / "none") is None


def test_this_machine_can_be_read() -> None:
    reading = LoadReading.take()
    assert reading is not None
    assert os.getpid() in {pid for pid, _ in reading.list_own()}
