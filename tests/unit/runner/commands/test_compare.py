"""The command `compare`."""

import json
from pathlib import Path

import pytest

from two_runs import EVEN, INFER, TRAIN, put_run, scale
from workspace import CallMain, Workspace


@pytest.fixture
def store(workspace: Workspace) -> Path:
    """A store with the runs a, b (half as slow again) and c (like a), of which c is the newest."""
    folder = workspace.folder / "results"
    folder.mkdir()
    put_run(folder, "a", {TRAIN: EVEN, INFER: EVEN}, day=0)
    put_run(folder, "b", {TRAIN: scale(EVEN, 1.5), INFER: EVEN}, day=1)
    put_run(folder, "c", {TRAIN: EVEN, INFER: EVEN}, day=2)
    return folder


def test_the_exit_code_is_the_answer(call_main: CallMain, store: Path) -> None:
    code, out, err = call_main("compare", "a", "b", "--floor", "10")
    assert (code, err) == (1, "")
    assert out.startswith("A: a\nB: b\n")
    assert out.splitlines()[-1].startswith("B is worse: of 2 cells 1 slower, 1 within the floor")
    assert "conv6 train, CPU, batch 64, 32 px, PyTorch eager" in out
    code, out, _ = call_main("compare", "a")
    assert (code, out.splitlines()[1]) == (0, "B: c")


def test_json_markdown_and_files_hold_the_same(call_main: CallMain, store: Path, workspace: Workspace) -> None:
    code, out, _ = call_main("compare", "a", "b", "--json")
    assert (code, json.loads(out)["conclusion"].startswith("B is worse")) == (1, True)
    code, page, _ = call_main("compare", "a", "b", "--markdown")
    assert (code, page.startswith("**❌ B is worse")) == (1, True)
    code, out, _ = call_main("compare", "a", "b", "--markdown", "--output", "pages/comment.md")
    assert (code, out.splitlines()[0]) == (1, "pages/comment.md")
    assert out.splitlines()[1].startswith("B is worse")
    assert (workspace.folder / "pages" / "comment.md").read_text() == page
    assert call_main("compare", "a", "b", "--output", "plain.txt")[0] == 1
    assert (workspace.folder / "plain.txt").read_text().startswith("A: a\nB: b\n")


def test_phases_of_the_newest_run_are_compared_as_sides(call_main: CallMain, store: Path) -> None:
    code, out, err = call_main("compare", "--a", "phase=train", "--b", "phase=infer", "--run", "[ab]", "--json")
    assert err == ""
    assert (code, json.loads(out)["a"]["run_ids"]) == (0, ["a", "b"])
    assert call_main("compare", "--a", "run=a", "--b", "run=b", "--where", "phase=infer")[0] == 0


def test_a_run_that_is_named_with_conditions_is_the_one_to_select_from(call_main: CallMain, store: Path) -> None:
    sides = ("--a", "phase=train", "--b", "phase=infer", "--json")
    as_option, as_argument = (call_main("compare", *words, *sides) for words in (("--run", "b"), ("b",)))
    assert as_argument == as_option
    assert json.loads(as_argument[1])["a"]["run_ids"] == ["b"]


def test_runs_of_two_stores_are_compared(call_main: CallMain, workspace: Workspace) -> None:
    put_run(workspace.folder / "here", "a", {TRAIN: EVEN, INFER: EVEN})
    put_run(workspace.folder / "there", "d", {TRAIN: scale(EVEN, 2)})
    code, out, err = call_main("compare", "a", "d", "--store", "file://here", "--store-b", "file://there")
    assert (code, err) == (1, "")
    assert "Only in A, 1 cell:" in out


SIDES = "--a phase=train --b phase=infer"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "nothing to compare: give two runs (`compare RUN_A RUN_B`), or "),
        ("a a", "A and B are both the run a; name two runs"),
        ("c", "A and B are both the run c, which is the newest of the store; name two runs"),
        ("a x", "store file://results: has no run 'x'; did you mean "),
        ("a b --store file://nowhere", "store file://nowhere: there is no directory "),
        (f"a b --store file:///{'x' * 256}", f"store file:///{'x' * 256}: [Errno 36] File name too long"),
        ("a b --metric speed", "--metric speed: expected step-time, "),
        ("a b --floor -1", "--floor -1: expected percents above 0"),
        ("a b --json --markdown", "--json and --markdown: give one of them"),
        ("--a phase=train", "side B is missing: "),
        (f"a {SIDES} --run b", "--run: a is named already; name the runs to select from once"),
        (f"--store-b file://x {SIDES}", "--a and --b select from --run and --store; leave --store-b out"),
        (
            "a --a mode=graph --b mode=eager",
            "--a mode=graph: no repeat has it; mode is eager in these runs; their cells differ in phase (infer, "
            "train): try --a phase=infer --b phase=train",
        ),
        (
            f"a {SIDES} --where phase=infer",
            "--a phase=train: no repeat has it; phase is infer in these runs; their cells differ in nothing ",
        ),
        (f"{SIDES} --run x*", "store file://results: no run fits "),
        ("--a color=red --b phase=infer", "--a color=red: 'color' is no key; did you mean "),
        (f"{SIDES} --where device=GPU", "--where device=GPU: no repeat has it; device is cpu in these runs"),
        (
            f"{SIDES} --where phase=train --where phase=infer",
            "--where (phase=train, phase=infer): no repeat fits all of its conditions",
        ),
    ],
)
def test_an_error_is_one_message(call_main: CallMain, store: Path, words: str, message: str) -> None:
    code, out, err = call_main("compare", *words.split())
    assert (code, out, err.startswith(f"error: {message}"), len(err.splitlines())) == (2, "", True, 1), err
