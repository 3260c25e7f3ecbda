"""Find the peaks of the device that a row names: stated in the row or the table, or known to
`bench.measure.roofline`."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from bench.measure.roofline import GpuRow, find_gpu_peaks, read_gpu_table
from collector.audit.table import PEAK_PRECISIONS, AuditTable, StatedDevice, StatedPrecision, TableRow
from collector.prices.table import split_name

# Dense int8 tera-operations a second, of NVIDIA's datasheets. Those of L4, L40, L40S, H100 and H200 print figures of
# structured sparsity, halved here.
INT8_TOPS = {
    "Tesla T4": 130.0,
    "NVIDIA A10": 250.0,
    "NVIDIA A30": 330.0,
    "NVIDIA A40": 299.3,
    "NVIDIA A100-SXM4-40GB": 624.0,
    "NVIDIA A100-SXM4-80GB": 624.0,
    "NVIDIA A100 80GB PCIe": 624.0,
    "NVIDIA L4": 242.0,
    "NVIDIA L40": 362.0,
    "NVIDIA L40S": 733.0,
    "NVIDIA H100 80GB HBM3": 1979.0,
    "NVIDIA H100 PCIe": 1513.0,
    "NVIDIA H100 NVL": 1670.0,
    "NVIDIA H200": 1979.0,
}
# How far GeForce cards, and cards before tensor cores, may clock above the boost clock that their peak is for: a GTX
# 1080 Ti rated at 1582 MHz was seen at 1845, 1.17 times as much (Tom's Hardware, KFA2 GTX 1080 Ti EXOC, 25 June 2017).
# The peaks of other cards are for their highest clock, or for one that tensor cores cannot pass for long at full power.
BOOST_HEADROOM = 1.2
# Cards beside GeForce whose tensor cores are twice as fast where they accumulate in float16: see
# `bench.measure.roofline`.
HALF_RATE_NAMES = ("NVIDIA A10G", "NVIDIA L40")
# What a datasheet may have beside the dense figure: that of structured sparsity. A figure for the base clock is lower,
# a third of it on a T4. Figures are rounded.
SPARSITY = 2.0
MIN_STATED_SHARE = 0.25
ROUNDING = 0.05
# Names in use that hold other words than NVML's.
ALIASES = {"h100 sxm": "NVIDIA H100 80GB HBM3", "h100 sxm5": "NVIDIA H100 80GB HBM3", "h200 sxm": "NVIDIA H200"}


class UnknownDeviceError(ValueError):
    """A row names a device that nobody stated, or one of which there are several; the message says what to write."""


@dataclass(frozen=True, kw_only=True)
class AuditedDevice:
    """One device of a row, with its peaks in the row's precision. None: not known."""

    name: str
    peak_flops_per_second: float | None
    """The rated peak."""
    bound_flops_per_second: float | None
    """What no such device is taken to exceed; the rated peak unless the table states more."""
    bytes_per_second: float | None = None
    cache_bytes: float = 0.0
    fp32_is_tf32_flops_per_second: float | None = None
    """The TF32 peak of a device that has TF32 units: what fp32 may have meant."""
    is_half_rate: bool = False
    """Whether its fp16 peak is half of what accumulation in float16 would give."""
    source: str
    measured_names: tuple[str, ...] = ()
    """The names that NVML reports for such a GPU."""
    measured_words: str | None = None
    """Words that the measured name holds. None, and no `measured_names`: it is `name`, but for the vendor's words."""
    num_threads: int | None = None
    contradiction: str = ""
    """How the stated peak contradicts what this tool knows of the device; empty where it does not."""


def find_device(table: AuditTable, row: TableRow) -> AuditedDevice:
    """Return the device of `row`; UnknownDeviceError where nothing says what it can do."""
    stated = next((one for one in table.devices if one.name.casefold() == row.device.casefold()), None)
    if row.peak_tflops is not None:
        peak = row.peak_tflops * 1e12
        return AuditedDevice(
            contradiction=describe_contradiction(row.device, row.precision, peak),
            name=row.device,
            peak_flops_per_second=peak,
            bound_flops_per_second=peak,
            source=row.peak_source or "",
            measured_words=stated.measured_as if stated else None,
            num_threads=stated.num_threads if stated else None,
        )
    if stated is not None:
        return _describe_stated(stated, row.precision)
    return _describe_known(_find_known(row.device, table), row.precision)


def _describe_stated(device: StatedDevice, precision: StatedPrecision) -> AuditedDevice:
    peak, bound = _find_stated_peak(device, precision)
    return AuditedDevice(
        contradiction=describe_contradiction(device.name, precision, bound),
        name=device.name,
        peak_flops_per_second=peak,
        bound_flops_per_second=bound,
        bytes_per_second=None if device.gigabytes_per_second is None else device.gigabytes_per_second * 1e9,
        cache_bytes=device.cache_mebibytes * 2**20,
        fp32_is_tf32_flops_per_second=_find_stated_peak(device, "tf32")[1],
        source=device.source,
        measured_words=device.measured_as,
        num_threads=device.num_threads,
    )


def _find_stated_peak(device: StatedDevice, precision: StatedPrecision) -> tuple[float | None, float | None]:
    for name in (precision, PEAK_PRECISIONS[precision]):
        if name is not None and name in device.tflops:
            peak = device.tflops[name]
            return peak * 1e12, device.bound_tflops.get(name, peak) * 1e12
    if precision != "fp32" or device.cores is None or device.flops_per_cycle is None or device.gigahertz is None:
        return None, None
    flops_per_cycle = device.cores * device.flops_per_cycle * 1e9
    return flops_per_cycle * device.gigahertz, flops_per_cycle * (device.bound_gigahertz or device.gigahertz)


def _describe_known(gpu: GpuRow, precision: StatedPrecision) -> AuditedDevice:
    name = gpu.names[0]
    peaks = find_gpu_peaks([name], PEAK_PRECISIONS[precision] or "fp16")
    flops_per_second, source = peaks.flops_per_second, peaks.source
    if precision == "int8":
        tops = next((INT8_TOPS[one] for one in gpu.names if one in INT8_TOPS), None)
        flops_per_second = None if tops is None else tops * 1e12
        source = gpu.source if tops is not None else f"{gpu.source}; int8 is in no table of this tool"
    return AuditedDevice(
        name=name,
        peak_flops_per_second=flops_per_second,
        bound_flops_per_second=None if flops_per_second is None else _find_headroom(gpu) * flops_per_second,
        bytes_per_second=peaks.bytes_per_second,
        cache_bytes=peaks.cache_bytes,
        fp32_is_tf32_flops_per_second=find_gpu_peaks([name], "tf32").flops_per_second,
        is_half_rate="GeForce" in name or name in HALF_RATE_NAMES,
        source=source,
        measured_names=gpu.names,
    )


def describe_contradiction(name: str, precision: StatedPrecision, stated: float | None) -> str:
    """Return how a stated peak contradicts the datasheet of a device that this tool knows by this name; else nothing.

    `stated`: the most that the table takes the device to reach, in FLOP/s. It may be any that somebody could read in a
    datasheet: of a boost clock, of structured sparsity, of accumulation in float16, in fp32 that of TF32, and as low as
    MIN_STATED_SHARE of the dense one.
    """
    words = split_name(ALIASES.get(" ".join(name.casefold().split()), name))
    known = [gpu for gpu in read_gpu_table() if words in [split_name(one) for one in gpu.names]]
    device = _describe_known(known[0], precision) if len(known) == 1 else None
    if device is None or stated is None or device.bound_flops_per_second is None:
        return ""
    rated, most = device.peak_flops_per_second or 0.0, device.bound_flops_per_second
    if precision == "fp32":
        most = max(most, SPARSITY * (device.fp32_is_tf32_flops_per_second or 0.0))
    else:
        most *= SPARSITY * (2.0 if device.is_half_rate else 1.0)
    if MIN_STATED_SHARE * rated <= stated <= most * (1 + ROUNDING):
        return ""
    return (
        f"the stated peak of {stated / 1e12:.4g} TFLOP/s is not that of a {device.name} in {precision}: its datasheet "
        f"has {rated / 1e12:.4g} ({device.source}), and no reading of it more than {most / 1e12:.4g}"
    )


def _find_headroom(gpu: GpuRow) -> float:
    has_tensor_cores = "fp16" in gpu.tflops
    return 1.0 if has_tensor_cores and "GeForce" not in gpu.names[0] else BOOST_HEADROOM


def _find_known(name: str, table: AuditTable) -> GpuRow:
    """Return the GPU of this name, or the only one that `name` can mean: `T4`, `l4`, `a100 80gb pcie`."""
    words = split_name(ALIASES.get(" ".join(name.casefold().split()), name))
    exact = [gpu for gpu in read_gpu_table() if any(split_name(known) == words for known in gpu.names)]
    found = exact or [
        gpu for gpu in read_gpu_table() if words and any(words <= split_name(known) for known in gpu.names)
    ]
    if len(found) == 1:
        return found[0]
    if found:
        raise UnknownDeviceError(f"{name!r} can be {_join(gpu.names[0] for gpu in found)}; write which")
    known = [device.name for device in table.devices] + [gpu.names[0] for gpu in read_gpu_table()]
    by_folded = {one.casefold(): one for one in known}
    near = get_close_matches(name.casefold(), by_folded, n=1)
    hint = f"did you mean '{by_folded[near[0]]}'? If not," if near else f"known are {', '.join(known)};"
    raise UnknownDeviceError(
        f"found {name!r}, which neither the table states nor this tool knows; {hint} state it under `devices`, or give "
        "peak_tflops and peak_source in the row"
    )


def _join(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} or {last}"
