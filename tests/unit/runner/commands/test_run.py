"""`benchmatrix run` on this machine: what it prints, which files it writes, which exit codes it has."""

import json
import re
import shlex
import sys
from collections import Counter

import pytest

from bench.store import Store
from factories import make_run, present
from fake_interpreters import make_interpreter, read_log
from memory_cgroup import MemoryCgroup
from runner.commands.run_execution import format_resume_command
from runner.progress import RunEvent
from s3_server import S3Server
from stand_in_records import VERDICT_VARIABLE
from workspace import MATRIX, PROGRAM, CallMain, Workspace, name_repeats, read_results


def test_a_run_ends_with_a_table_and_a_report(call_main: CallMain, workspace: Workspace) -> None:
    code, out, err = call_main("run", "quick.yaml", "--python", "./python", "--publish")

    assert (code, err) == (0, "")
    (run_id,) = workspace.list_run_ids()
    assert f"report: reports/{run_id}/report.html" in out.splitlines()
    folder, latest = workspace.folder / "reports" / run_id, workspace.folder / "results" / "latest"
    assert (folder / "report.html").read_text().startswith("<!doctype html>")
    assert (folder / "results.parquet").exists()
    assert sum(line.startswith("conv6 ") for line in out.splitlines()) == 2  # the table has a row for each cell
    assert f"published: file://results/runs/{run_id}/report.html, file://results/latest/report.html" in out
    assert (latest / "report.html").read_bytes() == (folder / "report.html").read_bytes()
    published = json.loads((latest / "run.json").read_text())
    assert (published["run_id"], published["ending"]["num_repeats"]) == (run_id, {"ok": 4})


def test_a_run_that_others_disturbed_ends_with_the_command_that_measures_it_again(
    call_main: CallMain, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VERDICT_VARIABLE, "contaminated")
    words = ["run", "quick.yaml", "--python", "./python", "--no-report", "--run-id", "mine"]
    code, out, _ = call_main(*words)
    assert code == 0
    retry = f"{shlex.join(words)} --retry-contaminated"
    assert out.count("2 repeats in a row were contaminated") == 1
    assert out.splitlines()[-2:] == [
        "contaminated by others, and not counted: 4 of 4 repeats. Measure them again when nobody else uses the "
        "machine:",
        f"  benchmatrix {retry}",
    ]
    _, out, _ = call_main("status")
    assert out.splitlines()[0] == "mine: 4 repeats: 4 ok (none valid, 4 contaminated)"
    _, out, _ = call_main("status", "--json")
    assert json.loads(out)["num_by_verdict"] == {"contaminated": 4}

    monkeypatch.delenv(VERDICT_VARIABLE)
    _, out, _ = call_main(*shlex.split(retry), "--json")

    ended = RunEvent.model_validate_json(out.splitlines()[-1])
    assert (ended.event, ended.is_ok, ended.num_contaminated) == ("ended", True, 0)
    assert len(read_log(workspace.log)) == 8
    _, out, _ = call_main("status")
    assert out.splitlines()[0] == "mine: 4 repeats: 4 ok"


def test_cells_that_end_badly_do_not_keep_the_others_from_being_measured(
    call_main: CallMain, workspace: Workspace, memory_cgroup: MemoryCgroup
) -> None:
    """One of each kind: a crash, want of memory, a hang, and one that is well."""
    fill = shlex.join([sys.executable, "-S", "-c", "print('filling', flush=True); full = b'x' * 2**30"])
    workspace.make_python(
        before='case "$BENCH_CELL" in\n'
        "*'\"batch_size\":1,'*) kill -SEGV $$;;\n"
        f"*'\"batch_size\":2,'*) {memory_cgroup.join_command}; exec {fill};;\n"
        "*'\"batch_size\":3,'*) sleep 60;;\n"
        "esac"
    )
    matrix = MATRIX.replace("[1, 2]", "[1, 2, 3, 4]").replace("repeats: 2, timeout_seconds: 60", "repeats: 1")
    (workspace.folder / "quick.yaml").write_text(matrix + "include: [{batch_size: 3, timeout_seconds: 0.5}]\n")

    code, out, err = call_main("run", "quick.yaml", "--python", "./python", "--no-report")

    assert (code, err) == (1, "")
    ends = {result.cell.batch_size: (result.status, result.error) for result in workspace.read_results()}
    assert {size: status for size, (status, _) in ends.items()} == {1: "failed", 2: "oom", 3: "timeout", 4: "ok"}
    error = present(ends[2][1])
    assert (error.kind, error.signal, error.stderr_tail) == ("out-of-memory", "SIGKILL", "filling\n")
    assert "ended by SIGSEGV" in out
    assert "killed by the kernel's OOM killer" in out
    assert "still running after timeout_seconds = 0.5" in out
    assert "3 of 4 repeats did not end well: " in out
    assert (call_main("status")[0], len(workspace.read_results())) == (0, 4)


def test_a_store_in_the_cloud_holds_the_whole_run(
    call_main: CallMain, workspace: Workspace, s3_server: S3Server
) -> None:
    url = f"s3://{s3_server.bucket}/team"

    code, _, err = call_main("run", "quick.yaml", "--python", "./python", "--store", url, "--no-report")

    assert (code, err) == (0, "")
    assert sorted(read_log(workspace.log)) == name_repeats(read_results(Store.open(url)))
    assert not (workspace.folder / "results").exists()
    assert call_main("status", "--store", url)[1].endswith(": 4 repeats: 4 ok\n")


def test_the_resume_command_names_the_program_as_it_was_called_or_as_the_shell_finds_it(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`/somewhere/bin/benchmatrix` is named as it was called unless the shell finds the same one by its name."""
    script = make_interpreter(workspace.folder / "benchmatrix", shlex.join([*PROGRAM]) + ' "$@"')
    run = make_run(run_id="mine")

    monkeypatch.setattr(sys, "argv", [str(script), "run", "a b.yaml", "--new"])
    assert format_resume_command(run) == f"{script} run 'a b.yaml' --run-id mine"
    monkeypatch.setenv("PATH", str(workspace.folder))
    assert format_resume_command(run) == "benchmatrix run 'a b.yaml' --run-id mine"
    monkeypatch.setattr(sys, "argv", ["bin/benchmatrix", "run", "smoke", "--run-id", "mine"])
    assert format_resume_command(run) == "bin/benchmatrix run smoke --run-id mine"


def test_a_dry_run_says_what_a_run_takes_and_measures_nothing(call_main: CallMain, workspace: Workspace) -> None:
    code, out, err = call_main("run", "quick.yaml", "--dry-run", "--machine", "cpu=m6i.xlarge", "--python", "./python")
    assert (code, err, workspace.list_run_ids()) == (0, "", [])
    assert out.splitlines()[:2] == [
        "plan: 2 cells, 4 repeats in all; 0 there, 4 to measure",
        "cpu: 4 repeats take about 2 min, at most 4 min (a guess, 27 s each: nothing was measured on this device "
        "here before, and large models take longer); about 0.01 USD, at most 0.01 (0.192 per hour, EKS us-east-1 "
        "m6i.xlarge, 2026-07-20)",
    ]
    event = json.loads(call_main("run", "quick.yaml", "--python", "./python", "--dry-run", "--json")[1])
    (estimate,) = event["estimates"]
    assert (estimate["expected_hours"], estimate["most_hours"]) == pytest.approx((108 / 3600, 4 * 60 / 3600))
    assert call_main("run", "quick.yaml", "--python", "./python", "--no-report")[0] == 0
    code, out, _ = call_main("run", "quick.yaml", "--dry-run", "--new", "--python", "./python")
    assert (code, len(workspace.list_run_ids())) == (0, 1)
    estimate = out.splitlines()[1]
    assert re.fullmatch(r"cpu: 4 repeats take about \d+ s, at most 4 min \(as they took here before\)", estimate)
    code, _, err = call_main("run", "quick.yaml", "--dry-run", "--prices", "prices.yaml")
    assert (code, err.startswith("error: --prices: its prices are looked up by machine type; ")) == (2, True)


def test_a_run_ends_at_its_cap_and_goes_on_with_a_later_one(call_main: CallMain, workspace: Workspace) -> None:
    words = ("run", "quick.yaml", "--python", "./python", "--no-report", "--run-id", "mine")
    workspace.make_python(before="sleep 0.5")  # so that not all four fit into a second
    code, out, _ = call_main(*words, "--deadline", "1")
    assert (code, "the deadline of 1 s has passed" in out, len(workspace.read_results()) < 4) == (1, True, True)
    assert "; 0 there, 4 to measure" in call_main(*words[:4], "--new", "--dry-run")[1]
    assert call_main(*words, "--max-cost", "1")[0] == 2
    code, _, err = call_main(*words, "--max-cost", "1", "--machine", "cpu=m6i.xlarge")
    assert (code, err, len(workspace.read_results())) == (0, "", 4)


def test_events_say_what_happens_and_messages_go_to_stderr(call_main: CallMain, workspace: Workspace) -> None:
    workspace.make_python(before='case "$BENCH_CELL" in *\'"batch_size":2,\'*) exit 3;; esac')

    words = ("run", "quick.yaml", "--python", "./python", "--run-id", "mine")
    code, out, err = call_main(*words, "--json", "--output", "out")

    events = [RunEvent.model_validate_json(line) for line in out.splitlines()]
    assert code == 1
    assert events[0].model_dump(exclude_unset=True) == {
        "event": "begun", "run_id": "mine", "matrix": "quick", "store": "file://results", "num_cells": 2,
        "num_repeats": 4,
    }  # fmt: skip
    first = next(event for event in events if event.event == "progress")
    assert (first.done, first.running, first.to_submit, first.seconds_left) == (0, 1, 3, None)
    finished = [event for event in events if event.event == "finished"]
    assert sorted((event.status, event.step_seconds) for event in finished if event.status == "ok") == [("ok", 0.1)] * 2
    assert [event.error is None for event in finished if event.status == "failed"] == [False] * 2
    assert events[-1].model_dump(exclude_unset=True) == {
        "event": "ended", "run_id": "mine", "is_ok": False, "reason": None, "report": "out/report.html",
        "ok": 2, "failed": 2, "num_contaminated": 0,
    }  # fmt: skip
    assert "plan: 2 cells, 4 repeats in all; 0 there, 4 to measure" in err
    assert "; 2 there, 2 to measure" in call_main(*words, "--retry-failed", "--dry-run")[1]


ADAPTIVE = MATRIX.replace("[1, 2]", "[1, 2, 3, 4]").replace("repeats: 2", "repeats: {min: 3, max: 6, until: 2%}")


def test_a_cell_gets_the_repeats_that_the_spread_of_its_first_ones_asks_for(
    call_main: CallMain, workspace: Workspace
) -> None:
    """Of 1 % it takes 3 * (4.303 * 0.0099 / sqrt(3) / log(1.02))^2 = 4.6 repeats."""
    (workspace.folder / "quick.yaml").write_text(ADAPTIVE)
    workspace.make_python(
        before='case "$BENCH_CELL$BENCH_REPEAT" in\n'
        "*'\"batch_size\":2,'*[1-3]) export FAKE_STEP_SECONDS=0.10$BENCH_REPEAT;;\n"
        "*'\"batch_size\":3,'*) export FAKE_STEP_SECONDS=0.$BENCH_REPEAT;;\n"
        "*'\"batch_size\":4,'*1) export FAKE_VERDICT=contaminated FAKE_STEP_SECONDS=0.2;;\n"
        "esac"
    )
    words = ("run", "quick.yaml", "--python", "./python", "--no-report", "--run-id", "mine")

    assert "repeats: 12 at first, how many are likely is not known yet, at most 24" in call_main(*words, "--dry-run")[1]
    code, out, _ = call_main(*words)

    assert (code, "by the spread of the first repeats: 5 repeats more" in out.splitlines()) == (0, True)
    assert "1 cell with as many as 'max': the interval may be wider than asked for" in out.splitlines()
    numbers = Counter(result.cell.batch_size for result in workspace.read_results())
    assert numbers == {1: 3, 2: 5, 3: 6, 4: 3}  # others disturbed the last: how it spreads is not known
    (of_two,) = (line for line in out.splitlines() if "batch 2" in line)
    assert "±1.9 %" in of_two  # 4.303 * 0.0099 / sqrt(5), although all five spread by 0.9 %
    (workspace.folder / "quick.yaml").write_text(ADAPTIVE.replace("quick", "other"))
    likely = call_main("run", "quick.yaml", "--python", "./python", "--dry-run")[1].splitlines()[0]
    assert likely == "repeats: 12 at first, 17 likely by run mine, at most 24"


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (
            "{max: 9}",
            "defaults.repeats.until: expected how wide the interval may be, such as 2%, or else 'until_ratio'",
        ),
        (
            "{min: 1, until: 2%}",
            "defaults.repeats.min: expected at least 2, which have a spread, and at most 'max' (20)",
        ),
        ("{until: 0%}", "defaults.repeats.until: expected more than 0.01% and less than 100%"),
        ("{until: 2}", "defaults.repeats.until: found the number 2, expected a share in percent, such as 2%"),
        ("few", "defaults.repeats: found the text 'few', expected a valid integer"),
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused(
    rule: str, message: str, call_main: CallMain, workspace: Workspace
) -> None:
    (workspace.folder / "quick.yaml").write_text(MATRIX.replace("repeats: 2", f"repeats: {rule}"))
    code, _, err = call_main("run", "quick.yaml")
    assert (code, message in err) == (2, True), err
