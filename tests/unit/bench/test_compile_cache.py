"""bench.worker.compilers: where compiled kernels are kept, and what a result says of it."""

import os
from pathlib import Path

import pytest

from bench.worker.compilers import FOLDERS, LIMITS, read_chosen_caches, use_compile_cache

XEON = "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) CPU @ 2.20GHz\nflags\t\t: fpu avx2 {}\nprocessor\t: 1\n"


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any variable of a cache; what a test sets is undone."""
    for name in ("BENCH_COMPILE_CACHE", *FOLDERS, *LIMITS):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


def use(tmp_path: Path, features: str) -> Path:
    """Use a cache on a Xeon with these features, and return the folder of its machine."""
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(XEON.format(features))
    for name in FOLDERS:
        os.environ.pop(name, None)
    use_compile_cache("/cache", cpuinfo)
    folders = {Path(os.environ[name]).parent for name in FOLDERS}
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
    chosen = read_chosen_caches()
    (tmp_path / "cpuinfo").write_text(XEON)
    use_compile_cache("/cache", tmp_path / "cpuinfo")
    assert os.environ["TRITON_CACHE_DIR"] == "/mine"
    assert os.environ["JAX_COMPILATION_CACHE_DIR"].startswith("/cache/")
    assert chosen == {"BENCH_COMPILE_CACHE": "/cache", "TRITON_CACHE_DIR": "/mine"}
