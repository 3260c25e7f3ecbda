"""Checks that the work was done, and on the device asked for: wrong-device, over-peak."""

from bench.schema import Cell
from bench.validity.inputs import Found, ValidityInputs

# over-peak. The float32 and memory figures of a datasheet are those of the highest clocks: nothing passes them, unless
# the device has a higher clock than they are stated for (`find_clock_headroom`). Those of tensor cores need not be:
# Hopper's do 16 operations for each of float32, and are quoted at a lower clock (1830 of 1980 MHz on an H100 SXM). What
# they cannot pass, 16 times the float32 figure, is 8% (SXM, PCIe) to 15% (NVL) more.
# A measured matrix product may miss the CPU's peak by a tenth (libraries reach about 90%), and clocks rise and fall
# between the two measurements.
MAX_SHARE_OF_TABLE_PEAK = 1.0
MAX_SHARE_OF_TENSOR_PEAK = 1.15
MAX_SHARE_OF_MEASURED_PEAK = 1.1


def check_device(inputs: ValidityInputs) -> Found:
    """Yield wrong-device where the step's output does not live on the device that the cell asks for."""
    asked = inputs.cell.device
    if inputs.device_kind not in (None, asked):
        yield "wrong-device", f"the step's output lives on the {inputs.device_kind}, the cell asks for the {asked}"


def check_roofline(inputs: ValidityInputs) -> Found:
    """Yield over-peak where the step did more arithmetic, or moved more bytes, than the device can."""
    roofline = inputs.roofline
    if roofline is None:
        return
    bound = find_peak_bound(inputs.cell) * find_clock_headroom(inputs)
    if roofline.share_of_peak is not None and roofline.share_of_peak > bound:
        yield (
            "over-peak",
            f"{roofline.share_of_peak:.0%} of the device's peak, more than {bound:.0%}: the work was not done as "
            "counted, or not in the window (Winograd and FFT convolutions do need fewer operations than counted)",
        )
    share = roofline.share_of_roofline
    if roofline.bound == "memory" and share is not None and share > MAX_SHARE_OF_TABLE_PEAK:
        yield (
            "over-peak",
            f"{share:.0%} of what the memory's bandwidth allows, more than {MAX_SHARE_OF_TABLE_PEAK:.0%}",
        )


def find_peak_bound(cell: Cell) -> float:
    """Return the share of the peak in `bench.peaks`, or of the host's measured one, that a cell can reach at most."""
    if cell.device == "cpu":
        return MAX_SHARE_OF_MEASURED_PEAK
    return MAX_SHARE_OF_TABLE_PEAK if cell.precision == "fp32" else MAX_SHARE_OF_TENSOR_PEAK


def find_clock_headroom(inputs: ValidityInputs) -> float:
    """Return the highest clock of the cell's GPUs over the one that their peak is stated for, at least 1.

    The figures of GeForce cards, of a Tesla P4 and of a Tesla P100 PCIe are for a boost clock that they can pass.
    """
    stated = inputs.roofline.peak_clock_mhz if inputs.roofline else None
    highest = max((gpu.max_sm_clock_mhz or 0 for gpu in inputs.gpu_use), default=0)
    return max(1.0, highest / stated) if stated else 1.0
