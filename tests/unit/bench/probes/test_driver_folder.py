"""A driver that lies in a folder which the loader does not know."""

import ctypes
from pathlib import Path

import pytest

from bench.probes.driver_folder import LIBRARY, explain_unseen_driver


@pytest.mark.skipif(Path("/proc/driver/nvidia").exists(), reason="this machine has a driver where the loader looks")
def test_a_driver_where_the_loader_does_not_look_is_told_with_the_remedy(tmp_path: Path) -> None:
    assert explain_unseen_driver(tmp_path) is None
    (tmp_path / LIBRARY).touch()
    answer = explain_unseen_driver(tmp_path)
    assert answer is not None
    assert f"set LD_LIBRARY_PATH={tmp_path} in the image, or in `environment` of the profile" in answer


def test_a_driver_that_can_be_loaded_needs_no_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / LIBRARY).touch()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    assert explain_unseen_driver(tmp_path) is None
