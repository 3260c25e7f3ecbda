"""Checks that the work was done, and as the cell asks for: wrong-device, not-as-asked, over-peak."""

from collections.abc import Iterator

from bench.schema import Cell, Roofline
from bench.verdicts.inputs import ValidityInputs

# over-peak. The float32 and memory figures of a datasheet are those of the highest clocks: nothing passes them, unless
# the device has a higher clock than they are stated for (`find_clock_headroom`). Those of tensor cores need not be:
# Hopper's do 16 operations for each of float32, and are quoted at a lower clock (1830 of 1980 MHz on an H100 SXM). What
# they cannot pass, 16 times the float32 figure, is 8% (SXM, PCIe) to 15% (NVL) more.
# A matrix product may miss a CPU's peak by a tenth (libraries reach about 90%), the clock that /proc shows may be the
# base clock, and clocks rise and fall between two measurements.
# All of this for the fewest operations that a known algorithm needs: Winograd's convolutions pass a peak honestly when
# they are counted as direct ones.
MAX_SHARE_OF_TABLE_PEAK = 1.0
MAX_SHARE_OF_TENSOR_PEAK = 1.15
MAX_SHARE_OF_HOST_PEAK = 1.1
# not-as-asked. Half of the threads or fewer work where a limit for another program was inherited (OMP_THREAD_LIMIT) or
# where several threads were put on one core; large products keep 90 % and more of them busy.
MIN_BUSY_SHARE, MIN_BUSY_CORES = 0.6, 1.1
# What identical runs differ by anyway (TorchBench, issue 1681).
MAX_HOST_DRIFT = 0.10


def check_device(inputs: ValidityInputs) -> Iterator[str]:
    asked = inputs.cell.device
    if inputs.device_kind not in (None, asked):
        yield f"the step's output lives on the {inputs.device_kind}, the cell asks for the {asked}"


def check_mode(inputs: ValidityInputs) -> Iterator[str]:
    if inputs.cell.mode != "eager" and inputs.is_compiled is False:
        yield f"mode '{inputs.cell.mode}': the framework made no program of the step and ran it op by op"


def check_threads(inputs: ValidityInputs) -> Iterator[str]:
    host = inputs.host_peak
    if host is None or host.busy_cores is None or inputs.num_threads < 2:
        return
    # A library may leave the hyperthreads alone.
    if host.busy_cores < max(MIN_BUSY_CORES, MIN_BUSY_SHARE * (host.num_cores or inputs.num_threads)):
        yield (
            f"undisturbed matrix products kept {host.busy_cores:.1f} cores busy, with {inputs.num_threads} threads: "
            "something else limits the threads"
        )


def check_roofline(inputs: ValidityInputs) -> Iterator[str]:
    roofline = inputs.roofline
    if roofline is None:
        return
    bound = find_peak_bound(inputs.cell) * find_clock_headroom(inputs)
    share = find_least_share(roofline)
    if share is not None and share > bound:
        yield (
            f"{share:.0%} of the device's peak by the fewest operations that known algorithms need "
            f"({roofline.share_of_peak:.0%} as counted), more than {bound:.0%}: the work was not done as counted, or "
            "not in the window"
        )
    memory_share = (roofline.min_memory_seconds or 0.0) / inputs.samples.center_step_seconds
    if memory_share > MAX_SHARE_OF_TABLE_PEAK:
        yield f"{memory_share:.0%} of what the memory's bandwidth allows, more than {MAX_SHARE_OF_TABLE_PEAK:.0%}"


def list_unchecked_work(inputs: ValidityInputs) -> Iterator[str]:
    if inputs.device_kind is None:
        yield "device of the output not known"
    if inputs.roofline is None or inputs.roofline.share_of_peak is None:
        yield "peak of the device not known"


def note_host_drift(inputs: ValidityInputs) -> Iterator[str]:
    host = inputs.host_peak
    if host is None or host.before_flops_per_second is None or host.after_flops_per_second is None:
        return
    drift = host.after_flops_per_second / host.before_flops_per_second - 1
    if abs(drift) > MAX_HOST_DRIFT:
        yield (
            f"the host's matrix product ran at {host.before_flops_per_second / 1e9:.0f} GFLOP/s before the window and "
            f"at {host.after_flops_per_second / 1e9:.0f} after it ({drift:+.0%}): the host's speed changed"
        )


def find_least_share(roofline: Roofline) -> float | None:
    """Return the share of the peak that the fewest operations known for the step need; None without a peak."""
    if roofline.share_of_peak is None or not roofline.flops_per_step:
        return None
    least = roofline.least_flops_per_step
    return roofline.share_of_peak * (1.0 if least is None else least / roofline.flops_per_step)


def find_peak_bound(cell: Cell) -> float:
    """Return the share of the peak in `measure.peaks`, or of its process's host peak, that a cell can reach at most."""
    if cell.device == "cpu":
        return MAX_SHARE_OF_HOST_PEAK
    return MAX_SHARE_OF_TABLE_PEAK if cell.precision == "fp32" else MAX_SHARE_OF_TENSOR_PEAK


def find_clock_headroom(inputs: ValidityInputs) -> float:
    """Return the highest clock of the cell's GPUs over the one that their peak is stated for, at least 1.

    The figures of GeForce cards, of a Tesla P4 and of a Tesla P100 PCIe are for a boost clock that they can pass.
    """
    stated = inputs.roofline.peak_clock_mhz if inputs.roofline else None
    highest = max((gpu.max_sm_clock_mhz or 0 for gpu in inputs.gpu_use), default=0)
    return max(1.0, highest / stated) if stated else 1.0
