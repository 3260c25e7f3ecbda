"""What is recorded of the machine: cores, memory, identity, and the libraries' files."""

import mmap
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import obstore
import pytest

from bench.probes import memory
from bench.probes.cpu import parse_cpu_list, read_cpu_model
from bench.probes.library_files import read_library_files
from bench.probes.machine import hash_id, read_machine, read_machine_identity
from bench.probes.memory import choose_copy_bytes, measure_memory_copy, read_cache_bytes
from bench.schema import Machine, MachineIdentity
from file_trees import write_tree

ALLOCATE = """
from bench.probes.memory import read_peak_rss_bytes
before = read_peak_rss_bytes()
block = bytearray(b"x") * 300_000_000
del block
print(before, read_peak_rss_bytes())
"""


def test_the_peak_of_memory_stays_when_it_is_freed_and_is_not_that_of_the_parent() -> None:
    block = bytearray(b"x") * 200_000_000  # `ru_maxrss` of a child starts at what its parent had
    process = subprocess.run([sys.executable, "-c", ALLOCATE], capture_output=True, text=True, check=True)
    before, peak = map(int, process.stdout.split())
    assert before < len(block)
    assert peak - before == pytest.approx(300_000_000, abs=10_000_000)


FORK = """
import mmap, os, sys
from bench.probes.memory import read_peak_rss_bytes

def hold(num_bytes):
    ready = os.pipe()
    if os.fork() == 0:
        own = bytearray(b"x") * num_bytes
        os.write(ready[1], b"1")
        os.read(go[0], 1)
        os._exit(0)
    os.read(ready[0], 1)
    return read_peak_rss_bytes()

shared = bytearray(b"x") * 200_000_000
with open(sys.argv[1], "rb") as file:
    library = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
library.find(b"not there")
go = os.pipe()
print(read_peak_rss_bytes(), hold(0), hold(100_000_000))
os.write(go[1], b"11")
"""


def test_a_process_that_takes_part_adds_what_it_alone_holds() -> None:
    path = Path(obstore.__file__).with_name("_obstore.abi3.so")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as library:
        assert library.find(b"not there") < 0  # all of it is mapped here too, as by another program that measures
        command = [sys.executable, "-c", FORK, str(path)]
        process = subprocess.run(command, capture_output=True, text=True, check=True)
    alone, beside_an_idle_one, with_its_own = map(int, process.stdout.split())
    assert beside_an_idle_one == pytest.approx(alone, abs=5_000_000)
    assert with_its_own - beside_an_idle_one == pytest.approx(100_000_000, abs=10_000_000)


X86 = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel\t\t: 85\nmodel name\t: Intel(R) Xeon(R) CPU @ 2.20GHz\n"
ARM_SERVER = "processor\t: 0\nBogoMIPS\t: 243.75\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"
ARM_BOARD = ARM_SERVER + "\nHardware\t: BCM2835\nModel\t\t: Raspberry Pi 4 Model B Rev 1.4\n"


@pytest.mark.parametrize(
    ("cpuinfo", "expected"),
    [
        (X86 * 2, "Intel(R) Xeon(R) CPU @ 2.20GHz"),
        (ARM_SERVER * 2, "ARM implementer 0x41 part 0xd0c"),
        (ARM_BOARD, "Raspberry Pi 4 Model B Rev 1.4"),
        ("", "unknown"),
    ],
)
def test_the_processor_is_named(tmp_path: Path, cpuinfo: str, expected: str) -> None:
    write_tree(tmp_path, {"cpuinfo": cpuinfo})
    assert read_cpu_model(tmp_path / "cpuinfo") == expected


BOOT = {"proc/sys/kernel/random/boot_id": "3f2a9c1d-0000-4000-8000-00000000000a\n"}


def test_a_boot_is_its_id_and_when_it_began(tmp_path: Path) -> None:
    write_tree(tmp_path, BOOT | {"proc/stat": "cpu  1 2 3\nctxt 5\nbtime 1795300106\nprocesses 9\n"})
    assert read_machine_identity(tmp_path) == MachineIdentity(
        boot_id="3f2a9c1d-0000-4000-8000-00000000000a",
        booted_at=datetime(2026, 11, 21, 22, 28, 26, tzinfo=UTC),  # `date -u -d @1795300106`
    )


@pytest.mark.parametrize(
    ("file", "text", "known"),
    [
        ("sys/class/dmi/id/board_asset_tag", "i-0af01c0123456789a\n", True),
        ("sys/class/dmi/id/board_asset_tag", "Default string\n", False),
        ("etc/machine-id", "0af01c0123456789a0af01c012345678\n", False),
        ("sys/class/net/eth0/address", "a0:36:9f:01:c0:45\n", True),
        ("sys/class/net/eth0/address", "a2:36:9f:01:c0:45\n", False),  # made up by a hypervisor
    ],
)
def test_ids_that_outlive_a_reboot_are_kept_as_hashes(tmp_path: Path, file: str, text: str, known: bool) -> None:
    write_tree(tmp_path, BOOT | {file: text, "sys/class/net/eth0/device/vendor": "0x8086\n"})
    identity = read_machine_identity(tmp_path)
    assert identity is not None
    assert identity.lasting_ids == ((hash_id(text.strip()),) if known else ())
    assert "01c0" not in identity.model_dump_json()


SYSTEM = "sys/devices/system"
XEON = "processor\t: 0\nflags\t\t: fpu sse avx avx2 fma f16c avx512f amx_tile amx_bf16 avx512_bf16 {hypervisor}\n\n"


def list_cores(*cores: tuple[int, str]) -> dict[str, str]:
    """Return the files of logical cores: the socket of each, and the list of its siblings."""
    files: dict[str, str] = {}
    for number, (socket, siblings) in enumerate(cores):
        folder = f"{SYSTEM}/cpu/cpu{number}/topology"
        files |= {f"{folder}/physical_package_id": f"{socket}\n", f"{folder}/thread_siblings_list": f"{siblings}\n"}
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
            **list_cores((0, "0-1"), (0, "0-1")),
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
        (set(range(8)), (4, 2, 2)),
        ({0, 1, 4, 5}, (2, 1, 1)),
        ({0, 4}, (1, 1, 1)),
    ],
)
def test_sockets_nodes_and_physical_cores_are_those_of_the_cpuset(
    tmp_path: Path, cores: set[int], expected: tuple[int, int, int]
) -> None:
    all_cores = [(number % 4 // 2, f"{number % 4},{number % 4 + 4}") for number in range(8)]
    write_tree(
        tmp_path,
        {
            "proc/cpuinfo": XEON.format(hypervisor=""),
            f"{SYSTEM}/cpu/online": "0-7\n",
            f"{SYSTEM}/node/node0/cpulist": "0-1,4-5\n",
            f"{SYSTEM}/node/node1/cpulist": "2-3,6-7\n",
            f"{SYSTEM}/node/node2/cpulist": "\n",  # memory without cores, such as a GH200's GPU
            **list_cores(*all_cores),
        },
    )
    machine = read_machine(tmp_path, cores)
    assert (machine.num_physical_cores, machine.num_sockets, machine.num_numa_nodes) == expected
    assert (machine.is_virtual, machine.num_online_cores, machine.threads_per_core) == (False, 8, 2)


@pytest.mark.parametrize(
    ("text", "numbers"), [("0", {0}), ("0-3", {0, 1, 2, 3}), ("0-1,8,10-11", {0, 1, 8, 10, 11}), ("", set())]
)
def test_lists_of_cores_are_read(text: str, numbers: set[int]) -> None:
    assert parse_cpu_list(f"{text}\n") == numbers


def test_every_library_is_read_once_whatever_links_lead_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"a/libcudnn_engines.so.9": 1000, "b/libcublasLt.so.13": 200, "b/libother.so": 5000}
    write_tree(tmp_path, {name: "x" * size for name, size in sizes.items()})
    (tmp_path / "a" / "libcudnn_engines.so").symlink_to(tmp_path / "a/libcudnn_engines.so.9")
    monkeypatch.setattr("bench.probes.library_files.SYSTEM_FOLDERS", (tmp_path / "a",))
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{tmp_path}/a::{tmp_path}/b:{tmp_path}/missing")
    assert read_library_files() == 1200


MIB = 2**20
ROOM = 64 * 2**30


@pytest.mark.parametrize(
    ("cache_bytes", "room_bytes", "expected"),
    [
        (32 * MIB, ROOM, 128 * MIB),  # STREAM's rule: four times the cache
        (2 * MIB, ROOM, 64 * MIB),
        (None, ROOM, 512 * MIB),
        (32 * MIB, 1536 * MIB, 96 * MIB),  # a sixteenth of what is left
        (32 * MIB, 512 * MIB, None),
    ],
)
def test_arrays_are_past_the_cache_and_never_in_the_way(
    cache_bytes: int | None, room_bytes: int, expected: int | None
) -> None:
    assert choose_copy_bytes(cache_bytes, room_bytes) == expected


def test_the_last_level_is_counted_once_for_the_cpus_that_share_it(tmp_path: Path) -> None:
    for cpu, shared in enumerate(("0-1", "0-1", "2-3", "2-3")):
        for level, size, cpus in ((2, "1024K", cpu), (3, "32M", shared)):
            folder = f"cpu{cpu}/cache/index{level}"
            write_tree(
                tmp_path,
                {f"{folder}/level": f"{level}\n", f"{folder}/size": size, f"{folder}/shared_cpu_list": f"{cpus}"},
            )
    assert read_cache_bytes([0, 1, 2, 3], tmp_path) == 64 * MIB
    assert read_cache_bytes([0, 1], tmp_path) == 32 * MIB


@pytest.mark.parametrize("num_threads", [1, 3])
def test_every_thread_copies_all_of_its_part_in_every_pass(num_threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "PASS_SECONDS", 0.0)
    copied: list[int] = []
    copy = np.copyto

    def count(target: "np.ndarray[Any, Any]", source: "np.ndarray[Any, Any]") -> None:
        copied.append(source.nbytes)
        copy(target, source)

    monkeypatch.setattr(np, "copyto", count)
    assert measure_memory_copy(num_threads, 3 * MIB) > 0
    assert sum(copied) == 3 * MIB * (1 + memory.MIN_PASSES)  # the first one writes the target


def test_memory_is_left_below_the_limit_of_each_group_around_less_what_is_used_of_it(tmp_path: Path) -> None:
    inner = tmp_path / "outer" / "inner"
    for folder, limit in ((inner, "max"), (inner.parent, str(8 * MIB))):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "memory.max").write_text(limit)
        (folder / "memory.current").write_text(str(5 * MIB))
        (folder / "memory.stat").write_text(f"anon {4 * MIB}\ninactive_file {MIB}\n")
    (tmp_path / "membership").write_text("0::/outer/inner\n")
    assert memory.read_available_bytes(tmp_path / "membership", tmp_path) == 4 * MIB
