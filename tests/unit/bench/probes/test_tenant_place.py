"""bench.probes.machine: where a tenant runs, and whether CUDA goes through MPS."""

import pytest

from bench.probes.machine import read_mps_state, read_place
from fake_nvml import install_nvml


class Library:
    """CUDA's driver library, as far as it says whether MPS is in force."""

    def __init__(self, *, mps: int = 0, code: int = 0) -> None:
        self.mps = mps
        self.code = code

    def cuInit(self, flags: int) -> int:  # noqa: N802  (the names are the library's)
        return 0

    def cuDeviceGet(self, device: object, ordinal: int) -> int:  # noqa: N802
        return 0

    def cuDeviceGetAttribute(self, answer: object, attribute: int, device: object) -> int:  # noqa: N802
        answer._obj.value = self.mps if attribute == 133 else 7  # type: ignore[attr-defined]  # behind byref
        return self.code


@pytest.mark.parametrize(
    ("library", "state"),
    [(Library(mps=1), True), (Library(mps=0), False), (Library(code=1), None)],
    ids=["in force", "not in force", "an older driver"],
)
def test_the_driver_says_whether_mps_is_in_force(
    monkeypatch: pytest.MonkeyPatch, library: Library, state: bool | None
) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda name: library)
    assert read_mps_state() is state


def test_a_gpu_tenant_tells_its_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    install_nvml(monkeypatch)
    monkeypatch.setattr("ctypes.CDLL", lambda name: Library(mps=1))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    place = read_place("gpu")
    assert (place.device, place.is_under_mps) == ("GPU-bbbb2222", True)
