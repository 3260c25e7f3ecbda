"""Whether CUDA starts, asked of a compiled stand-in for its library, and where there is none."""

from pathlib import Path

import pytest

from bench.probes.cuda import LIBRARY, explain_failed_start
from stand_in_driver import CUDA_VARIABLE, compile_driver


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_driver(tmp_path_factory.mktemp("driver") / "lib64")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("0", None),
        ("100", "CUDA does not start: cuInit ended with code 100, CUDA_ERROR_NO_DEVICE: no CUDA-capable device is"),
        ("803", "CUDA does not start: cuInit ended with code 803, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: system has"),
        ("4711", "CUDA does not start: cuInit ended with code 4711, which it has no name for"),
    ],
)
def test_cudas_own_code_says_why_it_does_not_start(
    driver: Path, monkeypatch: pytest.MonkeyPatch, code: str, expected: str | None
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(driver))
    monkeypatch.setenv(CUDA_VARIABLE, code)
    answer = explain_failed_start()
    assert expected == (answer and answer[: len(expected or "")])


def test_a_library_that_cannot_be_loaded_is_named_with_the_loaders_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / LIBRARY).write_text("no library")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    answer = explain_failed_start()
    assert f"CUDA does not start: its driver library cannot be loaded ({tmp_path / LIBRARY}: file too short)" == answer
