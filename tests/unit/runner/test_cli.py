"""runner.cli: the command line as users meet it: what it prints, which files it writes, which exit codes it has."""

import json
import re
import shlex
import sys
from collections.abc import Callable

import jsonschema
import pytest

from bench.schema import PlannedCell
from bench.store import Store
from factories import make_failed_result, make_result, make_run
from fake_interpreters import make_interpreter, read_log
from memory_cgroup import MemoryCgroup
from runner import cli
from runner.commands import run as run_command
from s3_server import S3Server
from workspace import MATRIX, PROGRAM, Workspace, name_repeats, open_terminal, read_results

CallMain = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call_main(workspace: Workspace, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> CallMain:
    """Calls the command line in this process, in the workspace's folder; returns exit code, stdout and stderr."""

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.chdir(workspace.folder)
        monkeypatch.setattr(sys, "argv", ["benchmatrix", *words])
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert isinstance(end.value.code, int)
        return end.value.code, *capfd.readouterr()

    return call


def test_a_run_ends_with_a_table_and_a_report(call_main: CallMain, workspace: Workspace) -> None:
    code, out, err = call_main("run", "quick.yaml", "--python", "./python")

    assert (0, "") == (code, err)
    (run_id,) = workspace.list_run_ids()
    assert f"report: reports/{run_id}/report.html" == out.splitlines()[-1]
    folder = workspace.folder / "reports" / run_id
    assert (folder / "report.html").read_text().startswith("<!doctype html>")
    assert (folder / "results.parquet").exists()
    assert 2 == sum(line.startswith("conv6 ") for line in out.splitlines())  # the table has a row for each cell


def test_every_command_reads_a_finished_run(call_main: CallMain, workspace: Workspace) -> None:
    call_main("run", "quick.yaml", "--python", "./python", "--no-report", "--run-id", "mine")
    assert not (workspace.folder / "reports").exists()

    assert (0, "mine: 4 repeats: 4 ok\n", "") == call_main("status")
    assert (0, "mine: 4 repeats: 4 ok\n", "") == call_main("status", "mine", "--store", "file://results")
    code, out, _ = call_main("collect", "mine", "--output", "tables")
    assert 0 == code
    assert all((workspace.folder / line).is_file() for line in out.splitlines())
    assert "tables/results.csv" in out
    assert (0, "other/report.html\n", "") == call_main("report", "--output", "other", "--year", "2030")
    assert (workspace.folder / "other" / "report.html").stat().st_size > 100_000
    code, out, _ = call_main("run", "quick.yaml", "--python", "./python", "--run-id", "mine", "--no-report")
    assert (0, 4) == (code, len(read_log(workspace.log)))
    assert "run mine: all 4 repeats are there, nothing is measured" in out


def test_a_published_report_lies_in_the_store(call_main: CallMain, workspace: Workspace) -> None:
    code, out, _ = call_main("run", "quick.yaml", "--python", "./python", "--run-id", "mine", "--publish")

    assert 0 == code
    assert "published: file://results/runs/mine/report.html, file://results/latest/report.html" in out
    report = (workspace.folder / "reports" / "mine" / "report.html").read_bytes()
    assert report == (workspace.folder / "results" / "latest" / "report.html").read_bytes()
    latest = json.loads((workspace.folder / "results" / "latest" / "run.json").read_text())
    assert ("mine", {"ok": 4}, []) == (
        latest["run_id"],
        latest["ending"]["num_repeats"],
        latest["ending"]["missing"],
    )


def test_the_claims_are_answered_from_several_runs_on_one_page(call_main: CallMain, workspace: Workspace) -> None:
    for run_id in ("mine", "yours"):
        call_main("run", "quick.yaml", "--python", "./python", "--no-report", "--run-id", run_id)

    assert (0, "pages/claims.md\n", "") == call_main("claims", "mine", "yours", "--output", "pages/claims.md")

    page = (workspace.folder / "pages" / "claims.md").read_text()
    assert page.startswith("# ")
    assert "mine" in page
    assert "yours" in page
    assert "not tested here" in page  # a batch of 1 and of 2 is none of the study's


def test_the_forecast_is_printed_and_drawn(call_main: CallMain, workspace: Workspace) -> None:
    code, out, err = call_main("forecast", "--year", "2030", "--series", "all", "--plot", "forecast.html")

    assert (0, "") == (code, err)
    assert "2030" in out
    assert (workspace.folder / "forecast.html").exists()


def test_cells_that_end_badly_do_not_keep_the_others_from_being_measured(
    call_main: CallMain, workspace: Workspace, memory_cgroup: MemoryCgroup
) -> None:
    """One of each kind: a crash, want of memory, a hang, and one that is well."""
    fill = shlex.join([sys.executable, "-S", "-c", "full = b'x' * 2**30"])
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

    assert (1, "") == (code, err)
    statuses = {result.cell.batch_size: result.status for result in workspace.read_results()}
    assert {1: "failed", 2: "oom", 3: "timeout", 4: "ok"} == statuses
    assert "ended by SIGSEGV" in out
    assert "killed by the kernel's OOM killer" in out
    assert "still running after timeout_seconds = 0.5" in out
    assert "3 of 4 repeats did not end well: " in out
    assert (0, 4) == (call_main("status")[0], len(workspace.read_results()))


def test_a_store_in_the_cloud_holds_the_whole_run(
    call_main: CallMain, workspace: Workspace, s3_server: S3Server
) -> None:
    url = f"s3://{s3_server.bucket}/team"

    code, _, err = call_main("run", "quick.yaml", "--python", "./python", "--store", url, "--output", "out")

    assert (0, "") == (code, err)
    assert sorted(read_log(workspace.log)) == name_repeats(read_results(Store.open(url)))
    assert not (workspace.folder / "results").exists()
    assert call_main("status", "--store", url)[1].endswith(": 4 repeats: 4 ok\n")


def test_a_pipe_gets_plain_lines(workspace: Workspace) -> None:
    done = workspace.call()

    assert 0 == done.returncode
    assert re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", done.stdout) is None
    lines = done.stdout.splitlines()
    assert re.fullmatch(r"run quick-\d{8}-\d{6}-[0-9a-f]{4}", lines[0])
    assert "plan: 2 cells, 4 repeats in all; 0 there, 4 to measure" == lines[1]
    assert 4 == sum(bool(re.match(r"ok +conv6-.* repeat [12]/2  .* s  step 100 ms  \[", line)) for line in lines)


def test_a_terminal_gets_a_live_line(workspace: Workspace) -> None:
    with open_terminal(workspace, workspace.command) as terminal:
        terminal.read_until(r"measuring conv6-pytorch-cpu-train-fp32-eager-b1, repeat 1/2, 0 s")
        terminal.read_until(r"1 done, 0 failed, 3 to go, about \d+ s left")
        terminal.read_until(r"step time")

    assert 0 == terminal.process.returncode


def test_words_in_brackets_are_no_markup(call_main: CallMain, workspace: Workspace) -> None:
    """A store's name can look like one of rich's tags, or like the end of one."""
    name = "results[bold][/x] :smile: 'quoted'"

    code, out, err = call_main("run", "quick.yaml", "--python", "./python", "--no-report", "--store", f"file://{name}")

    assert (0, "") == (code, err)
    command = re.search("to go on after an interruption: (.*)", out)
    assert command is not None
    assert f"file://{name}" in shlex.split(command[1])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "smok"], "error: matrix 'smok': is neither a built-in matrix nor a file; did you mean"),
        (["run", "no/such.yaml"], "error: no/such.yaml"),
        (["run", "quick.yaml", "--on", "gke"], "error: --on gke: "),
        (["run", "quick.yaml", "--store", "results"], "error: store 'results': not a URL; for a directory write"),
        (["run", "quick.yaml", "--store", "ftp://x"], "error: store: 'ftp://' is unknown; known are file, s3, gs, az"),
        (["run", "quick.yaml", "--store", "file://quick.yaml"], "error: store file://quick.yaml: "),
        (["run", "quick.yaml", "--python", "/no/python"], "error: --python /no/python: "),
        (["run", "quick.yaml", "--run-id", "My Run"], "error: --run-id My Run: it takes up to 63 of a-z, 0-9 and '-'"),
        (["run", "quick.yaml", "--owner", "a/b"], "error: --owner: is for runs on a cluster"),
        (["run", "quick.yaml", "--deadline", "60"], "error: --deadline: is for runs on a cluster"),
        (["run", "quick.yaml", "--publish", "--no-report"], "error: --publish: there is nothing to publish without"),
        (["run", "gpu.yaml"], "error: gpu.yaml: no cell can run here: no NVIDIA GPU is visible on this machine"),
        (["render", "nope.yaml"], "error: nope.yaml"),
        (["status"], "error: store file://results: there is no directory "),
        (["status", "x", "--store", "s3://b"], "error: store s3://b: no AWS credentials found; set AWS_ACCESS_KEY_ID"),
        (["report", "mine"], "error: store file://results: "),
        (["collect", "../up"], "error: store file://results: "),
        (["claims", "mine", "--output", "claims.md"], "error: store file://results: there is no directory "),
        (["forecast", "--series", "best"], "error: --series best: unknown; it takes frontier or all"),
        (["forecast", "--table", "no.csv"], "error: "),
    ],
)
def test_a_fault_of_the_user_is_one_message(
    words: list[str], message: str, call_main: CallMain, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runner.local.run.find_gpu", lambda: None)
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    (workspace.folder / "gpu.yaml").write_text(MATRIX.replace("device: cpu", "device: gpu"))

    code, out, err = call_main(*words)

    assert (2, "") == (code, out)
    assert err.startswith(message)
    assert 1 == err.count("\n")


@pytest.mark.parametrize("words", [["run"], ["walk"], ["run", "smoke", "--fast"], ["forecast", "--year", "soon"]])
def test_a_misspelt_command_is_explained_too(words: list[str], call_main: CallMain) -> None:
    code, out, err = call_main(*words)

    assert (2, "") == (code, out)
    assert "Usage: " in err


def test_a_fault_of_the_tool_keeps_its_traceback(workspace: Workspace) -> None:
    program = "import runner.cli as c, runner.commands.render as r; r.load_matrix = lambda name: 1 / 0; c.main()"

    done = workspace.call(sys.executable, "-c", program, "render", "smoke")

    assert 70 == done.returncode  # 1 would tell a Job that its run has ended
    assert done.stderr.startswith("Traceback")
    assert "ZeroDivisionError" in done.stderr


def test_cells_are_printed_for_people_and_for_programs(call_main: CallMain) -> None:
    code, out, err = call_main("render", "quick.yaml")
    assert (0, 2) == (code, len(out.splitlines()))
    assert all(re.fullmatch(r"conv6-.*-[0-9a-f]{8}  repeats=2 timeout_seconds=60", line) for line in out.splitlines())
    assert "quick.yaml: 2 cells, 4 repeats\n" == err

    code, out, err = call_main("render", "quick.yaml", "--json")
    planned = [PlannedCell.model_validate_json(line) for line in out.splitlines()]
    assert (0, "") == (code, err)
    assert [(1, 2, 60.0), (2, 2, 60.0)] == [(p.cell.batch_size, p.repeats, p.timeout_seconds) for p in planned]


def test_the_built_in_matrix_is_there_in_every_folder(call_main: CallMain) -> None:
    code, out, err = call_main("render", "smoke")

    assert (0, 16, "16 cells, 48 repeats") == (code, len(out.splitlines()), err.partition(": ")[2].strip())


def test_the_schema_is_valid_and_tells_documents_from_others(call_main: CallMain) -> None:
    code, out, _ = call_main("schema")

    assert 0 == code
    schema = json.loads(out)
    jsonschema.Draft202012Validator.check_schema(schema)
    for name, document in (("Result", make_result()), ("Result", make_failed_result()), ("Run", make_run())):
        validator = jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": schema["$defs"]})
        good = json.loads(document.to_json())
        assert [] == list(validator.iter_errors(good))
        assert [] != list(validator.iter_errors(good | {"unknown": 1}))
        assert [] != list(validator.iter_errors({key: good[key] for key in good if key != "run_id"}))


def test_the_version_is_printed(call_main: CallMain) -> None:
    code, out, _ = call_main("version")

    assert 0 == code
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", out)


def test_a_reader_that_goes_away_ends_the_run_without_a_traceback(workspace: Workspace) -> None:
    done = workspace.call("sh", "-c", shlex.join(workspace.command) + " | head -n 1")

    assert "" == done.stderr
    assert done.stdout.startswith("run quick-")


def test_the_command_that_goes_on_works_from_a_path_and_from_the_path(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`/somewhere/bin/benchmatrix` is named as it was called unless the shell finds the same one by its name."""
    script = make_interpreter(workspace.folder / "benchmatrix", shlex.join([*PROGRAM]) + ' "$@"')
    run = make_run(run_id="mine")

    monkeypatch.setattr(sys, "argv", [str(script), "run", "a b.yaml", "--new"])
    assert f"{script} run 'a b.yaml' --run-id mine" == run_command.format_resume_command(run)
    monkeypatch.setenv("PATH", str(workspace.folder))
    assert "benchmatrix run 'a b.yaml' --run-id mine" == run_command.format_resume_command(run)
    monkeypatch.setattr(sys, "argv", ["bin/benchmatrix", "run", "smoke", "--run-id", "mine"])
    assert "bin/benchmatrix run smoke --run-id mine" == run_command.format_resume_command(run)


def test_a_report_that_cannot_be_written_is_one_message(call_main: CallMain, workspace: Workspace) -> None:
    call_main("run", "quick.yaml", "--python", "./python", "--no-report", "--run-id", "mine")
    (workspace.folder / "taken").write_text("a file, no folder")

    code, _, err = call_main("report", "mine", "--output", "taken/below")

    assert 2 == code
    assert err.startswith("error: taken/below: cannot be written (")
    assert "Traceback" not in err
