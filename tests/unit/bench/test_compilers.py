"""bench.worker.compilers: which compiler a cell needs, whether it is there, and what it says of its version."""

from pathlib import Path

import pytest

from bench.worker.compilers import explain_missing_compiler, read_compiler_version
from factories import make_cell
from fake_interpreters import make_interpreter


@pytest.fixture
def path_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The one folder on the PATH, empty; CC and CXX are not set."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for variable in ("CC", "CXX"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("device", "words"),
    [("cpu", "a C++ compiler, and there is no g++ on PATH"), ("gpu", "a C compiler, and there is no gcc or clang on")],
)
def test_compiled_pytorch_without_a_compiler_is_refused_with_how_to_mend_it(
    device: str, words: str, path_folder: Path
) -> None:
    reason = explain_missing_compiler(make_cell(mode="compiled", device=device))
    assert reason is not None
    assert words in reason
    assert "install one (Debian: apt-get install g" in reason


@pytest.mark.parametrize(("device", "program"), [("cpu", "g++"), ("gpu", "gcc"), ("gpu", "clang")])
def test_a_compiler_on_the_path_is_enough(device: str, program: str, path_folder: Path) -> None:
    make_interpreter(path_folder / program, "")
    assert explain_missing_compiler(make_cell(mode="compiled", device=device)) is None


@pytest.mark.parametrize(("device", "variable"), [("cpu", "CXX"), ("gpu", "CC")])
def test_the_compiler_that_a_variable_names_is_the_one(
    device: str, variable: str, path_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = make_interpreter(path_folder / "my-compiler", "")
    cell = make_cell(mode="compiled", device=device)
    for value in ("my-compiler", str(compiler), "my-compiler -v"):
        monkeypatch.setenv(variable, value)
        assert explain_missing_compiler(cell) is None
    for name in ("g++", "gcc"):
        make_interpreter(path_folder / name, "")
    monkeypatch.setenv(variable, "icpx")
    assert f"{variable}=icpx is no program; install" in str(explain_missing_compiler(cell))


def test_the_version_is_that_of_the_compiler_behind_a_wrapper(
    path_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_interpreter(path_folder / "wrapper", 'echo "$1 behind a wrapper"')
    monkeypatch.setenv("CXX", "wrapper g++")
    assert read_compiler_version(make_cell(mode="compiled")) == {"cxx_compiler": "g++ behind a wrapper"}
