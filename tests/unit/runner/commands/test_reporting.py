"""The commands that read finished runs: status, report, audit; and forecast."""

import pytest

from collector.audit.claims import load_study
from factories import make_cell
from fake_interpreters import read_log
from two_runs import put_run
from workspace import CallMain, Workspace


def test_every_command_reads_a_finished_run(call_main: CallMain, workspace: Workspace) -> None:
    call_main("run", "quick.yaml", "--python", "./python", "--no-report", "--run-id", "mine")
    assert not (workspace.folder / "reports").exists()

    assert call_main("status") == (0, "mine: 4 repeats: 4 ok\n", "")
    assert call_main("status", "mine", "--store", "file://results") == (0, "mine: 4 repeats: 4 ok\n", "")
    code, out, _ = call_main("report", "mine", "--format", "csv", "--output", "tables")
    assert code == 0
    assert all((workspace.folder / line).is_file() for line in out.splitlines())
    assert "tables/results.csv" in out
    code, out, _ = call_main("report", "--format", "html,parquet,latex,markdown", "--output", "made")
    assert code == 0
    names = ["results.parquet", "samples.parquet", "tenants.parquet", "report.html", "tables.tex", "tables.md"]
    assert out.splitlines() == [f"made/{name}" for name in names]
    assert (workspace.folder / "made" / "report.html").stat().st_size > 30_000
    assert "\\toprule" in (workspace.folder / "made" / "tables.tex").read_text()
    code, out, _ = call_main("run", "quick.yaml", "--python", "./python", "--run-id", "mine", "--no-report")
    assert (code, len(read_log(workspace.log))) == (0, 4)
    assert "run mine: all 4 repeats are there, nothing is measured" in out


def test_a_site_has_a_page_for_every_run_and_leaves_what_has_not_changed(
    call_main: CallMain, workspace: Workspace
) -> None:
    put_run(workspace.folder / "results", "mine", {make_cell(): (0.1, 0.11)})
    command = ("report", "--site", "site")
    assert call_main(*command) == (0, "site/runs/mine/index.html\nsite/index.html\n", "")
    (workspace.folder / "results" / "runs" / "broken").mkdir()
    (workspace.folder / "results" / "runs" / "broken" / "run.json").write_text("{")
    code, out, err = call_main(*command)
    unchanged, passed_over, listed = out.splitlines()
    assert (code, unchanged, listed, err) == (0, "mine: unchanged", "site/index.html", "")
    assert passed_over.startswith("run broken has no page: no JSON: ")
    index = (workspace.folder / "site" / "index.html").read_text()
    assert 'href="runs/mine/index.html"' in index
    assert "broken" in index
    assert "cannot be read: " in index
    (workspace.folder / "site" / "runs" / "mine" / "made-from.txt").write_text("another")
    assert call_main(*command)[1].startswith("site/runs/mine/index.html\n")
    assert call_main("report", "mine", "--site", "site")[0] == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--site s --figure roofline", "--figure: does not go with --site; leave one of them out"),
        ("mine --site s", "RUN_ID: does not go with --site; leave one of them out"),
        ("--text --output a", "--output: does not go with --text; leave one of them out"),
        ("--figure roofline --format csv", "--format: does not go with --figure; leave one of them out"),
        ("--figure roofline --output a.gif", "--output a.gif: the ending says the format; it takes .svg, .png, .pdf"),
        ("--columns 2", "--columns: is for a figure; add --figure NAME"),
        ("--format csv,xml", "--format csv,xml: expected one or more of html, csv, parquet, latex, markdown, with"),
        ("--format csv,html --output a.html", "--output a.html: is one file, and --format csv,html writes several"),
    ],
)
def test_options_of_a_report_that_do_not_go_together_are_one_message(
    words: str, message: str, call_main: CallMain
) -> None:
    code, out, err = call_main("report", *words.split())
    assert (code, out, err.startswith(f"error: {message}")) == (2, "", True), err


def test_the_claims_page_is_written_from_several_runs(call_main: CallMain, workspace: Workspace) -> None:
    for run_id in ("mine", "yours"):
        put_run(workspace.folder / "results", run_id, {make_cell(batch_size=2): (0.1, 0.11)})

    code, out, err = call_main("audit", "study", "--run", "mine", "--run", "yours", "--output", "pages/claims.md")
    assert (code, err) == (0, "")
    first, second = out.splitlines()
    assert first == "pages/claims.md"
    assert second.startswith(f"{len(load_study().claims)} claims: ")
    assert "as reported by a secondary source" in second

    page = (workspace.folder / "pages" / "claims.md").read_text()
    assert page.startswith("# ")
    assert "mine" in page
    assert "yours" in page
    assert "not tested here" in page  # a batch of 2 is none of the study's


def test_a_report_that_cannot_be_written_is_one_message(call_main: CallMain, workspace: Workspace) -> None:
    put_run(workspace.folder / "results", "mine", {make_cell(): (0.1, 0.11)})
    (workspace.folder / "taken").write_text("a file, no folder")

    code, _, err = call_main("report", "mine", "--output", "taken/below")

    assert code == 2
    assert err.startswith("error: taken/below: cannot be written (")
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "command",
    [
        "report mine",
        "report mine --format csv --output out",
        "audit study --run mine",
        "cost mine --json",
        "audit nvidia-t4-resnet50 --run mine --json",
        "report mine --figure latencies --output out.svg",
        "probe --run mine",
    ],
)
def test_every_command_names_the_results_that_did_not_count(
    command: str, call_main: CallMain, workspace: Workspace
) -> None:
    cells = [make_cell(device="gpu", phase="infer", batch_size=size) for size in (8, 16, 32)]
    put_run(workspace.folder / "results", "mine", dict.fromkeys(cells, (0.1, 0.11, 0.12)))
    key = f"runs/mine/results/{cells[0].cell_id}/1-a1.json"
    assert (workspace.folder / "results" / key).exists()
    (workspace.folder / "results" / key).write_text("{}")
    code, out, err = call_main(*command.split())
    assert code == (2 if command == "probe --run mine" else 0)  # no memory was recorded
    assert key in (err if "--json" in command else out + err)
