"""Calculates the highest arithmetic rate of the cores that a process may use, from what the kernel shows of them."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from bench.probes.cpu import SYSTEM_CPU, list_siblings, parse_cpuinfo, read_affinity
from bench.schema import Precision

CPUINFO = Path("/proc/cpuinfo")
# Float32 operations of one core in one cycle: values of a vector register x two units x two for a multiply-add (A. Fog,
# "The microarchitecture of Intel, AMD and VIA CPUs"). /proc/cpuinfo does not show the number of units: some Xeons have
# one for AVX-512, and reach half of this.
AVX512_FLOPS, FMA_FLOPS, AVX_FLOPS, SSE_FLOPS = 64, 32, 16, 8
# Families of AMD whose units are narrower than their registers (AMD's Software Optimization Guides for families 17h
# and 19h): Zen and Zen+ (family 17h before model 30h) have units of 128 bits, Zen 4 (19h, with AVX-512) of 256.
ZEN, ZEN_3_AND_4, FIRST_ZEN_2_MODEL = 0x17, 0x19, 0x30
# A tile product of AMX is 16 x 16 x 32 multiply-adds in 16 cycles, in both half precisions (Intel 64 and IA-32
# Architectures Optimization Reference Manual, chapter on AMX).
AMX_FLOPS = 1024
# cpuinfo's flags of units for half precision: of tiles, and of vectors, which do twice the operations of float32.
TILE_FLAGS: dict[Precision, str] = {"bf16": "amx_bf16", "fp16": "amx_fp16"}
VECTOR_FLAGS: dict[Precision, str] = {"bf16": "avx512_bf16", "fp16": "avx512_fp16"}


@dataclass(frozen=True, kw_only=True)
class TheoreticalPeak:
    """What the rate is the product of. None: not known."""

    num_cores: int | None
    """Physical cores that as many threads can have at once."""
    flops_per_cycle: int | None
    clock_hertz: float | None

    @property
    def flops_per_second(self) -> float | None:
        if self.num_cores is None or self.flops_per_cycle is None or self.clock_hertz is None:
            return None
        return self.num_cores * self.flops_per_cycle * self.clock_hertz


def calculate_peak(
    precision: Precision, num_threads: int, *, cpuinfo: Path = CPUINFO, system_cpu: Path = SYSTEM_CPU
) -> TheoreticalPeak:
    allowed = read_affinity()
    cores = {list_siblings(cpu, system_cpu) or frozenset({cpu}) for cpu in allowed}
    first_processor = cpuinfo.read_text().strip().split("\n\n")[0] if cpuinfo.exists() else ""
    return TheoreticalPeak(
        num_cores=min(num_threads, len(cores)),
        flops_per_cycle=find_flops_per_cycle(parse_cpuinfo(first_processor), precision),
        clock_hertz=read_highest_clock(allowed, cpuinfo, system_cpu),
    )


def find_flops_per_cycle(fields: dict[str, str], precision: Precision) -> int | None:
    flags = set(fields.get("flags", "").split())
    if "sse2" not in flags:
        return None
    if TILE_FLAGS.get(precision) in flags:
        return AMX_FLOPS
    width = SSE_FLOPS
    if "avx" in flags:
        width = AVX_FLOPS
    if "fma" in flags:
        width = FMA_FLOPS
    if "avx512f" in flags:
        width = AVX512_FLOPS
    if fields.get("vendor_id") == "AuthenticAMD":
        width = min(width, _find_amd_limit(int(fields.get("cpu family", 0)), int(fields.get("model", 0))))
    return 2 * width if VECTOR_FLAGS.get(precision) in flags else width


def read_highest_clock(
    allowed: Collection[int], cpuinfo: Path = CPUINFO, system_cpu: Path = SYSTEM_CPU
) -> float | None:
    """Return the highest clock in Hz that cpufreq names for the CPUs `allowed`, or /proc/cpuinfo for any."""
    maxima = [system_cpu / f"cpu{cpu}" / "cpufreq" / "cpuinfo_max_freq" for cpu in allowed]
    clocks = [1e3 * int(path.read_text()) for path in maxima if path.exists()]
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    clocks += [1e6 * float(line.partition(":")[2]) for line in lines if line.startswith("cpu MHz")]
    return max((clock for clock in clocks if clock > 0), default=None)


def _find_amd_limit(family: int, model: int) -> int:
    if family == ZEN and model < FIRST_ZEN_2_MODEL:
        return AVX_FLOPS
    return FMA_FLOPS if family in (ZEN, ZEN_3_AND_4) else AVX512_FLOPS
