"""The commands that print documents: render, schema."""

import json
import re
import shutil
from pathlib import Path

from bench.schema import PlannedCell
from command_reference import list_commands
from runner.cli import make_command
from runner.commands.json_documents import StatusDocument
from runner.commands.schema import KINDS, export_schema
from runner.sources import ROOT
from workspace import CallMain


def test_cells_are_printed_for_people_and_for_programs(call_main: CallMain) -> None:
    code, out, err = call_main("render", "quick.yaml")
    assert (code, len(out.splitlines())) == (0, 2)
    lines = [re.sub("-[0-9a-f]{8}$", "-ID", line) for line in out.splitlines()]
    assert lines == [
        f"conv6 train, CPU, batch {size}, 32 px, fp32, PyTorch eager  repeats=2 timeout_seconds=60  "
        f"conv6-pytorch-cpu-train-fp32-eager-b{size}-ID"
        for size in (1, 2)
    ]
    # Two cells of two repeats, a minute each at most.
    assert err.splitlines() == [
        "quick.yaml: 2 cells, 4 repeats",
        "cpu: 4 repeats take about 2 min, at most 4 min (a guess, 27 s each: nothing was measured on this device "
        "here before, and large models take longer)",
    ]

    code, out, err = call_main("render", "quick.yaml", "--json")
    planned = [PlannedCell.model_validate_json(line) for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert [(p.cell.batch_size, p.repeats, p.timeout_seconds) for p in planned] == [(1, 2, 60.0), (2, 2, 60.0)]


def test_every_command_that_prints_json_has_a_schema_of_its_name(call_main: CallMain) -> None:
    commands = dict(list_commands(make_command(), "benchmatrix"))
    printing = {
        path.split()[1] for path, found in commands.items() if any("--json" in one.opts for one in found.params)
    }
    assert printing == set(KINDS) - {"stored"}
    assert json.loads(call_main("schema")[1]) == export_schema("stored")


def test_a_finished_run_is_described_for_programs(call_main: CallMain, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs/results/2026-11-21-h200/runs", tmp_path / "copy" / "runs")
    store = f"file://{tmp_path}/copy"

    code, out, err = call_main("status", "--store", store, "--json")
    status = StatusDocument.model_validate_json(out)
    assert (code, err) == (0, "")
    assert (status.run_id, status.num_repeats, status.cluster) == ("study-h200-2", {"ok": 54}, None)
