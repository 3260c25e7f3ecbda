"""Errors on the command line: one message for the user's, a traceback for the tool's, and their exit codes."""

import pytest

from workspace import MATRIX, CallMain, Workspace


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "smok"], "error: matrix 'smok': "),
        (["run", "no/such.yaml"], "error: no/such.yaml"),
        (["run", "quick.yaml", "--on", "gke"], "error: --on gke: "),
        (["run", "quick.yaml", "--store", "results"], "error: store 'results': "),
        (["run", "quick.yaml", "--store", "ftp://x"], "error: store: 'ftp://' "),
        (["run", "quick.yaml", "--store", "file://quick.yaml"], "error: store file://quick.yaml: "),
        (["run", "quick.yaml", "--python", "/no/python"], "error: --python /no/python: "),
        (["run", "quick.yaml", "--run-id", "My Run"], "error: --run-id My Run: "),
        (["run", "quick.yaml", "--owner", "a/b"], "error: --owner: "),
        (["run", "quick.yaml", "--max-cost", "2"], "error: --max-cost: what an hour of this machine costs "),
        (["run", "quick.yaml", "--publish", "--no-report"], "error: --publish: "),
        (["run", "gpu.yaml"], "error: gpu.yaml: no cell can run here: no NVIDIA GPU "),
        (["render", "nope.yaml"], "error: nope.yaml"),
        (["schema", "walk"], "error: KIND walk: expected one of stored, audit, "),
        (["status"], "error: store file://results: "),
        (["status", "x", "--store", "s3://b"], "error: store s3://b: no AWS credentials"),
        (["report", "mine"], "error: store file://results: "),
        (["report", "../up"], "error: store file://results: "),
        (["audit", "study", "--run", "mine"], "error: store file://results: "),
        (["audit", "nothing"], "error: nothing: is no table; known are "),
        (["audit", "none.csv"], "error: none.csv: there is no such file; "),
        (["access", "nothing"], "error: nothing: is no scenario; known are "),
        (["access", "none.yaml"], "error: none.yaml: there is no such file; "),
        (["forecast", "--series", "best"], "error: --series best: "),
        (["forecast", "--table", "no.csv"], "error: no.csv: "),
    ],
)
def test_an_error_of_the_user_is_one_message(
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

    assert (code, out) == (2, "")
    assert err.startswith(message)
    assert err.count("\n") == 1


@pytest.mark.parametrize("words", [["run"], ["walk"], ["run", "smoke", "--fast"], ["forecast", "--year", "soon"]])
def test_a_misspelt_command_is_explained_too(words: list[str], call_main: CallMain) -> None:
    code, out, err = call_main(*words)

    assert (code, out) == (2, "")
    assert "Usage: " in err


@pytest.mark.parametrize("scheme", ["s3://", "s3:/"])
@pytest.mark.parametrize(
    "words", [["status", "{}"], ["{}"], ["forecast", "--year", "{}"], ["status", "a", "{}"], ["report", "a", "{}"]]
)
def test_a_url_in_a_wrong_place_shows_no_password(
    words: list[str], scheme: str, call_main: CallMain, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace.folder / "results").mkdir(exist_ok=True)
    code, out, err = call_main(*(word.format(f"{scheme}AKIA1234:SECRETsecret@bucket/runs") for word in words))
    assert (code, out) == (2, "")
    assert "secret" not in err
