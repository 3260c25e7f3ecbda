"""The folder for what an installed tool can make again: absolute, or one message."""

import os
from pathlib import Path

import pytest

from bench.errors import UserError
from runner.sources import CACHE_VARIABLE, find_cache_folder

NOBODY = 54321
"""A number that no user of a machine has."""


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Leave neither a home folder nor a name of the user; pytest makes its folder in that name before."""
    for name in ("HOME", "XDG_CACHE_HOME", CACHE_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: NOBODY)


def test_without_a_home_folder_the_variable_is_named() -> None:
    with pytest.raises(UserError, match=f"no home folder; set HOME, or name a folder in {CACHE_VARIABLE}"):
        find_cache_folder()


def test_a_user_who_does_not_exist_has_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, "~nosuchuser/cache")
    with pytest.raises(UserError, match="there is no home folder"):
        find_cache_folder()


def test_a_folder_that_is_named_needs_no_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    assert find_cache_folder() == tmp_path
