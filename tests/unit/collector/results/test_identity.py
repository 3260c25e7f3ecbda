"""What makes two environments the same."""

from typing import Any

import pytest

from bench.schema import Environment
from collector.results.hosts import identify_environment, identify_hardware
from factories import make_environment, make_gpu, make_identity, make_machine

BOTH, SOFTWARE, NONE = (True, True), (True, False), (False, False)
"""Whether a change is one of the environment, and of the hardware."""
OF_ENVIRONMENT: list[tuple[dict[str, Any], tuple[bool, bool]]] = [
    *(({name: value}, BOTH) for name, value in (
        ("cpu_model", "AMD EPYC"), ("num_visible_cores", 4), ("cpu_quota_cores", None), ("num_threads", 1),
        ("cpu_governor", "powersave"), ("gpus", ()), ("machine", None),
    )),
    *(({name: value}, SOFTWARE) for name, value in (
        ("python_version", "3.12.1"), ("versions", {"torch": "2.12.0", "numpy": "2.3.5"}),
        ("settings", {"cudnn.benchmark": True}), ("image", "sha256:00"),
    )),
    *(({name: value}, NONE) for name, value in (
        ("hostname", "bench-2"), ("kernel", "6.2"), ("git_revision", None), ("identity", make_identity("b", "x")),
        ("memory_total_bytes", 2**40), ("memory_limit_bytes", 2**30),
    )),
]  # fmt: skip


def test_every_field_of_an_environment_is_in_the_id_or_left_out_of_it_on_purpose() -> None:
    tried = {name for changes, _ in OF_ENVIRONMENT for name in changes}
    assert set(Environment.model_fields) == tried, "decide in collector/results/hosts.py, and show it here"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        *OF_ENVIRONMENT,
        *(({"machine": make_machine(**{name: value})}, BOTH) for name, value in (
            ("product", "g4dn.2xlarge"), ("is_virtual", False), ("num_physical_cores", 2), ("num_sockets", 2),
            ("num_numa_nodes", 2), ("threads_per_core", 1), ("instruction_sets", ("avx2",)),
        )),
        *(({"machine": make_machine(**{name: value})}, NONE) for name, value in (
            ("visible_cores", "2-3"), ("num_online_cores", 64),
        )),
        *(({"gpus": (make_gpu(**{name: value}),)}, BOTH) for name, value in (
            ("name", "H100"), ("driver_version", "1"), ("ecc_enabled", True), ("pcie_width", 8),
            ("max_pcie_width", 16), ("max_pcie_generation", 4),
        )),
        *(({"gpus": (make_gpu(**{name: value}),)}, SOFTWARE) for name, value in (
            ("cuda_version", "11"), ("cudnn_version", None),
        )),
        *(({"gpus": (make_gpu(**{name: value}),)}, NONE) for name, value in (
            ("pcie_generation", 1), ("power_limit_watts", 60.0), ("default_power_limit_watts", 70.0),
        )),
    ],
)  # fmt: skip
def test_what_of_machine_and_gpu_is_in_the_ids_of_environment_and_hardware(
    changes: dict[str, Any], expected: tuple[bool, bool]
) -> None:
    same = make_environment(machine=make_machine(), gpus=(make_gpu(),))
    other = make_environment(**({"machine": make_machine(), "gpus": (make_gpu(),)} | changes))
    found = tuple(identify(same) != identify(other) for identify in (identify_environment, identify_hardware))
    assert found == expected
