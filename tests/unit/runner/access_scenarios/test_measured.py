"""Speeds that are read from a run: the one cell that fits, or an error that says which there are."""

import json
from pathlib import Path
from typing import Any

import pytest

from access_scenarios import describe_scenario
from bench.schema import Result
from collector.access.outcomes import KindFigures
from factories import make_result
from measured_runs import collect_results, make_repeats
from runner.access_scenarios import load_scenario, look_up_figures
from runner.yaml_input import YamlError
from shared_runs import TRAINING, make_gpu_cell, make_tenants_result

RUN_ID = "measured"


def look_up(folder: Path, *more: Result, slowdowns: Any = None, **measured: Any) -> KindFigures:
    train, infer = (make_gpu_cell(phase=phase) for phase in ("train", "infer"))
    results = [*make_repeats(train, 0.5, 0.5, run_id=RUN_ID), *make_repeats(infer, 0.1, 0.1, run_id=RUN_ID), *more]
    collect_results(folder / "store", *results, repeats=2, run_id=RUN_ID)
    given = {"run": RUN_ID, "store": f"file://{folder / 'store'}"} | measured
    kinds = {"T4": {"measured": given, "slowdowns": slowdowns or {}}, "H100": {"samples_per_second": 2500}}
    (folder / "ours.yaml").write_text(json.dumps(describe_scenario(kinds=kinds)))
    return look_up_figures(*load_scenario(str(folder / "ours.yaml")))["T4"]


def test_a_speed_is_that_of_the_cell_that_fits(tmp_path: Path) -> None:
    found = look_up(tmp_path, where=["phase=train", "framework=pytorch"])
    assert found.samples_per_second == pytest.approx(64 / 0.5)
    assert found.measured.startswith("measured: conv6 train")
    assert found.measured.endswith("run measured, 2 repeats")
    assert found.slowdowns == {}


def test_a_speed_has_the_hiccups_of_the_whole_window(tmp_path: Path) -> None:
    # Nine steps of 10 ms and one of 19: ten in 0.109 s, though the median says 100 a second.
    cell = make_gpu_cell(model="resnet18")
    steps = (0.01,) * 9 + (0.019,)
    results = [make_result(cell, repeat=repeat, step_seconds=steps, run_id=RUN_ID) for repeat in (1, 2)]
    found = look_up(tmp_path, *results, where=["model=resnet18"])
    assert found.samples_per_second == pytest.approx(64 * 10 / 0.109)


def test_slowdowns_are_those_of_the_tenants_that_did_the_same_work(tmp_path: Path) -> None:
    shared = [
        make_tenants_result(make_gpu_cell(tenants=number, sharing=sharing), *[[seconds] * 3] * number, run_id=RUN_ID)
        for number, sharing, seconds in ((2, "time-slicing", 1.1), (4, "time-slicing", 2.2), (2, "mps", 0.75))
    ]
    beside_training = make_tenants_result(make_gpu_cell(tenants=2, neighbour=TRAINING), [5.0], [5.0], run_id=RUN_ID)
    of_inference = make_tenants_result(make_gpu_cell(phase="infer", tenants=2), [9.0], [9.0], run_id=RUN_ID)
    found = look_up(tmp_path, *shared, beside_training, of_inference, where=["phase=train"]).slowdowns
    assert found["time-slicing"] == pytest.approx({2: 2.2, 4: 4.4})
    assert found["mps"] == pytest.approx({2: 1.5})


def test_slowdowns_that_a_scenario_states_hold_instead(tmp_path: Path) -> None:
    shared = make_tenants_result(make_gpu_cell(tenants=2, sharing="mps"), [0.75], [0.75], run_id=RUN_ID)
    found = look_up(tmp_path, shared, slowdowns={"mps": {3: 2.0}}, where=["phase=train"]).slowdowns
    assert found == {"mps": {3: 2.0}}


@pytest.mark.parametrize(
    ("measured", "message"),
    [
        ({}, "kinds.T4.measured: run measured: 2 cells fit: conv6 train"),
        ({"where": ["phase=probe"]}, "kinds.T4.measured.where: run measured: no cell fits all of it; alone and under"),
        ({"where": ["phas=train"]}, "kinds.T4.measured.where[0]: 'phas' is no key; did you mean 'phase'?"),
        (
            {"where": ["phase=train", "host=nowhere"]},
            "kinds.T4.measured.where[1]: 'host' does not choose a cell, since its repeats may differ in it; give model",
        ),
        ({"run": "other"}, "kinds.T4.measured: "),
    ],
)
def test_what_cannot_be_read_is_an_error_at_its_place(tmp_path: Path, measured: dict[str, Any], message: str) -> None:
    with pytest.raises(YamlError) as caught:
        look_up(tmp_path, **measured)
    assert message in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
