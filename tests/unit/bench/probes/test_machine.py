"""Memory and processor of the machine, from made-up files and from what the kernel says of a real process."""

import subprocess
import sys
from pathlib import Path

import pytest

from bench.probes.cpu import read_cpu_model
from bench.probes.memory import read_memory_total_bytes, read_peak_rss_bytes
from file_trees import write_tree

ALLOCATE = """
from bench.probes.memory import read_peak_rss_bytes
before = read_peak_rss_bytes()
block = bytearray(b"x") * 300_000_000
del block
print(before, read_peak_rss_bytes())
"""


def test_the_peak_of_memory_stays_when_the_memory_is_freed() -> None:
    process = subprocess.run([sys.executable, "-c", ALLOCATE], capture_output=True, text=True, check=True)
    before, peak = map(int, process.stdout.split())
    assert peak - before == pytest.approx(300_000_000, abs=10_000_000)


def test_the_peak_of_memory_is_that_of_the_process_not_of_its_parent() -> None:
    block = bytearray(b"x") * 200_000_000  # `ru_maxrss` of a child starts at what its parent had
    process = subprocess.run([sys.executable, "-c", ALLOCATE], capture_output=True, text=True, check=True)
    before = int(process.stdout.split()[0])
    assert before < len(block)


def test_memory_is_read_in_bytes(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        {"status": "VmPeak:\t 9999 kB\nVmHWM:\t  123 kB\nVmRSS:\t 100 kB\n", "meminfo": "MemTotal:  16384 kB\n"},
    )
    assert read_peak_rss_bytes(tmp_path / "status") == 123 * 1024
    assert read_memory_total_bytes(tmp_path / "meminfo") == 16 * 1024**2


X86 = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel\t\t: 85\nmodel name\t: Intel(R) Xeon(R) CPU @ 2.20GHz\n"
ARM_SERVER = "processor\t: 0\nBogoMIPS\t: 243.75\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"
ARM_BOARD = ARM_SERVER + "\nHardware\t: BCM2835\nModel\t\t: Raspberry Pi 4 Model B Rev 1.4\n"


@pytest.mark.parametrize(
    ("cpuinfo", "expected"),
    [
        (X86 * 2, "Intel(R) Xeon(R) CPU @ 2.20GHz"),
        (ARM_SERVER * 2, "ARM implementer 0x41 part 0xd0c"),
        (ARM_BOARD, "Raspberry Pi 4 Model B Rev 1.4"),
        ("processor\t: 0\nmodel name\t:\n", "unknown"),
        ("", "unknown"),
    ],
)
def test_the_processor_is_named(tmp_path: Path, cpuinfo: str, expected: str) -> None:
    write_tree(tmp_path, {"cpuinfo": cpuinfo})
    assert read_cpu_model(tmp_path / "cpuinfo") == expected
