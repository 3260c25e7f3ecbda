"""`make install` says that it goes on, and how it ended: pip alone is silent for most of a minute."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from runner.checkout import ROOT

PYTHON = """#!/bin/sh
[ "$1" = -c ] && exit 0
mkdir -p .venv/bin
printf '#!/bin/sh\\nwhile [ ! -e go ]; do sleep 0.1; done; exit CODE\\n' > .venv/bin/python
chmod +x .venv/bin/python
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the Makefile and the files that an environment depends on."""
    (tmp_path / "images" / "bench").mkdir(parents=True)
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("requirements.lock", "pyproject.toml", "images/bench/pyproject.toml"):
        (tmp_path / name).touch()
    return tmp_path


def start_installing(folder: Path, code: int) -> "subprocess.Popen[str]":
    """Start the installation with a Python that waits for the file `go` instead of installing, then ends so."""
    (folder / "python").write_text(PYTHON.replace("CODE", str(code)))
    (folder / "python").chmod(0o755)
    command = ["make", "PYTHON=./python", "SIGN_SECONDS=0.1", "install"]
    # A make that runs the tests is none of this one's: it would say which directory it enters.
    own = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    return subprocess.Popen(command, cwd=folder, env=own, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_an_installation_says_that_it_goes_on_and_how_long_it_took(folder: Path) -> None:
    with start_installing(folder, 0) as make:
        assert make.stdout is not None
        assert make.stdout.readline() == "installing the tool into .venv\n"
        assert make.stdout.readline().startswith("  still installing the tool, ")
        (folder / "go").touch()
        last = make.stdout.read().splitlines()[-1]
    assert (make.returncode, last.startswith("installed the tool in ")) == (0, True)
    assert (folder / ".venv" / "tool").exists()


def test_an_installation_that_fails_leaves_no_stamp(folder: Path) -> None:
    (folder / "go").touch()
    with start_installing(folder, 3) as make:
        assert make.stdout is not None
        assert "installed" not in make.stdout.read()
    assert make.returncode == 2
    assert not (folder / ".venv" / "tool").exists()
