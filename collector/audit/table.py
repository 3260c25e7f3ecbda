"""Define a table that is audited: the devices that it states, and its rows as people write them."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self, get_args

from pydantic import Field, ValidationError, model_validator

from bench.registry import MODELS, Phase
from bench.schema import Cell, Precision
from bench.schema.document import MAX_STEP_SECONDS, Count, Document, StepSeconds

StatedPrecision = Literal["fp32", "tf32", "fp16", "bf16", "int8", "amp"]
"""`amp`: automatic mixed precision, that is fp16 with float32 accumulation. `int8` is no precision of a cell."""
Words = Annotated[str, Field(min_length=1, max_length=2000)]
Tera = Annotated[float, Field(ge=1e-6, le=1e9)]
"""10^12 operations a second of one device: from a million to 10^21."""
Gigahertz = Annotated[float, Field(ge=1e-6, le=1000)]
StatedFlops = Annotated[float, Field(ge=1, le=1e24)]
"""Of one sample: the most are those that 10^9 devices of a PFLOP/s have in a second."""
MAX_ROWS = 100_000
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
    readings: Annotated[tuple[StatedReading, ...], Field(min_length=1, max_length=20)] | None = None
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
        self._check_work()
        return self

    def _check_work(self) -> None:
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


class AuditTable(Document):
    """A table with the devices that it states."""

    title: Words
    source: Words
    provenance: Words | None = None
    """How its numbers came here, where not directly from the source."""
    remark: Words | None = None
    """What a reader of the verdicts should know."""
    devices: tuple[StatedDevice, ...] = ()
    rows: Annotated[tuple[TableRow, ...], Field(min_length=1, max_length=MAX_ROWS)]

    @model_validator(mode="after")
    def _check_devices(self) -> Self:
        names = [device.name.casefold() for device in self.devices]
        if len(set(names)) != len(names):
            raise ValueError("devices: two of them have the same name; rename one")
        return self
