"""What explains how fast a machine is, from made-up /proc and /sys."""

from pathlib import Path

import pytest

from bench.probes.cpu import parse_cpu_list
from bench.probes.machine import format_core_list, read_machine
from bench.schema import Machine
from file_trees import write_tree

SYSTEM = "sys/devices/system"
XEON = "processor\t: 0\nflags\t\t: fpu sse avx avx2 fma f16c avx512f amx_tile amx_bf16 avx512_bf16 {hypervisor}\n\n"


def list_cores(places: dict[int, tuple[int, int, str]]) -> dict[str, str]:
    """Return the files of logical cores: number to socket, physical core, and the list of its siblings."""
    files: dict[str, str] = {}
    for number, (socket, core, siblings) in places.items():
        folder = f"{SYSTEM}/cpu/cpu{number}/topology"
        files |= {
            f"{folder}/physical_package_id": f"{socket}\n",
            f"{folder}/core_id": f"{core}\n",
            f"{folder}/thread_siblings_list": f"{siblings}\n",
        }
    return files


def test_two_vcpus_of_a_cloud_machine_are_one_physical_core(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        {
            "proc/cpuinfo": XEON.format(hypervisor="hypervisor") * 2,
            "sys/class/dmi/id/sys_vendor": "Amazon EC2\n",
            "sys/class/dmi/id/product_name": "c7i.large\n",
            f"{SYSTEM}/cpu/online": "0-1\n",
            f"{SYSTEM}/node/node0/cpulist": "0-1\n",
            **list_cores({0: (0, 0, "0-1"), 1: (0, 0, "0-1")}),
        },
    )
    assert read_machine(tmp_path, {0, 1}) == Machine(
        vendor="Amazon EC2",
        product="c7i.large",
        is_virtual=True,
        num_online_cores=2,
        visible_cores="0-1",
        num_physical_cores=1,
        num_sockets=1,
        num_numa_nodes=1,
        threads_per_core=2,
        instruction_sets=("avx", "f16c", "fma", "avx2", "avx512f", "avx512_bf16", "amx_tile", "amx_bf16"),
    )


@pytest.mark.parametrize(
    ("cores", "expected"),
    [
        # Two sockets of two physical cores with two hyperthreads each: 0-3 are the first ones, 4-7 their siblings.
        (set(range(8)), ("0-7", 4, 2, 2)),
        ({0, 1, 4, 5}, ("0-1,4-5", 2, 1, 1)),
        ({0, 2}, ("0,2", 2, 2, 2)),
        ({0, 4}, ("0,4", 1, 1, 1)),
    ],
)
def test_sockets_nodes_and_physical_cores_are_those_of_the_cpuset(
    tmp_path: Path, cores: set[int], expected: tuple[str, int, int, int]
) -> None:
    places = {number: (number % 4 // 2, number % 2, f"{number % 4},{number % 4 + 4}") for number in range(8)}
    write_tree(
        tmp_path,
        {
            "proc/cpuinfo": XEON.format(hypervisor=""),
            f"{SYSTEM}/cpu/online": "0-7\n",
            f"{SYSTEM}/node/node0/cpulist": "0-1,4-5\n",
            f"{SYSTEM}/node/node1/cpulist": "2-3,6-7\n",
            f"{SYSTEM}/node/node2/cpulist": "\n",  # memory without cores, such as a GH200's GPU
            **list_cores(places),
        },
    )
    machine = read_machine(tmp_path, cores)
    found = (machine.visible_cores, machine.num_physical_cores, machine.num_sockets, machine.num_numa_nodes)
    assert found == expected
    assert (machine.is_virtual, machine.num_online_cores, machine.threads_per_core) == (False, 8, 2)


@pytest.mark.parametrize(
    ("text", "numbers"), [("0", {0}), ("0-3", {0, 1, 2, 3}), ("0-1,8,10-11", {0, 1, 8, 10, 11}), ("", set())]
)
def test_lists_of_cores_are_read_and_written_as_the_kernel_does(text: str, numbers: set[int]) -> None:
    assert parse_cpu_list(f"{text}\n") == numbers
    assert format_core_list(numbers) == (text or None)
