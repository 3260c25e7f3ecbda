"""What a container lacks for its cell, with a made-up NVIDIA library."""

from typing import Any

import pytest

from bench.errors import UserError
from bench.order import Order
from bench.preflight import DeviceInUseError, check_place
from factories import make_cell
from fake_nvml import MIB, FakeNvml, install_nvml


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    """The library in the place of the driver's; every device is visible."""
    library = install_nvml(monkeypatch)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return library


def make_order(**fields: Any) -> Order:
    return Order(cell=make_cell(device="gpu", **fields), run_id="r", repeat=1, attempt="a", store_url="-")


def test_an_idle_gpu_or_slice_is_fine(nvml: FakeNvml) -> None:
    check_place(make_order())
    nvml.slices = {0: (3, 4)}
    check_place(make_order())


@pytest.mark.parametrize(
    ("slices", "expected"),
    [
        ({}, "device: 3 GPUs can be seen, the cell needs 4"),
        ({0: (3, 4)}, "device: 1 GPU can be seen (a process sees one MIG slice, and no whole GPU beside it), the cell"),
        ({0: (), 1: (), 2: ()}, "device: 0 GPUs can be seen, the cell needs 4"),
    ],
)
def test_gpus_that_are_missing_are_counted_as_cuda_counts_them(
    nvml: FakeNvml, slices: dict[int, tuple[int | None, ...]], expected: str
) -> None:
    nvml.slices = slices
    with pytest.raises(UserError) as caught:
        check_place(make_order(num_gpus=4))
    assert expected in str(caught.value)


def test_a_slice_that_others_use_is_refused_by_its_own_name(nvml: FakeNvml) -> None:
    nvml.slices = {2: (4,)}
    nvml.memory_used_bytes = 300 * MIB
    with pytest.raises(DeviceInUseError, match="GPU MIG-dddd5555 is in use by others"):
        check_place(make_order())
