"""The figures of the scenarios that come with the tool are those of the CSV files beside this test."""

from pathlib import Path

import pandas as pd
import pytest

from collector.access.outcomes import EVERYBODY, tabulate_outcomes
from runner.analysis_inputs import load_scenario

FILES = sorted(Path(__file__).parent.glob("*.csv"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_shipped_scenario_gives_the_same_figures(path: Path) -> None:
    keys = ["alternative", "policy", "users"]
    outcomes = tabulate_outcomes(load_scenario(path.stem)).to_dict("records")
    found = {tuple(row[key] for key in keys): row for row in outcomes}
    rows = pd.read_csv(path).replace({"users": {"everybody": EVERYBODY}})
    assert {tuple(key) for key in rows[keys].to_numpy()} == found.keys()
    for row in rows.to_dict("records"):
        figures = found[tuple(row[key] for key in keys)]
        ends = {"": row["center"]} | (
            {} if row["figure"].startswith("num_") else {"_low": row["low"], "_high": row["high"]}
        )
        values = {end: figures[f"{row['figure']}{end}"] for end in ends}
        assert values == pytest.approx(ends, rel=1e-9, abs=1e-12), row
