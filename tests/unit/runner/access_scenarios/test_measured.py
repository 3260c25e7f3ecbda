"""Speeds that are read from a run: the one cell that fits, or an error that says which there are."""

import json
from pathlib import Path
from typing import Any

import pytest

from access_scenarios import describe_scenario
from collector.access.choices import KindFigures
from factories import make_cell
from measured_runs import collect_results, make_repeats
from runner.access_scenarios.figures import look_up_figures
from runner.access_scenarios.loading import load_scenario
from runner.yaml_files.errors import YamlError

RUN_ID = "measured"


def look_up(folder: Path, **measured: Any) -> KindFigures:
    train, infer = (make_cell(phase=phase) for phase in ("train", "infer"))
    results = [*make_repeats(train, 0.5, 0.5, run_id=RUN_ID), *make_repeats(infer, 0.1, 0.1, run_id=RUN_ID)]
    collect_results(folder / "store", *results, repeats=2, run_id=RUN_ID)
    kinds = {
        "T4": {
            "measured": {"run": RUN_ID, "store": f"file://{folder / 'store'}"} | measured,
            "slowdowns": {"mps": {2: 1.5}},
        },
        "H100": {"samples_per_second": 2500},
    }
    (folder / "ours.yaml").write_text(json.dumps(describe_scenario(kinds=kinds)))
    return look_up_figures(*load_scenario(str(folder / "ours.yaml")))["T4"]


def test_a_speed_is_that_of_the_cell_that_fits(tmp_path: Path) -> None:
    found = look_up(tmp_path, where=["phase=train", "framework=pytorch"])
    assert found.samples_per_second == pytest.approx(64 / 0.5)
    assert found.origin == "measured"
    assert found.source.startswith("conv6 train")
    assert found.source.endswith("run measured, 2 repeats")
    assert found.slowdowns["mps"].by_tenants == {2: 1.5}


@pytest.mark.parametrize(
    ("measured", "message"),
    [
        ({}, "kinds.T4.measured: run measured: 2 cells fit: conv6 train"),
        ({"where": ["phase=probe"]}, "kinds.T4.measured.where: run measured: no cell fits all of it; measured under"),
        ({"where": ["phas=train"]}, "kinds.T4.measured.where[0]: 'phas' is no key; did you mean 'phase'?"),
        ({"run": "other"}, "kinds.T4.measured: "),
    ],
)
def test_what_cannot_be_read_is_an_error_at_its_place(tmp_path: Path, measured: dict[str, Any], message: str) -> None:
    with pytest.raises(YamlError) as caught:
        look_up(tmp_path, **measured)
    assert message in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
