"""Define a table that is audited: the devices that it states, and its rows as people write them."""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Literal, Self, get_args

from pydantic import Field, ValidationError, model_validator

from bench.measure.roofline import GpuRow, read_gpu_table
from bench.registry import MODELS, Phase
from bench.schema import Cell, Device, Precision
from bench.schema.document import MAX_STEP_SECONDS, Count, Document, StepSeconds
from collector.prices.table import split_name

StatedPrecision = Literal[Precision, "int8", "amp"]
"""`amp`: automatic mixed precision, that is fp16 with float32 accumulation. `int8` is no precision of a cell."""
Words = Annotated[str, Field(min_length=1, max_length=2000)]
Tera = Annotated[float, Field(ge=1e-6, le=1e9)]
"""10^12 operations a second of one device: from a million to 10^21."""
Gigahertz = Annotated[float, Field(ge=1e-6, le=1000)]
StatedFlops = Annotated[float, Field(ge=1, le=1e24)]
"""Of one sample: the most are those that 10^9 devices of a PFLOP/s have in a second."""
TIMES = ("milliseconds", "seconds", "samples_per_second")

# The precision whose peak bounds a row. None: no cell and no row of `bench.measure.roofline` has it.
PEAK_PRECISIONS: Mapping[StatedPrecision, Precision | None] = {
    **{precision: precision for precision in get_args(Precision)},
    "amp": "fp16",
    "int8": None,
}


class StatedDevice(Document):
    """A device that a table states itself: by its peaks, or as a CPU by cores, width and clock."""

    name: Words
    source: Words
    """Where its peaks, or its clock, are from."""
    tflops: dict[StatedPrecision, Tera] = {}
    """Peaks of dense arithmetic in 10^12 operations a second; int8 too."""
    bound_tflops: dict[StatedPrecision, Tera] = {}
    """What no such device is taken to exceed, where that is more than the rated peak: a clock above the rated one."""
    gigabytes_per_second: Annotated[float, Field(ge=1e-6, le=1e9)] | None = None
    """Bandwidth of its memory."""
    cache_mebibytes: Annotated[float, Field(ge=0, le=1e9)] = 0.0
    """The last level of cache in front of that memory."""
    cores: Count | None = None
    """Physical cores, of all sockets."""
    flops_per_cycle: Annotated[float, Field(ge=0.001, le=1e9)] | None = None
    """Of one core at FP32: 32 with AVX2 and two FMA units, 64 with AVX-512 and two."""
    gigahertz: Gigahertz | None = None
    """The clock that all cores sustain."""
    bound_gigahertz: Gigahertz | None = None
    """The highest clock that the cores can reach; a time is judged by it."""
    measured_as: Words | None = None
    """Words that the name of such a device holds in measured results; default: all of its own name."""
    num_threads: Count | None = None
    """Threads that a measured cell on such a CPU must have; default: any number."""

    @model_validator(mode="after")
    def _check_peak(self) -> Self:
        is_cpu = [value is not None for value in (self.cores, self.flops_per_cycle, self.gigahertz)]
        if any(is_cpu) and not all(is_cpu):
            raise ValueError("cores: a CPU is stated by cores, flops_per_cycle and gigahertz, all three")
        if not any(is_cpu) and not self.tflops:
            raise ValueError("tflops: is missing; give peaks by precision, or cores, flops_per_cycle and gigahertz")
        if self.bound_gigahertz is not None and (self.gigahertz is None or self.bound_gigahertz < self.gigahertz):
            raise ValueError(
                "bound_gigahertz: is less than gigahertz, or there is no gigahertz; a bound is at least it"
            )
        for precision, bound in self.bound_tflops.items():
            if bound < self.tflops.get(precision, float("inf")):
                raise ValueError("bound_tflops: is less than tflops, or there is none in that precision")
        return self

    def find_peak(self, precision: StatedPrecision) -> tuple[float | None, float | None]:
        """Return the rated peak and the bound in FLOP/s; None where they are not known."""
        for name in (precision, PEAK_PRECISIONS[precision]):
            if name is not None and name in self.tflops:
                peak = self.tflops[name]
                return peak * 1e12, self.bound_tflops.get(name, peak) * 1e12
        if precision != "fp32" or self.cores is None or self.flops_per_cycle is None or self.gigahertz is None:
            return None, None
        flops_per_cycle = self.cores * self.flops_per_cycle * 1e9
        return flops_per_cycle * self.gigahertz, flops_per_cycle * (self.bound_gigahertz or self.gigahertz)

    def is_measured(self, device: Device, name: str, num_threads: int | None) -> bool:
        """Return whether a measured device of this name, with so many threads, is of this kind."""
        if device == "cpu" and self.num_threads not in (None, num_threads):
            return False
        if self.measured_as is None:
            return split_name(name) == split_name(self.name)
        return re.search(rf"(?<!\w){re.escape(self.measured_as)}(?!\w)", name, re.IGNORECASE) is not None


class KnownGpu(StatedDevice):
    """A GPU that this tool knows, as a table would state it."""

    names: tuple[str, ...]
    """Those that NVML reports for it."""

    def is_measured(self, device: Device, name: str, num_threads: int | None) -> bool:
        return device == "gpu" and name in self.names


class StatedReading(Document):
    """One way to read the work of a row; the row's own fields hold where it leaves one out."""

    label: Words | None = None
    input_size: Annotated[int, Field(ge=2, le=65_536)] | None = None
    num_classes: Annotated[int, Field(ge=2, le=10**7)] | None = None
    flops_per_sample: StatedFlops | None = None
    """FLOPs of one sample's part of a step, a multiply-add as two: of training, forward and backward together."""
    most_flops_per_sample: StatedFlops | None = None
    """The most, where they are a range that begins at `flops_per_sample`."""
    winograd_share: Annotated[float, Field(ge=0, le=1)] | None = None
    """The part of `flops_per_sample` in 3x3 convolutions of stride 1. None: not known, judged as if all were."""
    is_model: bool = True
    """Whether the work is that of the row's model, so that measured cells of it can answer."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in ("most_flops_per_sample", "winograd_share"):
            if self.flops_per_sample is None and getattr(self, name) is not None:
                raise ValueError(f"{name}: is given without flops_per_sample, which it says more of; give both")
        return self


class TableRow(Document):
    """One stated time or rate."""

    device: Words
    model: str | None = None
    """A name in the registry. None: `flops_per_sample` or `readings` say what was computed."""
    input_size: Annotated[int, Field(ge=2, le=65_536)] | None = None
    num_classes: Annotated[int, Field(ge=2, le=10**7)] | None = None
    flops_per_sample: StatedFlops | None = None
    readings: Annotated[tuple[StatedReading, ...], Field(min_length=1)] | None = None
    phase: Phase
    precision: StatedPrecision
    batch_size: Count | None = None
    """Samples of a step over all devices; may be left out where a rate is given."""
    num_devices: Annotated[int, Field(ge=1, le=65_536)] = 1
    milliseconds: Annotated[float, Field(ge=1e-6, le=1000 * MAX_STEP_SECONDS)] | None = None
    seconds: StepSeconds | None = None
    samples_per_second: Annotated[float, Field(ge=1e-9, le=1e18)] | None = None
    framework: Words | None = None
    """Of any name; measured cells match only where it is one of the registry's."""
    label: Words | None = None
    source: Words | None = None
    peak_tflops: Tera | None = None
    """The peak of one device in the row's precision, for devices that are in no table."""
    peak_source: Words | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        given = [name for name in TIMES if getattr(self, name) is not None]
        if len(given) != 1:
            found = f"found {' and '.join(given)}" if given else "found none of them"
            raise ValueError(f"{given[-1] if given else TIMES[0]}: {found}, expected exactly one of {', '.join(TIMES)}")
        if self.batch_size is None and self.samples_per_second is None:
            raise ValueError(f"batch_size: is missing; {given[0]} are of a step, so its samples must be known")
        if (self.peak_tflops is None) != (self.peak_source is None):
            raise ValueError("peak_source: peak_tflops and peak_source belong together; give both or neither")
        if self.readings is not None and self.flops_per_sample is not None:
            raise ValueError("flops_per_sample: stands in the readings where there are any; give one of the two")
        if self.model is None and any(reading.flops_per_sample is None for reading in self.list_readings()):
            raise ValueError("model: is missing; give a model of the registry, or flops_per_sample of every reading")
        if self.model is not None and self.model not in MODELS:
            known = ", ".join(MODELS)
            raise ValueError(f"model: {self.model!r} is unknown; known are {known}; of another give flops_per_sample")
        for reading in self.list_readings():
            if reading.flops_per_sample is None:
                self.make_cell(reading)
            elif (reading.most_flops_per_sample or reading.flops_per_sample) < reading.flops_per_sample:
                raise ValueError("readings: most_flops_per_sample is less than flops_per_sample")
        return self

    def list_readings(self) -> list[StatedReading]:
        """Return the readings, one where the row itself says what was computed, sizes filled in."""
        readings = self.readings or (StatedReading(flops_per_sample=self.flops_per_sample),)
        return [
            reading.model_copy(
                update={
                    "input_size": reading.input_size or self.input_size,
                    "num_classes": reading.num_classes or self.num_classes,
                }
            )
            for reading in readings
        ]

    def make_cell(self, reading: StatedReading) -> Cell:
        """Return a cell whose step on one device is the reading's work; ValueError where the model has no such size.

        Precision, framework and device of the cell mean nothing: work is counted alike for all.
        """
        assert self.model is not None
        spec = MODELS[self.model]
        try:
            return Cell(
                model=self.model,
                framework="pytorch",
                device="cpu",
                phase=self.phase,
                batch_size=1,
                input_size=reading.input_size or spec.input_size,
                num_classes=reading.num_classes or spec.num_classes,
            )
        except ValidationError as error:
            raise ValueError(str(error.errors()[0]["ctx"]["error"])) from None

    @property
    def samples_per_second_stated(self) -> float:
        """Samples per second, over all devices, as stated or as the time of a step implies."""
        if self.samples_per_second is not None:
            return self.samples_per_second
        assert self.batch_size is not None
        return self.batch_size / (self.seconds if self.seconds is not None else (self.milliseconds or 0) / 1000)

    @property
    def samples(self) -> str:
        """`image` or `sample`, `images` or `samples`, as many as a step has."""
        word = "image" if self.model is not None and MODELS[self.model].task.startswith("image-") else "sample"
        return word if self.batch_size == 1 and self.samples_per_second is None else f"{word}s"

    @property
    def figure(self) -> str:
        """The figure of the row as stated: `152.73 ms`, `1,198 images/s`."""
        if self.samples_per_second is not None:
            return f"{self.samples_per_second:,.10g} {self.samples}/s"
        return f"{self.seconds:,.10g} s" if self.seconds is not None else f"{self.milliseconds:,.10g} ms"


class AuditTable(Document):
    """A table with the devices that it states."""

    title: Words
    source: Words
    provenance: Words | None = None
    """How its numbers came here, where not directly from the source."""
    remark: Words | None = None
    """What a reader of the verdicts should know."""
    devices: tuple[StatedDevice, ...] = ()
    rows: Annotated[tuple[TableRow, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _check_devices(self) -> Self:
        names = [device.name.casefold() for device in self.devices]
        if len(set(names)) != len(names):
            raise ValueError("devices: two of them have the same name; rename one")
        for index, row in enumerate(self.rows):
            try:
                find_device(self, row)
            except ValueError as error:
                raise ValueError(f"rows[{index}].device: {error}") from None
        return self


# How far GeForce cards, and cards before tensor cores, may clock above the boost clock that their peak is for: a GTX
# 1080 Ti rated at 1582 MHz was seen at 1845, 1.17 times as much (Tom's Hardware, KFA2 GTX 1080 Ti EXOC, 25 June 2017).
# The peaks of other cards are for their highest clock, or for one that tensor cores cannot pass for long at full power.
BOOST_HEADROOM = 1.2
# Words in the names of cards whose fp16 peak is half of what accumulation in float16 would give: see
# `bench.measure.roofline`.
HALF_RATE = re.compile("GeForce|^NVIDIA (A10G|L40)$")
# Names in use that hold other words than NVML's.
ALIASES = {"h100 sxm": "NVIDIA H100 80GB HBM3", "h100 sxm5": "NVIDIA H100 80GB HBM3", "h200 sxm": "NVIDIA H200"}


def find_device(table: AuditTable, row: TableRow) -> StatedDevice:
    """Return the device of `row`; ValueError, which says what to write, where it is unknown or can be several."""
    device = next((one for one in table.devices if one.name.casefold() == row.device.casefold()), None)
    if row.peak_tflops is not None:
        kept = device.model_dump(include={"measured_as", "num_threads"}) if device else {}
        peaks = {row.precision: row.peak_tflops}
        return StatedDevice(name=row.device, source=row.peak_source or "", tflops=peaks, **kept)
    return device or _state_device(_find_known(row.device, table))


def _state_device(gpu: GpuRow) -> KnownGpu:
    tflops: dict[StatedPrecision, float] = {precision: peak for precision, peak in gpu.tflops.items()}
    if gpu.int8_tops is not None:
        tflops["int8"] = gpu.int8_tops
    has_tensor_cores = "fp16" in tflops
    headroom = 1.0 if has_tensor_cores and "GeForce" not in gpu.names[0] else BOOST_HEADROOM
    return KnownGpu(
        name=gpu.names[0],
        names=gpu.names,
        source=gpu.source,
        tflops=tflops,
        bound_tflops={name: headroom * peak for name, peak in tflops.items()},
        gigabytes_per_second=gpu.gigabytes_per_second,
        cache_mebibytes=gpu.l2_mebibytes,
    )


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
        raise ValueError(f"{name!r} can be {' or '.join(gpu.names[0] for gpu in found)}; write which")
    known = [device.name for device in table.devices] + [gpu.names[0] for gpu in read_gpu_table()]
    by_folded = {one.casefold(): one for one in known}
    near = get_close_matches(name.casefold(), by_folded, n=1)
    hint = f"did you mean '{by_folded[near[0]]}'? If not," if near else f"known are {', '.join(known)};"
    raise ValueError(
        f"found {name!r}, which neither the table states nor this tool knows; {hint} state it under `devices`, or give "
        "peak_tflops and peak_source in the row"
    )
