"""`watch` and `run --watch` on this machine, from the command line: three nights, of which the last is slower."""

import json
from pathlib import Path

import pytest

from bench.schema import Alarm
from bench.store import Store
from nights import SLOWED, SimulatedNights
from runner.commands.json_documents import WatchDocument
from stand_in_records import STEP_VARIABLE
from webhook_receiver import receive
from workspace import CallMain, Workspace


def test_watch_suspects_then_confirms_and_says_so_by_its_exit_code(
    call_main: CallMain, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    nights = SimulatedNights(store=Store.open(f"file://{workspace.folder}/results"))
    nights.put_night(0)
    nights.put_night(1)
    assert call_main("watch")[0] == 0
    nights.put_night(2, factors={SLOWED.cell_id: 1.9})

    code, out, _ = call_main("watch", "--confirmation", "again.yaml")
    assert code == 3
    run_id = out.split("--run-id ")[1].split()[0]
    assert f"benchmatrix run again.yaml --store file://results --run-id {run_id} --no-report" in out

    nights.put_confirmation(run_id, [SLOWED], factors={SLOWED.cell_id: 1.9})
    with receive() as receiver:
        monkeypatch.setenv("HOOK", receiver.url)
        code, out, err = call_main("watch", "--json", "--webhook", "json:HOOK")
    assert len(receiver.bodies) == 1
    WatchDocument.model_validate_json(out)  # its schema holds
    assert code == 1
    assert [change["state"] for change in json.loads(out)["changes"]] == ["confirmed"]
    assert "sent to json:HOOK: " in err


def test_a_webhook_without_watch_is_refused_before_anything_is_measured(
    call_main: CallMain, workspace: Workspace
) -> None:
    code, _, err = call_main("run", "quick.yaml", "--python", "./python", "--webhook", "json:HOOK")

    assert (code, err) == (2, "error: --webhook: is for runs that are watched; add --watch, or leave it out\n")
    assert not (workspace.folder / "results" / "runs").exists()


def test_a_slower_third_night_is_measured_again_and_ends_in_a_webhook_and_the_report(
    call_main: CallMain, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("run", "quick.yaml", "--python", "./python", "--run-id")
    watched = ("--watch", "--webhook", "json:HOOK")
    with receive() as receiver:
        monkeypatch.setenv("HOOK", receiver.url)
        for night in ("first", "second"):
            assert call_main(*command, night, *watched, "--no-report")[0] == 0
        workspace.make_python(before=f"export {STEP_VARIABLE}=0.19")
        code, out, _ = call_main(*command, "third", *watched, "--publish")

    assert code == 0
    assert "2 slowdowns are suspected: they are measured again" in out
    assert "sent to json:HOOK: 2 regressions of third" in out
    (alarm,) = (Alarm.model_validate_json(body) for body in receiver.bodies)
    assert len(alarm.regressions) == 2
    assert all(change.shift.ratio == pytest.approx(1.9, rel=1e-6) for change in alarm.regressions)
    page = Path(workspace.folder, "results", "latest", "report.html").read_text()
    assert "Changes over the nights" in page
    assert "confirmed" in page
