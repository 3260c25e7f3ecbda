"""The command `audit`."""

import json

from runner.commands.json_documents import AuditDocument
from workspace import CallMain, Workspace

TABLE = """\
device,model,phase,precision,batch_size,milliseconds,framework
H200,vgg16,infer,fp32,64,1.0,pytorch
H200,vgg16,infer,bf16,64,10.0,pytorch
"""


def test_a_table_is_audited_whatever_its_verdicts(call_main: CallMain, workspace: Workspace) -> None:
    (workspace.folder / "mine.csv").write_text(TABLE)
    code, out, err = call_main("audit", "mine.csv")
    assert (code, err) == (0, "")
    assert out.startswith("mine (mine.csv)\n")
    assert "64 images x 30.9 GFLOP / 1 ms = 1,980 TFLOP/s" in out
    assert out.endswith("2 rows: 1 impossible, 1 possible\n")


def test_the_page_and_the_json_document_hold_the_same(call_main: CallMain, workspace: Workspace) -> None:
    (workspace.folder / "mine.csv").write_text(TABLE)
    assert call_main("audit", "mine.csv", "--output", "pages/audit.md") == (0, "pages/audit.md\n", "")
    assert "2 rows: 1 impossible, 1 possible" in (workspace.folder / "pages" / "audit.md").read_text()
    code, out, err = call_main("audit", "mine.csv", "--json")
    AuditDocument.model_validate_json(out)  # its schema holds
    assert (code, err) == (0, "")
    assert [row["verdict"] for row in json.loads(out)["rows"]] == ["impossible", "possible"]


def test_a_table_is_held_against_runs(call_main: CallMain, workspace: Workspace) -> None:
    call_main("run", "quick.yaml", "--python", "./python", "--no-report", "--run-id", "mine")
    (workspace.folder / "mine.csv").write_text(TABLE)
    code, out, err = call_main("audit", "mine.csv", "--run", "mine")
    assert (code, err) == (0, "")
    assert "by measurement" in out
    assert "no cell of this work, measured on this device under sound conditions" in out


def test_shipped_tables_are_listed_and_found_by_name(call_main: CallMain) -> None:
    code, out, _ = call_main("audit")
    names = [line.partition(":")[0] for line in out.splitlines()]
    assert (code, names) == (0, ["jcjohnson-cnn-benchmarks", "nvidia-t4-resnet50", "study"])
    code, out, _ = call_main("audit", "nvidia-t4-resnet50")
    assert code == 0
    assert out.endswith("21 rows: 21 possible\n")
