"""`watch` and `run --watch` on this machine, from the command line: three nights, of which the last is slower."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bench.schema import Alarm
from bench.store import Store
from nights import SLOWED, SimulatedNights
from runner.commands.json_documents import WatchDocument
from stand_in_records import STEP_VARIABLE
from webhook_receiver import receive
from workspace import Workspace

CallMain = Callable[..., tuple[int, str, str]]


def test_watch_suspects_then_confirms_and_says_so_by_its_exit_code(call_main: CallMain, workspace: Workspace) -> None:
    nights = SimulatedNights(store=Store.open(f"file://{workspace.folder}/results"))
    nights.put_night(0)
    nights.put_night(1)
    assert call_main("watch")[0] == 0
    nights.put_night(2, factors={SLOWED.cell_id: 1.9})

    code, out, _ = call_main("watch", "--confirmation", "again.yaml", "--metrics-file", "night.prom")
    assert code == 3
    run_id = out.split("--run-id ")[1].split()[0]
    assert f"benchmatrix run again.yaml --store file://results --run-id {run_id} --no-report" in out
    assert 'state="pending"} 1.0' in (workspace.folder / "night.prom").read_text()

    nights.put_confirmation(run_id, [SLOWED], factors={SLOWED.cell_id: 1.9})
    code, out, err = call_main("watch", "--json")
    WatchDocument.model_validate_json(out)  # its schema holds
    assert code == 1
    assert [change["state"] for change in json.loads(out)["changes"]] == ["confirmed"]
    assert err == ""


def test_a_night_whose_clock_was_set_back_is_said_not_to_be_the_newest(
    call_main: CallMain, workspace: Workspace
) -> None:
    ahead = datetime.now(UTC) + timedelta(hours=12)
    nights = SimulatedNights(store=Store.open(f"file://{workspace.folder}/results"), matrix="quick")
    nights.put_night(0, created_at=ahead, run_id="ahead")

    code, out, _ = call_main("run", "quick.yaml", "--python", "./python", "--watch", "--run-id", "mine", "--no-report")

    assert code == 0
    assert f"run mine is not the newest night of quick: ahead began later, at {ahead:%Y-%m-%d %H:%M} UTC" in out


def test_nights_that_all_lie_in_the_future_are_not_said_to_be_missing(
    call_main: CallMain, workspace: Workspace
) -> None:
    nights = SimulatedNights(store=Store.open(f"file://{workspace.folder}/results"))
    nights.put_night(0, created_at=datetime.now(UTC) + timedelta(days=400), run_id="ahead")

    code, _, err = call_main("watch")

    assert code == 2
    assert "none of 1 runs can be looked at, such as ahead: began on " in err


def test_nights_of_other_matrices_in_the_future_are_named_only_where_no_matrix_is(
    call_main: CallMain, workspace: Workspace
) -> None:
    store = Store.open(f"file://{workspace.folder}/results")
    ahead = datetime.now(UTC) + timedelta(days=400)
    SimulatedNights(store=store).put_night(0)
    SimulatedNights(store=store, matrix="other").put_night(0, created_at=ahead, run_id="other-ahead")
    own = SimulatedNights(store=store).matrix
    assert "other-ahead: began on " in "".join(call_main("watch")[1:])
    code, out, err = call_main("watch", "--matrix", own)
    assert (code, "other-ahead" in out + err) == (0, False)

    SimulatedNights(store=store).put_night(1, created_at=ahead, run_id="own-ahead")
    code, out, err = call_main("watch", "--matrix", own)
    assert (code, "own-ahead: began on " in out + err, "other-ahead" in out + err) == (0, True, False)


def test_a_matrix_with_runs_in_the_future_alone_is_not_said_to_have_none_without_the_reason(
    call_main: CallMain, workspace: Workspace
) -> None:
    store = Store.open(f"file://{workspace.folder}/results")
    later = datetime.now(UTC) + timedelta(days=400)
    SimulatedNights(store=store, matrix="other").put_night(0, created_at=later, run_id="ahead")
    code, _, err = call_main("watch", "--matrix", "third")
    assert (code, err) == (2, "error: --matrix third: store file://results has no run of it\n")
    SimulatedNights(store=store).put_night(0)
    code, _, err = call_main("watch", "--matrix", "other")
    assert code == 2
    assert "has no run of it; it has runs of " in err
    assert "; not looked at: ahead: began on " in err


def test_a_webhook_without_watch_is_refused_before_anything_is_measured(
    call_main: CallMain, workspace: Workspace
) -> None:
    code, _, err = call_main("run", "quick.yaml", "--python", "./python", "--webhook", "json:HOOK")

    assert (code, err) == (2, "error: --webhook: is for runs that are watched; add --watch, or leave it out\n")
    assert not (workspace.folder / "results" / "runs").exists()


def test_a_slower_third_night_is_measured_again_and_ends_in_a_webhook_and_the_report(
    call_main: CallMain, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("run", "quick.yaml", "--python", "./python", "--watch", "--webhook", "json:HOOK", "--publish")
    with receive() as receiver:
        monkeypatch.setenv("HOOK", receiver.url)
        for night in ("first", "second"):
            code, out, _ = call_main(*command, "--run-id", night)
            assert code == 0
        workspace.make_python(before=f"export {STEP_VARIABLE}=0.19")
        code, out, _ = call_main(*command, "--run-id", "third")

    assert code == 0
    assert "2 slowdowns are suspected: they are measured again" in out
    assert "sent to json:HOOK: 2 regressions of third" in out
    (alarm,) = (Alarm.model_validate_json(body) for body in receiver.bodies)
    assert len(alarm.regressions) == 2
    assert all(change.shift.ratio == pytest.approx(1.9, rel=1e-6) for change in alarm.regressions)
    page = Path(workspace.folder, "results", "latest", "report.html").read_text()
    assert "Changes over the nights" in page
    assert "confirmed" in page
