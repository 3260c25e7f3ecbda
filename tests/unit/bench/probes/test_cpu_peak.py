"""The calculated peak of a host, from made-up /proc/cpuinfo and /sys trees of real processors."""

from pathlib import Path

import pytest

from bench.probes.cpu_peak import TheoreticalPeak, calculate_peak, count_cores, find_flops_per_cycle, read_highest_clock
from bench.schema import Precision
from file_trees import write_tree

AVX2 = "fpu sse2 avx fma avx2"
AVX512 = f"{AVX2} avx512f avx512dq"
SAPPHIRE_RAPIDS = f"{AVX512} avx512_bf16 avx512_fp16 amx_bf16 amx_tile amx_int8"
INTEL = {"vendor_id": "GenuineIntel", "cpu family": "6", "model": "143"}


def make_amd(family: int, model: int) -> dict[str, str]:
    return {"vendor_id": "AuthenticAMD", "cpu family": str(family), "model": str(model)}


@pytest.mark.parametrize(
    ("fields", "flags", "precision", "expected"),
    [
        (INTEL, AVX512, "fp32", 64),  # two units of 16 values, two operations each
        (INTEL, AVX2, "fp32", 32),
        (INTEL, "sse2 avx", "fp32", 16),  # Sandy Bridge: one multiplies, one adds
        (INTEL, "sse2", "fp32", 8),
        (INTEL, SAPPHIRE_RAPIDS, "fp32", 64),
        (INTEL, SAPPHIRE_RAPIDS, "bf16", 1024),
        (INTEL, SAPPHIRE_RAPIDS, "fp16", 128),
        (INTEL, AVX512, "bf16", 64),  # converted to float32
        (make_amd(0x17, 0x01), AVX2, "fp32", 16),  # Zen
        (make_amd(0x17, 0x31), AVX2, "fp32", 32),  # Zen 2
        (make_amd(0x19, 0x11), f"{AVX512} avx512_bf16", "fp32", 32),  # Zen 4: 512 bits in two passes
        (make_amd(0x19, 0x11), f"{AVX512} avx512_bf16", "bf16", 64),
        (make_amd(0x1A, 0x02), AVX512, "fp32", 64),  # Zen 5
        ({"CPU implementer": "0x41"}, "", "fp32", None),  # 64-bit ARM
    ],
)
def test_a_core_does_as_many_operations_per_cycle_as_its_units_are_wide(
    fields: dict[str, str], flags: str, precision: Precision, expected: int | None
) -> None:
    assert find_flops_per_cycle(fields | {"flags": flags}, precision) == expected


def write_machine(folder: Path, *, megahertz: float, siblings: dict[int, str], maximum_khz: int | None = None) -> None:
    """Write /proc/cpuinfo of a Zen 4 and the topology of its CPUs."""
    processor = "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\ncpu MHz\t\t: {}\nflags\t\t: {}\n"
    files = {"cpuinfo": "\n".join(processor.format(megahertz, AVX512) for _ in siblings)}
    for cpu, text in siblings.items():
        files[f"cpu/cpu{cpu}/topology/thread_siblings_list"] = f"{text}\n"
        if maximum_khz is not None:
            files[f"cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq"] = f"{maximum_khz}\n"
    write_tree(folder, files)


def test_the_clock_is_the_highest_that_is_shown(tmp_path: Path) -> None:
    write_machine(tmp_path, megahertz=2600.5, siblings={0: "0", 1: "1"}, maximum_khz=3_700_000)
    assert read_highest_clock({0, 1}, tmp_path / "cpuinfo", tmp_path / "cpu") == 3.7e9
    assert read_highest_clock({0, 1}, tmp_path / "cpuinfo", tmp_path / "none") == 2.6005e9
    assert read_highest_clock({0, 1}, tmp_path / "none", tmp_path / "none") is None


def test_hyperthreads_of_one_core_are_one_core(tmp_path: Path) -> None:
    write_machine(tmp_path, megahertz=2600, siblings={0: "0,4", 4: "0,4", 1: "1,5"})
    assert count_cores({0, 4, 1}, tmp_path / "cpu") == 2
    assert count_cores({0, 4, 1}, tmp_path / "none") == 3


@pytest.mark.parametrize(("num_threads", "num_cores"), [(1, 1), (64, 2)])
def test_the_peak_is_that_of_as_many_cores_as_there_are_threads_for(
    num_threads: int, num_cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_machine(tmp_path, megahertz=2600, siblings={0: "0,2", 1: "1,3", 2: "0,2", 3: "1,3"})
    monkeypatch.setattr("bench.probes.cpu_peak.read_affinity", lambda: frozenset({0, 1, 2, 3}))
    peak = calculate_peak("fp32", num_threads, cpuinfo=tmp_path / "cpuinfo", system_cpu=tmp_path / "cpu")
    assert peak == TheoreticalPeak(num_cores=num_cores, flops_per_cycle=32, clock_hertz=2.6e9)
    assert peak.flops_per_second == num_cores * 32 * 2.6e9
