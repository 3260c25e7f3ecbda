"""docs/results/reproduce-on-t4.md: its counts are those of the plan, its hours those of its figures."""

import re
from pathlib import Path

import pytest
import yaml

from bench.schema import Cell
from collector.audit.claims import load_study
from matrix_files import pick
from runner.matrix import load_matrix
from runner.profiles.loading import find_profile

PAGE = Path(__file__).parents[3] / "docs" / "results" / "reproduce-on-t4.md"
TEXT = PAGE.read_text(encoding="utf-8")
FIXED_SECONDS = 50
# What the page takes for the rates of the two devices, FLOP/s; `cpu` is the lowest peak that study.yaml gives it.
RATES = {"gpu": 3.5e12, "cpu": 70e9}


def estimate_step_seconds(cell: Cell) -> float:
    """Return the longer of the study's time and of what the work takes at the page's rate; the latter at 32 px."""
    study = load_study()
    device = study.gpu if cell.device == "gpu" else study.cpu
    rows = [row for row in study.rows if (row.model, row.device, row.phase) == (cell.model, device, cell.phase)]
    (flops,) = (
        (reading.flops_per_sample or 0) * cell.batch_size
        for reading in rows[0].list_readings()
        if reading.is_model and reading.input_size == cell.input_size
    )
    by_work = flops / RATES[cell.device]
    # The table gives no inference of PyTorch on the CPU: TensorFlow's stands for it.
    times = {row.framework: (row.milliseconds or 0) / 1000 for row in rows}
    stated = times.get(cell.framework, times["tensorflow"])
    return by_work if cell.input_size == 32 else max(stated, by_work)


def count_repeats(matrix: str, profile_name: str) -> int:
    profile = find_profile(profile_name, "")

    cells = load_matrix(matrix).cells
    return sum(planned.repeats for planned in cells if profile.explain_unsupported(planned.cell) is None)


@pytest.mark.parametrize("profile", ["gke", "eks"])
def test_the_numbers_of_jobs_are_those_of_the_plan(profile: str) -> None:
    paragraph = " ".join(TEXT.split())
    assert f"46 cells, three repeats each: {count_repeats('paper-claims', profile)} Jobs." in paragraph
    assert f"{count_repeats('paper-gpu', profile)} Jobs on a T4." in paragraph
    assert len(load_matrix("paper-claims").cells) == 46


def test_the_table_of_hours_is_that_of_its_figures() -> None:
    rows = re.findall(r"^\| (GPU|CPU), (\w+) \| (\d+) \| (\d+) \| ([\d.]+) s, (\d+) cells \| ([\d.]+) \|$", TEXT, re.M)
    assert len(rows) == 4
    cells = load_matrix("paper-claims").cells
    for device, phase, repeats, steps, seconds, num_cells, hours in rows:
        wanted = (device.lower(), {"training": "train", "inference": "infer"}[phase])
        found = [count for *names, count in pick(cells, "device", "phase", "repeats") if tuple(names) == wanted]
        assert (len(found), sum(found)) == (int(num_cells), int(repeats))
        estimates = [
            estimate_step_seconds(planned.cell)
            for planned in cells
            if (planned.cell.device, planned.cell.phase) == wanted
        ]
        assert float(seconds) == pytest.approx(sum(estimates), rel=0.02)
        a_round = int(steps) * float(seconds) + FIXED_SECONDS * int(num_cells)
        assert f"{3 * a_round / 3600:.1f}" == hours


@pytest.mark.parametrize("cloud", ["gke", "eks"])
def test_the_profiles_load(cloud: str, tmp_path: Path) -> None:
    (block,) = re.findall(rf"^```yaml\n(extends: {cloud}\n.*?)^```$", TEXT, re.M | re.S)
    path = tmp_path / "t4.yaml"
    path.write_text(block.replace("PROJECT", "project").replace("ACCOUNT", "123456789012"))
    profile = find_profile(str(path), "")
    assert profile.pools["cpu"].cpus == yaml.safe_load(path.read_text())["pools"]["cpu"]["cpus"] == 2
