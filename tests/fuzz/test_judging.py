"""The judge of the fuzzing finds each fault that it looks for: a property that cannot fail would say nothing."""

from pathlib import Path
from typing import Any

import pytest

from fuzz.judging import MAX_BYTES, Outcome, judge, take_inventory
from fuzz.markers import FORMULA, HTML, SECRET
from fuzz.zygote import Ending

GOOD_END: Ending = {"code": 0, "signal": None, "limit": "", "cpu_seconds": 0.1, "peak_bytes": 10**8}
TRACEBACK = b'Traceback (most recent call last):\n  File "/x/runner/cli.py", line 3, in main\nKeyError: 1\n'


def list_signatures(folder: Path, *, end: dict[str, Any] | None = None, **given: Any) -> list[str]:
    """Return what is wrong with a command; one that is `status` and ended well unless told otherwise."""
    before = given.pop("before", None)
    fields: dict[str, Any] = {"words": ["status"], "stdout": b"fine\n", "stderr": b"", "folder": folder}
    ending = GOOD_END | (end or {})
    inventory = take_inventory(folder) if before is None else before
    return [fault.signature for fault in judge(Outcome(**(fields | given), ending=ending, before=inventory))]  # type: ignore[arg-type]


def test_a_command_that_did_well_has_no_fault(tmp_path: Path) -> None:
    (tmp_path / "matrix.yaml").write_text("name: x")
    assert list_signatures(tmp_path) == []
    assert list_signatures(tmp_path, end={"code": 2}, stderr=b"error: matrix.yaml, line 3: no\n") == []


@pytest.mark.parametrize(
    ("end", "stderr", "signature"),
    [
        ({"code": 70}, TRACEBACK, "traceback: KeyError in runner/cli.py.main"),
        (
            {"code": 2},
            b"thread 'x' panicked at src/lib.rs",
            "traceback: thread 'x' panicked at src/lib.rs in no module of the tool",
        ),
        ({"code": 3}, b"", "exit code: 3 status"),
        ({"code": None, "signal": 6}, b"", "signal: 6 status"),
        ({"code": None, "signal": 9, "limit": "time"}, b"", "limit: time status"),
        ({"peak_bytes": MAX_BYTES + 1}, b"", "memory: status"),
        ({"code": 2}, b"", "messages: 0 of status"),
        ({"code": 75}, b"error: a\nerror: b\n", "messages: 2 of status"),
        ({"code": 0}, b"error: a\n", "messages: error with code 0 of status"),
        ({"code": 0}, b"x.json: passed by\n" * 201, "messages: too many of status"),
        (
            {"code": 0},
            b"/y/site-packages/z/w.py:7: RuntimeWarning: overflow\n",
            "warning: z/w.py:7: RuntimeWarning: overflow",
        ),
        ({"code": 0}, SECRET.encode(), "secret: stderr of status"),
        ({"code": 0}, b"\x1b[2J", "terminal: stderr of status"),
        ({"code": 0}, "\u202e".encode(), "terminal: stderr of status"),
    ],
)
def test_a_bad_end_and_a_bad_message_are_found(
    end: dict[str, Any], stderr: bytes, signature: str, tmp_path: Path
) -> None:
    assert list_signatures(tmp_path, end=end, stderr=stderr) == [signature]


def test_exit_code_2_is_an_answer_of_a_comparison_that_says_so_and_of_nothing_else(tmp_path: Path) -> None:
    given: dict[str, Any] = {
        "end": {"code": 2},
        "stdout": b"A: x\nNothing could be compared: of 3 cells none is comparable.\n",
    }
    assert list_signatures(tmp_path, words=["compare"], **given) == []
    assert list_signatures(tmp_path, words=["compare"], stderr=b"error: a\n", **given) == ["messages: 1 of compare"]
    assert list_signatures(tmp_path, words=["compare"], end={"code": 2}) == ["messages: 0 of compare"]
    assert list_signatures(tmp_path, words=["status"], **given) == ["messages: 0 of status"]


@pytest.mark.parametrize("stdout", [b"", b"{}{}", b'{"a": NaN}', b"fine\n"])
def test_what_is_no_json_is_found(stdout: bytes, tmp_path: Path) -> None:
    assert list_signatures(tmp_path, words=["status", "--json"], stdout=stdout) == ["stdout: no JSON of status"]
    assert list_signatures(tmp_path, words=["status", "--json"], stdout=b'{"a": 1}') == []


@pytest.mark.parametrize(
    ("name", "text", "is_live"),
    [
        ("page.html", f"<p>{HTML}</p>", True),
        ("page.html", "<p>&lt;img src=x onerror=fuzzed()&gt;</p>", False),
        ("page.html", '<script type="application/json">{"a": "<img onerror=fuzzed()>"}</script>', False),
        ("plot.svg", f"<svg><title>{HTML}</title></svg>", True),
        ("page.md", f"a line with {HTML}", True),
        ("page.md", "[x](javascript:fuzzed())", False),  # CommonMark's own renderer drops such links, as GitHub does
        ("page.md", "`<img src=x onerror=fuzzed()>`", False),
        ("rows.csv", f'a,"{FORMULA.replace(chr(34), chr(34) * 2)}"\n', True),
        ("rows.csv", f"a,'{FORMULA}\n", False),
        ("notes.txt", SECRET, True),
    ],
)
def test_a_marker_that_lives_in_a_new_file_is_found(name: str, text: str, is_live: bool, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    assert bool(list_signatures(tmp_path, before={})) == is_live


def test_a_file_that_is_lost_changed_or_left_is_found(tmp_path: Path) -> None:
    (tmp_path / "matrix.yaml").write_text("name: x")
    before = {"matrix.yaml": "0", "result.json": "0"}

    assert list_signatures(tmp_path, before=before) == ["file changed: status", "file lost: status"]
    (tmp_path / ".benchmatrix-0.tmp").write_text("")
    assert "file left: status" in list_signatures(tmp_path, before=before)


def test_an_output_may_be_replaced_but_not_by_a_command_that_fails(tmp_path: Path) -> None:
    (tmp_path / "old.md").write_text("new")
    before = {"old.md": "0"}

    assert list_signatures(tmp_path, before=before, replaced=("old.md",)) == []
    refused = list_signatures(tmp_path, before=before, replaced=("old.md",), end={"code": 2}, stderr=b"error: no\n")
    assert refused == ["file changed: status"]
