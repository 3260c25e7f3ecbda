"""The workflows of GitHub Actions: pinned, without rights that they do not need, with commands that there are."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from runner.cli import make_command

ROOT = Path(__file__).parents[3]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yaml"))


def read(path: Path) -> dict[str, Any]:
    # `on` is a boolean of YAML 1.1.
    return {("on" if key is True else key): value for key, value in yaml.safe_load(path.read_text()).items()}


def list_steps(workflow: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for job in workflow["jobs"].values():
        yield from job["steps"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_and_the_version_stands_beside(path: Path) -> None:
    uses = re.findall(r"uses: (.*)", path.read_text())
    assert uses
    for action in uses:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}  # v[0-9]+\.[0-9]+\.[0-9]+", action), action


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_rights_are_given_job_by_job_and_every_job_ends(path: Path) -> None:
    workflow = read(path)

    assert workflow["permissions"] == {}
    assert "concurrency" in workflow
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 90
        written = {name for name, right in job["permissions"].items() if right == "write"}
        is_release = set(workflow["on"]) == {"push"} and set(workflow["on"]["push"]) == {"tags"}
        if written and not is_release and set(workflow["on"]) != {"workflow_run"}:
            # The job that publishes the docs: it runs nothing of the repository, and never for a pull request.
            assert job["if"] == "github.event_name == 'push'"
            assert [step["uses"].partition("@")[0] for step in job["steps"]] == ["actions/deploy-pages"]
        assert not is_release or written <= {"id-token"}


def test_code_of_a_pull_request_runs_without_secrets_and_is_not_checked_out_where_rights_are() -> None:
    for path in WORKFLOWS:
        text = path.read_text()
        assert "pull_request_target" not in text
        assert "secrets." not in text
        if "workflow_run" in read(path)["on"]:
            assert "checkout" not in text
        for step in list_steps(read(path)):
            if "checkout" in step.get("uses", ""):
                assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_scripts_get_what_others_wrote_as_variables_only(path: Path) -> None:
    """The name of a branch that stands in a script is a part of the script."""
    for step in list_steps(read(path)):
        assert "${{" not in step.get("run", "")


def test_the_commands_and_options_of_the_scripts_are_there() -> None:
    commands = make_command().commands
    for step in list_steps(read(ROOT / ".github" / "workflows" / "compare.yaml")):
        script = step.get("run", "").replace("\\\n", " ")
        for words in re.findall(r"bin/benchmatrix ([^\n)|;]*)", script):
            name, *rest = words.split()
            command = commands[name]
            if name == "images":
                command = command.commands[rest[0]]
            known = {option for parameter in command.params for option in parameter.opts + parameter.secondary_opts}
            assert {word for word in rest if word.startswith("--")} <= known, words


def test_every_pull_request_is_checked_and_tested_and_so_is_what_was_merged() -> None:
    workflow = read(ROOT / ".github" / "workflows" / "test.yaml")
    events = {event: {"branches": ["main"]} for event in ("pull_request", "push")}
    assert workflow["on"] == events | {"schedule": [{"cron": "17 3 * * *"}]}
    assert {name: job["permissions"] for name, job in workflow["jobs"].items()} == dict.fromkeys(
        ("test", "fast"), {"contents": "read"}
    )
    assert [job["steps"][-1]["run"] for job in workflow["jobs"].values()] == [
        "make gates",
        'make test-fast PYTEST="--cov --cov-report=term:skip-covered"',
    ]
    tests, gates = workflow["jobs"]["test"]["steps"][-2:]
    assert (tests["run"], "if" in tests, "schedule" in gates["if"]) == ('make test PYTEST="$TESTS"', False, True)
    assert "tests" not in workflow["jobs"]["test"]["strategy"]["matrix"]["include"][0]  # all of them
    assert "make test" in (ROOT / ".ci" / "run").read_text().splitlines()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_the_targets_that_make_is_called_with_are_there(path: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    scripts = [step.get("run", "") for step in list_steps(read(path))]
    targets = re.findall(r"^\s*make(?: --\S+ \S+)* ([a-z-]+)", "\n".join(scripts), re.MULTILINE)
    assert [target for target in targets if not re.search(rf"^{target}:", makefile, re.MULTILINE)] == []


def run_script(script: str, folder: Path, variables: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """Run a step's script as GitHub does for `shell: bash`."""
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)


FAKE_GH = """#!/usr/bin/env python3
import os, sys
words = " ".join(sys.argv[1:])
with open(os.environ["CALLS"], "a") as calls:
    calls.write(words + "\\0")
if "/pulls" in words:
    print(os.environ["PULLS"])
elif "/comments" in words and "--method" not in words:
    print(os.environ["COMMENTS"])
"""
SHA = "a" * 40
BOT, MARKER = '{"login": "github-actions[bot]"}', "<!-- benchmatrix compare -->"


@pytest.mark.parametrize(
    ("pulls", "comments", "expected"),
    [
        (f'[{{"number": 7, "head": {{"sha": "{SHA}"}}}}]', "[]", "--method POST repos/o/r/issues/7/comments"),
        (
            f'[{{"number": 7, "head": {{"sha": "{SHA}"}}}}]',
            f'[{{"id": 1, "user": {{"login": "mallory"}}, "body": "{MARKER}"}}]\n'
            f'[{{"id": 2, "user": {BOT}, "body": "hello"}}, {{"id": 3, "user": {BOT}, "body": "{MARKER} old"}}]',
            "--method PATCH repos/o/r/issues/comments/3",
        ),
        ('[{"number": 7, "head": {"sha": "' + "b" * 40 + '"}}]', "[]", None),
        ("[]", "[]", None),
    ],
    ids=["first", "replaces its own", "pushed again meanwhile", "closed"],
)
def test_the_comment_goes_to_the_pull_request_that_was_measured(
    pulls: str, comments: str, expected: str | None, tmp_path: Path
) -> None:
    if shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    (*_, step) = list_steps(read(ROOT / ".github" / "workflows" / "compare-comment.yaml"))
    (tmp_path / "gh").write_text(FAKE_GH)
    (tmp_path / "gh").chmod(0o755)
    (tmp_path / "found").mkdir()
    (tmp_path / "found" / "compare.md").write_text("# ok\n@everybody `$(touch injected)`\n")
    variables = {"PATH": f"{tmp_path}:/usr/bin:/bin", "CALLS": str(tmp_path / "calls"), "PULLS": pulls}
    variables |= {"COMMENTS": comments, "REPOSITORY": "o/r", "HEAD_OWNER": "them", "HEAD_BRANCH": "$(touch injected)"}
    variables |= {"HEAD_SHA": SHA, "RUN_URL": "https://github.com/o/r/actions/runs/1"}

    done = run_script(step["run"], tmp_path, variables)

    assert done.returncode == 0, done.stderr
    calls = (tmp_path / "calls").read_text().split("\0")
    written = [call for call in calls if "--silent" in call]
    assert not (tmp_path / "injected").exists()
    if expected is None:
        assert written == []
        return
    (call,) = written
    assert expected in call
    assert f"body={MARKER}\n# ok\n@&#8203;everybody" in call
