"""The peak rates of GPUs by the name that NVML gives them, with their sources.

Dense figures: where the vendor gives those of structured sparsity, halved. TFLOP/s as printed, at the clock that
the vendor took for them: float32 at the highest, Hopper's tensor cores below it (1830 of 1980 MHz on an H100 SXM).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.schema import Precision


@dataclass(frozen=True, kw_only=True)
class Peaks:
    """The peak rates of a cell's devices together, in its precision. None: not known."""

    flops_per_second: float | None
    bytes_per_second: float | None
    cache_bytes: int
    """Last level of cache in front of that memory; 0 where `bytes_per_second` is None."""
    source: str
    """In words, for the record."""


@dataclass(frozen=True, kw_only=True)
class GpuRow:
    """One line of the table."""

    names: tuple[str, ...]
    """The names that NVML reports; before driver 470 without `NVIDIA`."""
    tflops: dict[Precision, float]
    """A precision that the hardware lacks is missing: it falls back to other units, or runs emulated."""
    gigabytes_per_second: float
    l2_mebibytes: int
    source: str


def _row(
    *names: str,
    fp32: float,
    tf32: float | None,
    fp16: float,
    bf16: float | None,
    bandwidth: float,
    l2: int,
    source: str,
) -> GpuRow:
    given: dict[Precision, float | None] = {"fp32": fp32, "tf32": tf32, "fp16": fp16, "bf16": bf16}
    tflops = {precision: value for precision, value in given.items() if value is not None}
    return GpuRow(names=names, tflops=tflops, gigabytes_per_second=bandwidth, l2_mebibytes=l2, source=source)


_TURING = "NVIDIA T4 datasheet; L2: NVIDIA Turing architecture whitepaper (TU104)"
_VOLTA = "NVIDIA V100 datasheet; L2: NVIDIA Tesla V100 architecture whitepaper"
_AMPERE = "NVIDIA A100 datasheet; L2: NVIDIA A100 architecture whitepaper"
_HOPPER = "NVIDIA H100 datasheet; L2: NVIDIA H100 architecture whitepaper"

# fp16 and bf16: tensor cores with float32 accumulation; fp32: CUDA cores.
GPUS = (
    _row("Tesla T4", "NVIDIA T4", fp32=8.1, tf32=None, fp16=65, bf16=None, bandwidth=320, l2=4, source=_TURING),
    _row(
        "Tesla V100-SXM2-16GB",
        "Tesla V100-SXM2-32GB",
        fp32=15.7,
        tf32=None,
        fp16=125,
        bf16=None,
        bandwidth=900,
        l2=6,
        source=_VOLTA,
    ),
    _row(
        "Tesla V100-PCIE-16GB",
        "Tesla V100-PCIE-32GB",
        fp32=14,
        tf32=None,
        fp16=112,
        bf16=None,
        bandwidth=900,
        l2=6,
        source=_VOLTA,
    ),
    _row(
        "NVIDIA A10G",
        fp32=35,
        tf32=35,
        fp16=70,
        bf16=70,
        bandwidth=600,
        l2=6,
        source="NVIDIA A10G datasheet (AWS EC2 G5); L2: NVIDIA Ampere GA102 architecture whitepaper",
    ),
    _row(
        "NVIDIA L4",
        fp32=30.3,
        tf32=60,
        fp16=121,
        bf16=121,
        bandwidth=300,
        l2=48,
        source="NVIDIA L4 datasheet; L2: NVIDIA Ada architecture whitepaper (AD104)",
    ),
    _row(
        "NVIDIA A100-SXM4-40GB",
        "NVIDIA A100-PCIE-40GB",
        "A100-SXM4-40GB",
        "A100-PCIE-40GB",
        fp32=19.5,
        tf32=156,
        fp16=312,
        bf16=312,
        bandwidth=1555,
        l2=40,
        source=_AMPERE,
    ),
    _row(
        "NVIDIA A100-SXM4-80GB",
        "A100-SXM4-80GB",
        fp32=19.5,
        tf32=156,
        fp16=312,
        bf16=312,
        bandwidth=2039,
        l2=40,
        source=_AMPERE,
    ),
    _row("NVIDIA A100 80GB PCIe", fp32=19.5, tf32=156, fp16=312, bf16=312, bandwidth=1935, l2=40, source=_AMPERE),
    _row("NVIDIA H100 80GB HBM3", fp32=66.9, tf32=494.7, fp16=989.4, bf16=989.4, bandwidth=3350, l2=50, source=_HOPPER),
    _row("NVIDIA H100 PCIe", fp32=51.2, tf32=378, fp16=756, bf16=756, bandwidth=2039, l2=50, source=_HOPPER),
    _row("NVIDIA H100 NVL", fp32=60, tf32=417.5, fp16=835.5, bf16=835.5, bandwidth=3938, l2=50, source=_HOPPER),
    _row(
        "NVIDIA H200",
        fp32=66.9,
        tf32=494.7,
        fp16=989.4,
        bf16=989.4,
        bandwidth=4800,
        l2=50,
        source="NVIDIA H200 datasheet; L2: NVIDIA H100 architecture whitepaper (the same chip)",
    ),
)


def find_gpu_peaks(names: Sequence[str], precision: Precision) -> Peaks:
    """Return the peaks of all GPUs of a cell together; unknown where they are not alike, or in no row."""
    kinds = sorted(set(names))
    rows = [row for row in GPUS if len(kinds) == 1 and kinds[0] in row.names]
    if not rows:
        reason = f"{' and '.join(kinds) or 'no GPU'} not in the table of peaks"
        return Peaks(flops_per_second=None, bytes_per_second=None, cache_bytes=0, source=reason)
    row = rows[0]
    tflops = row.tflops.get(precision)
    source = row.source if tflops is not None else f"{row.source}; no {precision} units"
    return Peaks(
        flops_per_second=None if tflops is None else len(names) * tflops * 1e12,
        bytes_per_second=len(names) * row.gigabytes_per_second * 1e9,
        cache_bytes=len(names) * row.l2_mebibytes * 2**20,
        source=source,
    )
