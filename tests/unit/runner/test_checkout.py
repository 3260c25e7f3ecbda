"""runner.checkout: without git, or with one that hangs or prints garbage, the revision is not known."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fake_interpreters import make_interpreter
from runner import checkout
from workspace import HANG_GUARD_SECONDS


@pytest.fixture(autouse=True)
def anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder that is the whole PATH; nothing is remembered of another git."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(checkout.REVISION_VARIABLE, raising=False)
    checkout.read_git_revision.cache_clear()
    yield
    checkout.read_git_revision.cache_clear()


@pytest.mark.parametrize("script", ["/bin/sleep 600", "exit 128", "while :; do echo x; done", None])
def test_a_git_that_fails_or_has_no_end_says_nothing(
    script: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkout, "GIT_SECONDS", 0.5)
    if script is not None:
        make_interpreter(tmp_path / "git", script)
    assert checkout.read_git_revision() is None


def test_a_git_that_answers_says_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkout, "GIT_SECONDS", HANG_GUARD_SECONDS)
    make_interpreter(tmp_path / "git", "echo abc")
    assert checkout.read_git_revision() == "abc-dirty"
