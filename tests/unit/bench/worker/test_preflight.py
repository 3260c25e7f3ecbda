"""What a container lacks for its cell, with a made-up NVIDIA library."""

import re
import shutil
from pathlib import Path
from typing import Any

import pynvml
import pytest

from bench.errors import NodeFaultError, UserError
from bench.worker.preflight import check_place
from bench.worker.request import Order
from factories import make_cell
from fake_nvml import MIB, FakeNvml


@pytest.fixture(autouse=True)
def cuda_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.worker.preflight.explain_failed_start", lambda: None)


def make_order(*, tenant: int = 0, **fields: Any) -> Order:
    cell = make_cell(**({"device": "gpu"} | fields))
    return Order(cell=cell, run_id="r", repeat=1, attempt="a", store_url="-", tenant=tenant, tenant_group="g")


FOUR = {"num_gpus": 4}
BUSY: dict[str, Any] = {"processes": [(71, 500 * MIB)], "memory_used_bytes": 500 * MIB}
TWO = BUSY | {"processes": [(71, 500 * MIB), (99, 10 * MIB)]}
LOST = {"refusals": {"nvmlDeviceGetHandleByIndex": pynvml.NVML_ERROR_GPU_IS_LOST}}


@pytest.mark.parametrize(
    ("driver", "fields", "expected"),
    [
        ({}, {}, "^$"),
        ({"slices": {0: (3, 4)}}, {}, "^$"),
        ({}, FOUR, "^NodeFaultError: fault of this machine, .*: device: 3 GPUs can be seen, the cell needs 4"),
        # Another machine of the pool has slices as well: it would refuse the cell too.
        ({"slices": {0: (3, 4)}}, FOUR, "^UserError: .*device: 1 GPU can be seen .a process sees one MIG slice, and"),
        ({"slices": {0: (), 1: (), 2: ()}}, FOUR, "^NodeFaultError: .*device: 0 GPUs can be seen, the cell needs 4"),
        (LOST, {}, "^NodeFaultError: .*no NVIDIA GPU can be seen .*GPU is lost"),
        (BUSY, {}, "^DeviceInUseError: .*GPU-aaaa1111 is in use by others, 1 processes seen, 500 MiB taken"),
        # The server of MPS, number 71, is no other user, and what it takes is its tenants'.
        (BUSY, {"sharing": "mps"}, "^$"),
        (TWO, {"sharing": "mps"}, "^DeviceInUseError: .*in use by others, 1 processes seen, 0 MiB taken"),
        # A tenant beside the first finds the GPU in use by it.
        (BUSY, {"tenants": 2}, "^DeviceInUseError"),
        (BUSY, {"tenants": 2, "tenant": 1}, "^$"),
    ],
)
def test_a_gpu_that_is_missing_lost_or_in_use_is_told_before_the_work(
    nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch, driver: dict[str, Any], fields: dict[str, Any], expected: str
) -> None:
    monkeypatch.setattr("bench.probes.gpu.find_mps_servers", lambda pids: frozenset({71}))
    for name, value in driver.items():
        setattr(nvml, name, value)
    said = ""
    try:
        check_place(make_order(**fields))
    except UserError as error:
        said = f"{type(error).__name__}: {error}"
    assert re.search(expected, said)


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
        check_place(make_order(device="cpu"))
    assert type(caught.value) is kind


def test_a_driver_that_is_mounted_where_the_image_does_not_look_is_no_fault_of_the_node(
    nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    nvml.refusals["nvmlInit"] = pynvml.NVML_ERROR_LIBRARY_NOT_FOUND
    for folder, kind in ((tmp_path / "absent", "NodeFaultError"), (tmp_path, "UserError")):
        monkeypatch.setattr("bench.worker.preflight.MOUNTED_DRIVER", folder)
        with pytest.raises(UserError, match=r"device: .*") as caught:
            check_place(make_order())
        assert type(caught.value).__name__ == kind


def test_what_no_machine_would_mend_is_the_users_error_even_on_a_faulty_machine(
    nvml: FakeNvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml.refusals["nvmlInit"] = pynvml.NVML_ERROR_DRIVER_NOT_LOADED
    monkeypatch.setattr("bench.worker.preflight.read_memory_limit_bytes", lambda: 5 * MIB)
    with pytest.raises(UserError, match="memory: .*; device: no NVIDIA GPU can be seen") as caught:
        check_place(make_order())
    assert not isinstance(caught.value, NodeFaultError)
