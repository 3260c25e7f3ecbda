"""Store the runs that the commands of the documentation read, and put their names where a page has a place holder."""

from collections.abc import Sequence
from pathlib import Path

from factories import make_cell, make_environment, make_gpu
from two_runs import put_run

PLACEHOLDERS = {
    "RUN": "nightly-2",
    "RUN_A": "nightly-1",
    "RUN_B": "nightly-2",
    "RUN_CPU": "nightly-1",
    "RUN_GPU": "nightly-2",
    "RUN_ID": "nightly-2",
}
RESNET = {"model": "resnet18", "input_size": 224, "num_classes": 1000, "device": "gpu"}
CELLS = {
    make_cell(): (0.100, 0.101, 0.099),
    make_cell(phase="infer", framework="pytorch"): (0.030, 0.031, 0.030),
    make_cell(phase="infer", framework="tensorflow", mode="graph"): (0.040, 0.041, 0.040),
    make_cell(phase="infer", batch_size=1): (0.010, 0.011, 0.010),
    make_cell(phase="infer", batch_size=8): (0.020, 0.021, 0.020),
    make_cell(phase="infer", batch_size=1, framework="tensorflow", mode="graph"): (0.008, 0.009, 0.008),
    make_cell(phase="infer", batch_size=8, framework="tensorflow", mode="graph"): (0.018, 0.019, 0.018),
    make_cell(**RESNET): (0.233, 0.235, 0.231),
    make_cell(**RESNET, framework="tensorflow", mode="graph"): (0.250, 0.251, 0.249),
}
"""Repeats of each cell in seconds, near enough to one another that a comparison has an answer."""
DRIVERS = {
    "before-1": "550.54.15",
    "before-2": "550.54.15",
    "after-1": "580.65.06",
    "after-2": "580.65.06",
    "nightly-1": "580.65.06",
    "nightly-2": "580.65.06",
}


def put_documented_runs(directory: Path) -> None:
    """Store six runs of the same cells in `directory`, two of them with an earlier driver."""
    for day, (run_id, driver) in enumerate(DRIVERS.items()):
        machine = make_environment(gpus=(make_gpu(driver_version=driver),))
        put_run(directory, run_id, CELLS, day=day, environment=machine)


def replace_placeholders(words: Sequence[str]) -> list[str]:
    """Return a command's words with the ids of stored runs for the place holders."""
    return [PLACEHOLDERS.get(word, word) for word in words]
