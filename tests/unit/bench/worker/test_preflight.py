"""What a container lacks for its cell, with a made-up NVIDIA library."""

import shutil
from typing import Any

import pynvml
import pytest

from bench.errors import NodeFaultError, UserError
from bench.worker.preflight import DeviceInUseError, check_place
from bench.worker.request import Order
from factories import make_cell
from fake_nvml import MIB, FakeNvml


@pytest.fixture(autouse=True)
def cuda_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.worker.preflight.explain_failed_start", lambda: None)


def make_order(*, group: str | None = None, **fields: Any) -> Order:
    cell = make_cell(device="gpu", **fields)
    return Order(cell=cell, run_id="r", repeat=1, attempt="a", store_url="-", tenant_group=group)


def test_an_idle_gpu_or_slice_is_fine(nvml: FakeNvml) -> None:
    check_place(make_order())
    nvml.slices = {0: (3, 4)}
    check_place(make_order())


@pytest.mark.parametrize(
    ("slices", "expected"),
    [
        ({}, "fault of this machine, not of the cell: device: 3 GPUs can be seen, the cell needs 4"),
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
    # Another machine of the pool has slices as well: it would refuse the cell too.
    assert isinstance(caught.value, NodeFaultError) == (slices != {0: (3, 4)})


def test_a_gpu_that_fell_off_the_bus_is_the_machines_fault_in_nvmls_words(nvml: FakeNvml) -> None:
    nvml.refusals["nvmlDeviceGetHandleByIndex"] = pynvml.NVML_ERROR_GPU_IS_LOST
    with pytest.raises(NodeFaultError, match="no NVIDIA GPU can be seen .*GPU is lost"):
        check_place(make_order())


def test_cuda_that_does_not_start_is_the_machines_fault_and_the_card_is_named(
    nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.worker.preflight.explain_failed_start", lambda: "CUDA does not start: code 999")
    with pytest.raises(NodeFaultError) as caught:
        check_place(make_order())
    assert str(caught.value) == (
        "fault of this machine, not of the cell: device: CUDA does not start: code 999; NVML shows Tesla T4 "
        "GPU-aaaa1111 of 15360 MiB with driver 550.54.15"
    )


def refuse_every_folder() -> str:
    raise FileNotFoundError("No usable temporary directory found")


@pytest.mark.parametrize(
    ("free_mib", "kind", "words"),
    [
        (3, NodeFaultError, "disk: /tmp has 3 MiB left, 64 are needed"),
        (9999, UserError, "mount an empty volume at /tmp"),
    ],
)
def test_a_full_disk_and_a_read_only_one_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, free_mib: int, kind: type[UserError], words: str
) -> None:
    usage = shutil.disk_usage("/")._replace(free=free_mib * MIB)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: usage)
    monkeypatch.setattr("tempfile.gettempdir", refuse_every_folder)
    with pytest.raises(UserError, match=words) as caught:
        check_place(Order(cell=make_cell(), run_id="r", repeat=1, attempt="a", store_url="-"))
    assert type(caught.value) is kind


def test_what_no_machine_would_mend_is_the_users_error_even_on_a_faulty_machine(
    nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml.refusals["nvmlInit"] = pynvml.NVML_ERROR_DRIVER_NOT_LOADED
    monkeypatch.setattr("bench.worker.preflight.read_memory_limit_bytes", lambda: 5 * MIB)
    with pytest.raises(UserError, match="memory: .*; device: no NVIDIA GPU can be seen") as caught:
        check_place(make_order())
    assert not isinstance(caught.value, NodeFaultError)


def test_what_the_server_of_mps_takes_is_no_other_user(nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.probes.gpu.find_mps_servers", lambda pids: frozenset({71}))
    nvml.processes, nvml.memory_used_bytes = [(71, 500 * MIB)], 500 * MIB
    check_place(make_order(sharing="mps"))
    with pytest.raises(DeviceInUseError):
        check_place(make_order())
    nvml.processes = [(71, 500 * MIB), (99, 10 * MIB)]
    with pytest.raises(DeviceInUseError, match="in use by others, 1 processes seen"):
        check_place(make_order(sharing="mps"))


def test_a_tenant_beside_the_first_finds_the_gpu_in_use(nvml: FakeNvml) -> None:
    nvml.processes, nvml.memory_used_bytes = [(71, 500 * MIB)], 500 * MIB
    order = make_order(tenants=2, group="g")
    with pytest.raises(DeviceInUseError):
        check_place(order)
    check_place(order.model_copy(update={"tenant": 1}))
