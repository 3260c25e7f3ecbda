"""Which compiler a cell needs, and where compiled kernels are kept."""

import os
from pathlib import Path

import pytest

from bench.worker.compilers import (
    CACHE_FOLDERS,
    explain_missing_compiler,
    read_chosen_variables,
    read_compiler_version,
    use_compile_cache,
)
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
    ("device", "program", "words"),
    [
        ("cpu", "g++", "a C++ compiler, and there is no g++ on PATH"),
        ("gpu", "clang", "a C compiler, and there is no gcc or clang on"),
    ],
)
def test_compiled_pytorch_without_a_compiler_is_refused_with_how_to_mend_it(
    device: str, program: str, words: str, path_folder: Path
) -> None:
    cell = make_cell(mode="compiled", device=device)
    reason = explain_missing_compiler(cell) or ""
    assert words in reason
    assert "install one (Debian: apt-get install g" in reason
    make_interpreter(path_folder / program, "")
    assert explain_missing_compiler(cell) is None


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


XEON = "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) CPU @ 2.20GHz\nflags\t\t: fpu avx2 {}\nprocessor\t: 1\n"


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any variable of a cache; what a test sets is undone."""
    for name in ("BENCH_COMPILE_CACHE", *CACHE_FOLDERS, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


def use(tmp_path: Path, features: str) -> Path:
    """Use a cache on a Xeon with these features, and return the folder of its machine."""
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(XEON.format(features))
    for name in CACHE_FOLDERS:
        os.environ.pop(name, None)
    use_compile_cache("/cache", cpuinfo)
    folders = {Path(os.environ[name]).parent for name in CACHE_FOLDERS}
    assert len(folders) == 1
    return folders.pop()


def test_every_kind_of_processor_has_a_folder_of_its_own(tmp_path: Path) -> None:
    first, again, newer = (use(tmp_path, features) for features in ("avx512f", "avx512f", "avx512f amx_bf16"))
    assert first == again
    assert first != newer
    assert str(first).startswith("/cache/intel-r-xeon-r-cpu-2-20ghz-")


def test_a_cache_that_the_user_names_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_COMPILE_CACHE", "/cache")
    monkeypatch.setenv("TRITON_CACHE_DIR", "/mine")
    chosen = read_chosen_variables()
    (tmp_path / "cpuinfo").write_text(XEON)
    use_compile_cache("/cache", tmp_path / "cpuinfo")
    assert os.environ["TRITON_CACHE_DIR"] == "/mine"
    assert os.environ["JAX_COMPILATION_CACHE_DIR"].startswith("/cache/")
    assert chosen == {"BENCH_COMPILE_CACHE": "/cache", "TRITON_CACHE_DIR": "/mine"}
