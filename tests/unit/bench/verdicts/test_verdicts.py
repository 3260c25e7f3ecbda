"""Verdicts: a measurement just within each bound and one just beyond, the words, and what nobody saw."""

from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any, get_args

import pytest

from bench.measure.roofline import find_gpu_peaks
from bench.measure.roofline import make_roofline as compute_roofline
from bench.models.flops import count_step_cost
from bench.schema import CpuUse, ForeignProcess, GpuUse, GpuWindow, Reason, Samples, Validity, Verdict
from bench.verdicts import ValidityInputs, judge_tenant, judge_tenants, judge_validity
from bench.verdicts.checks import check_rate, check_rate_drift, find_drift_bound, measure_spread
from factories import make_cell, make_cpu_use, make_gpu_use, make_host_figures, make_roofline, present
from validity_inputs import list_verdicts, make_gpu_inputs, make_inputs

UUID = "GPU-5c1e2f6a-0000-0000-0000-000000000001"
COMPILED = make_cell(mode="compiled")
# A GeForce RTX 4090 whose highest clock is 3105 MHz: 3105 / 2520 is 1.232.
RTX_4090 = make_gpu_use(max_sm_clock_mhz=3105, sm_clock_mhz=(2970, 2970, 2970))


def make_memory_bound(share: float, **cell: str) -> ValidityInputs:
    """Return steps of 0.1 s, in this share of which the memory can move their bytes."""
    return make_gpu_inputs(cell=cell, roofline=make_roofline(share_of_peak=0.1, min_memory_seconds=share * 0.1))


def share(num_cores: int, others: float, **fields: float | None) -> CpuUse:
    """Return a window of a second on so many cores, of which others kept some busy."""
    return make_cpu_use(window_seconds=1.0, num_affinity_cores=num_cores, affinity_other_cores=others, **fields)


def share_machine(num_cores: int, others: float) -> CpuUse:
    """Return the same where only the machine as a whole shows its use."""
    return make_cpu_use(window_seconds=1.0, affinity_other_cores=None, num_machine_cores=num_cores, other_cores=others)


def pin(others: float, sibling_busy_cores: float) -> CpuUse:
    """Return a cell on 8 pinned cores of 64 with hyperthreads, and a neighbour on all others that are free."""
    return share(
        8,
        others,
        own_cores=8.0,
        num_machine_cores=64,
        other_cores=56.0 if not others + sibling_busy_cores else 4.0,
        num_affinity_physical_cores=8,
        num_sibling_cores=8,
        sibling_busy_cores=sibling_busy_cores,
    )


CAP, IDLE, APPLICATIONS = "software power cap", "GPU idle", "applications clocks setting"


def make_slow_gpu(clocks: tuple[int, ...], reasons: tuple[tuple[str, ...], ...] = ((),) * 3, **fields: Any) -> GpuUse:
    """Return a GPU of at most 1590 MHz with these samples."""
    names = {name for given in reasons for name in given}
    shares = {name: sum(name in given for given in reasons) / len(reasons) for name in sorted(names)}
    series = {"sample_seconds": tuple(map(float, range(len(clocks)))), "sm_clock_mhz": clocks}
    flat = {"temperature_celsius": (50,) * len(clocks), "power_watts": (60.0,) * len(clocks)}
    return make_gpu_use(**(series | flat | {"sample_reasons": reasons, "throttle_reasons": shares} | fields))


def make_window(**fields: Any) -> GpuWindow:
    """Return two seconds at the highest clock, in which nothing held it down."""
    highest = {"seconds": 2.0, "sm_clock_before_mhz": 1590, "sm_clock_after_mhz": 1590, "energy_joules": 100.0}
    return GpuWindow(**(highest | {"sm_clock_mhz": (), "held_seconds": {}} | fields))


SLOW = (800, 800, 800, 800, 1590, 1590)
"""The two samples at 1590 MHz are none of the slow ones."""


def make_samples(
    waits: tuple[float, ...] | None, step_seconds: tuple[float, ...] = (0.1,) * 10, num_queued: int = 2, **fields: Any
) -> Samples:
    given: dict[str, Any] = {"warmup_step_seconds": (0.1,), "reached_steady": True, "data_wait_seconds": waits}
    queue = None if waits is None else num_queued
    return Samples(step_seconds=step_seconds, max_queued_batches=queue, **(given | fields))


def on_gpu(*gpus: GpuUse) -> ValidityInputs:
    return make_gpu_inputs(gpu_use=gpus)


def step(*levels: float, each: int = 1) -> ValidityInputs:
    """Return steps of these tenths of a second, so many of each."""
    return make_inputs(tuple(0.1 * level for level in levels for _ in range(each)))


PERIODS = {"num_periods": 10, "num_throttled_periods": 10}
IN_TURNS = (1.16, 1.16, 1.0, 1.0, 1.16, 1.0, 1.0, 1.0, 1.16)


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        # wrong-device, not-as-asked
        (make_gpu_inputs(device_kind="cpu", step_seconds=(0.1,) * 9), ["wrong-device", "too-short"]),
        (make_inputs(cell=COMPILED, is_compiled=False), ["not-as-asked"]),
        (make_inputs(cell=COMPILED, is_compiled=True), []),
        (make_inputs(cell=COMPILED, is_compiled=None), []),
        (make_inputs(cell=make_cell(), is_compiled=False), []),
        (make_inputs(num_threads=2, host_peak=make_host_figures(busy_cores=1.0)), ["not-as-asked"]),
        (make_inputs(num_threads=2, host_peak=make_host_figures(busy_cores=1.3)), []),
        (make_inputs(num_threads=2, host_peak=make_host_figures(busy_cores=None)), []),
        # over-peak
        (make_gpu_inputs(roofline=make_roofline(share_of_peak=0.99)), []),
        (make_gpu_inputs(roofline=make_roofline(share_of_peak=1.01)), ["over-peak"]),
        # Tensor cores may pass a figure that is quoted below the highest clock.
        *(
            (make_gpu_inputs(cell={"precision": precision}, roofline=make_roofline(share_of_peak=share)), expected)
            for precision in ("tf32", "fp16", "bf16")
            for share, expected in ((1.14, []), (1.16, ["over-peak"]))
        ),
        # So may a device whose highest clock is above the stated one; a lower one makes no peak smaller.
        (make_gpu_inputs(gpu_use=(RTX_4090,), roofline=make_roofline(share_of_peak=1.22, peak_clock_mhz=2520.0)), []),
        (
            make_gpu_inputs(gpu_use=(RTX_4090,), roofline=make_roofline(share_of_peak=1.24, peak_clock_mhz=2520.0)),
            ["over-peak"],
        ),
        (make_gpu_inputs(roofline=make_roofline(share_of_peak=0.99, peak_clock_mhz=1700.0)), []),
        # A measured peak may be surpassed by a tenth.
        (make_inputs(roofline=make_roofline(share_of_peak=1.09, share_of_roofline=1.09)), []),
        (make_inputs(roofline=make_roofline(share_of_peak=1.11, share_of_roofline=1.11)), ["over-peak"]),
        # The memory's bandwidth not at all.
        (make_memory_bound(0.99), []),
        (make_memory_bound(1.01), ["over-peak"]),
        (make_memory_bound(1.01, precision="bf16"), ["over-peak"]),
        # contaminated, by others on the GPU
        *(
            (on_gpu(make_gpu_use(**{field: mebibytes * 2**20})), expected)
            for field in ("memory_used_before_bytes", "foreign_memory_after_bytes")
            for mebibytes, expected in ((100, []), (101, ["contaminated"]))
        ),
        # contaminated, by others on the cores that a CPU cell needs
        *(
            (make_inputs(cpu_use=use(num_cores, others), num_threads=num_threads), expected)
            for use in (share, share_machine)
            for num_threads, num_cores, others, expected in (
                (2, 2, 0.19, []),
                (2, 2, 0.21, ["contaminated"]),
                (2, 16, 14.1, []),  # a pod's share of a large node: the others have their own cores
                (2, 16, 14.3, ["contaminated"]),
                (16, 16, 1.5, []),
                (16, 16, 1.7, ["contaminated"]),
            )
        ),
        # Both cores are busy all the time. The quota stopped the cell half of it, and others ran on its core meanwhile.
        (make_inputs(cpu_use=share(2, 1.5, own_cores=0.5, throttled_seconds=0.5), num_threads=1), ["throttled"]),
        # It was the others.
        (make_inputs(cpu_use=share(2, 1.5, own_cores=0.5, throttled_seconds=0.0), num_threads=1), ["contaminated"]),
        (
            make_inputs(cpu_use=share(2, 1.5, own_cores=0.5, throttled_seconds=0.3), num_threads=1),
            ["contaminated", "throttled"],
        ),  # others took 0.2
        # 0.05 is within the bound.
        (make_inputs(cpu_use=share(2, 1.5, own_cores=0.5, throttled_seconds=0.45), num_threads=1), ["throttled"]),
        # Of a cell with cores of its own only these and their hyperthreads count.
        (make_inputs(cpu_use=pin(0.0, 0.0), num_threads=8), []),
        (make_inputs(cpu_use=pin(4.0, 0.0), num_threads=8), ["contaminated"]),
        (make_inputs(cpu_use=pin(0.0, 0.7), num_threads=8), []),
        (make_inputs(cpu_use=pin(0.0, 0.9), num_threads=8), ["contaminated"]),
        # Others on a GPU cell's cores, where they leave none idle.
        # A neighbour on all cores but two.
        (make_gpu_inputs(cpu_use=share(16, 13.9, own_cores=1.1), num_threads=16), []),
        # A neighbour on all cores.
        (make_gpu_inputs(cpu_use=share(16, 14.8, own_cores=1.1), num_threads=16), ["contaminated"]),
        # A cell whose data pipeline fills the cores, on a quiet server.
        (make_gpu_inputs(cpu_use=share(16, 0.2, own_cores=15.8), num_threads=16), []),
        # The same, and a build beside it.
        (make_gpu_inputs(cpu_use=share(16, 1.8, own_cores=14.2), num_threads=16), ["contaminated"]),
        # A workstation where three programs work.
        (make_gpu_inputs(cpu_use=share(4, 2.7, own_cores=1.0), num_threads=4), []),
        (make_gpu_inputs(cpu_use=share(4, 2.9, own_cores=1.0), num_threads=4), ["contaminated"]),
        # The launching thread spins on one of two cores.
        (make_gpu_inputs(cpu_use=share(2, 0.95, own_cores=1.0), num_threads=2), ["contaminated"]),
        # throttled
        # 75% of 1590 MHz is 1192.5 MHz; the first sample alone is no median.
        (on_gpu(make_slow_gpu((300, 1193, 1193))), []),
        (on_gpu(make_slow_gpu((300, 1192, 1192))), ["throttled"]),
        # Most of the slow samples must name the power cap or idleness.
        (on_gpu(make_slow_gpu(SLOW, ((CAP,), (CAP,), (CAP,), (), (), ()))), []),
        (on_gpu(make_slow_gpu(SLOW, ((CAP,), (CAP,), (), (), (CAP,), (CAP,)))), ["throttled"]),
        (on_gpu(make_slow_gpu(SLOW, ((IDLE,), (IDLE,), (IDLE,), (), (), ()))), []),
        (on_gpu(make_slow_gpu(SLOW, (("sync boost",),) * 6)), ["throttled"]),
        # Or the work leaves the device idle.
        (on_gpu(make_slow_gpu((800,) * 3, utilization=(0.49,) * 3)), []),
        (on_gpu(make_slow_gpu((800,) * 3, utilization=(0.51,) * 3)), ["throttled"]),
        # Limits below the default ones, at any clock: 1% of 70 W are 0.7 W.
        (on_gpu(make_gpu_use(power_limit_watts=69.5, default_power_limit_watts=70.0)), []),
        (on_gpu(make_gpu_use(power_limit_watts=69.0, default_power_limit_watts=70.0)), ["throttled"]),
        (on_gpu(make_gpu_use(power_limit_watts=70.5, default_power_limit_watts=70.0)), []),
        (on_gpu(make_gpu_use(application_clock_mhz=900, default_application_clock_mhz=1000)), ["throttled"]),
        # Heat and a power brake, at any clock.
        (on_gpu(make_gpu_use(throttle_reasons={CAP: 1.0, APPLICATIONS: 1.0})), []),
        (on_gpu(make_gpu_use(throttle_reasons={"hardware thermal slowdown": 0.05})), []),
        (on_gpu(make_gpu_use(throttle_reasons={"hardware thermal slowdown": 0.06})), ["throttled"]),
        (on_gpu(make_gpu_use(throttle_reasons={"software thermal slowdown": 0.06})), ["throttled"]),
        (on_gpu(make_gpu_use(throttle_reasons={"hardware power brake slowdown": 1.0})), ["throttled"]),
        # Heat in the timed window, though it was gone in the sampling pass.
        (on_gpu(make_gpu_use(window=make_window(held_seconds={"power": 2.0, "thermal": 0.10}))), []),
        (on_gpu(make_gpu_use(window=make_window(held_seconds={"power": 2.0, "thermal": 0.11}))), ["throttled"]),
        # Two threads in a window of 1 s have 2 s; that every period of the quota was cut is not what counts.
        *(
            (make_inputs(cpu_use=make_cpu_use(window_seconds=1.0, throttled_seconds=seconds, **PERIODS)), expected)
            for seconds, expected in ((0.09, []), (0.11, ["throttled"]))
        ),
        # too-short: half a second and ten steps, or six long ones
        (make_inputs((0.051,) * 10), []),
        (make_inputs((0.049,) * 10), ["too-short"]),
        (make_inputs((0.5,) * 9), ["too-short"]),
        (make_inputs((0.84,) * 6), []),
        (make_inputs((0.83,) * 6), ["too-short"]),
        (make_inputs((60.0,) * 5), ["too-short"]),
        (make_inputs((0.1,) * 1), ["too-short", "too-short"]),
        # not-steady: a warm-up that was cut off, and a level that changes within the window
        (make_inputs(reached_steady=False), ["not-steady"]),
        (step(*(1.0,) * 10, *(1.049,) * 10), []),
        (step(*(1.0,) * 10, *(1.051,) * 10), ["not-steady"]),
        (step(*(1.0,) * 10, *(0.94,) * 10), ["not-steady"]),
        # Thirds of 3 steps; the first step follows a pause, and does not hide the drift.
        (make_inputs((0.13, *(0.1,) * 4, *(0.12,) * 5)), ["not-steady"]),
        # Each third of 36 steps is three blocks of 4. 1.16 is 16% above 1.0.
        (step(1.16, 1.16, 1.16, 1.16, 1.0, 1.0, 1.0, 1.0, 1.0, each=4), ["not-steady"]),  # a level that is left
        (step(1.16, 1.10, 1.07, 1.03, 1.02, 1.01, 1.0, 1.0, 1.0, each=4), ["not-steady"]),  # a warm-up that goes on
        (step(1.0, 1.02, 1.04, 1.06, 1.08, 1.10, 1.12, 1.14, 1.16, each=4), ["not-steady"]),  # heat
        (step(*IN_TURNS, each=4), []),  # two levels in turns
        # noisy. Half of the steps at 0.1 - s, half at 0.1 + s: the deviation is s. Times 1.4826 and, of 20 steps,
        # 20 / 19.2 it is a tenth of the median at s = 0.006475.
        (make_inputs((0.1 - 0.00647, 0.1 + 0.00647) * 10), []),
        (make_inputs((0.1 - 0.00648, 0.1 + 0.00648) * 10), ["noisy"]),
        (make_inputs((0.1,) * 15 + (0.9,) + (0.1,) * 4), []),  # a single outlier
        # input-bound
        (make_inputs(samples=make_samples(None)), []),
        (make_inputs(samples=make_samples((0.0099,) * 10)), []),
        (make_inputs(samples=make_samples((0.0101,) * 10)), ["input-bound"]),
        (make_inputs(samples=make_samples((0.099, *(0.0,) * 9))), []),
        # Two workers that deliver together: a long wait in every other step, and none in the median step.
        (make_inputs(samples=make_samples((0.03, 0.0) * 5)), ["input-bound"]),
    ],
)
def test_each_bound_tells_two_measurements_apart(inputs: ValidityInputs, expected: list[Verdict]) -> None:
    assert list_verdicts(inputs) == expected


@pytest.mark.parametrize(
    ("model", "share", "expected"),
    [
        ("vgg16", 1.3, []),  # 3x3 convolutions of stride 1, which Winograd does with up to 3.9 times fewer operations
        ("resnet18", 2.8, ["over-peak"]),  # its stem, shortcuts and convolutions of stride 2 have no such algorithm
        ("vit-b-16", 1.01, ["over-peak"]),
    ],
)
def test_an_honest_winograd_convolution_on_a_t4_is_not_over_peak(
    model: str, share: float, expected: list[Verdict]
) -> None:
    cell = make_cell(model=model, device="gpu", phase="infer", input_size=224, num_classes=1000, batch_size=64)
    peaks = find_gpu_peaks(["Tesla T4"], "fp32")
    seconds = count_step_cost(cell).flops / (share * present(peaks.flops_per_second))
    inputs = make_inputs(
        (seconds,) * 50,
        cell=cell,
        device_kind="gpu",
        gpu_use=(make_gpu_use(),),
        roofline=compute_roofline(cell, seconds, peaks),
    )
    assert list_verdicts(inputs) == expected


FOREIGN = ForeignProcess(pid=17, memory_bytes=None)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (make_gpu_inputs(device_kind="cpu"), "the step's output lives on the cpu, the cell asks for the gpu"),
        (
            make_gpu_inputs(
                roofline=make_roofline(share_of_peak=4.2, flops_per_step=4 * 10**9, least_flops_per_step=10**9)
            ),
            "105% of the device's peak by the fewest operations that known algorithms need (420% as counted), more",
        ),
        *(
            (on_gpu(make_gpu_use(), make_gpu_use(**{field: (FOREIGN,)})), f"for others {when} (process 17)")
            for field, when in (
                ("foreign_processes", "before the start"),
                ("foreign_processes_after", "after the window"),
            )
        ),
        (
            on_gpu(make_slow_gpu((300, 1192, 1192))),
            " ran at 75% of its 1590 MHz, less than 75%, and neither the power cap",
        ),
        (on_gpu(make_slow_gpu((800,) * 3, sample_reasons=())), "explains it (NVML cannot be asked for reasons)"),
        (
            on_gpu(make_gpu_use(power_limit_watts=69.0, default_power_limit_watts=70.0)),
            f"{UUID}: its power limit is 69 W, lowered from the default of 70 W",
        ),
        (
            on_gpu(make_gpu_use(application_clock_mhz=900, default_application_clock_mhz=1000)),
            f"{UUID}: its applications clocks setting is 900 MHz, lowered from the default of 1000 MHz",
        ),
        (
            make_inputs(
                samples=make_samples((0.0,) * 10, warmup_step_seconds=(0.1,) * 63, reached_steady=False, num_queued=32)
            ),
            "the warm-up ended at its time limit, before it had taken twice the 32 batches that the input pipeline can "
            "hold ready (63 steps)",
        ),
    ],
)
def test_a_reason_says_what_was_found_and_the_bound(inputs: ValidityInputs, message: str) -> None:
    (reason,) = judge_validity(inputs).reasons
    assert message in reason.message


H200 = {"max_sm_clock_mhz": 1980, "power_limit_watts": 700.0, "default_power_limit_watts": 700.0}
K80 = {"max_sm_clock_mhz": 875, "application_clock_mhz": 562, "default_application_clock_mhz": 562}


@pytest.mark.parametrize(
    ("inputs", "note"),
    [
        (
            make_inputs(host_peak=make_host_figures(before=1e11, after=8e10)),
            "the host's matrix product ran at 100 GFLOP/s before the window and at 80 after it (-20%): the host's "
            "speed changed",
        ),
        (make_inputs(host_peak=make_host_figures(before=1e11, after=1.09e11)), None),
        (make_inputs(host_peak=make_host_figures(before=None, after=1e11)), None),
        (
            make_inputs(samples=make_samples(None, ((0.100,) * 6 + (0.112,) * 3) * 4, summarized_by="mean")),
            "steps on two levels, 67% near 100 ms and 33% near 112 ms: the mean of the steps counts",
        ),
        # In a bf16 product of 16384 x 16384, with the power cap in force all the time.
        (
            on_gpu(make_slow_gpu((1440, 1446, 1452), ((CAP,),) * 3, **H200, power_watts=(699.0,) * 3)),
            "the GPU ran at 73% of its 1980 MHz: power-limited, software power cap in 100% of the slower samples",
        ),
        # Set to 562 of its 875 MHz when it leaves the factory.
        (
            on_gpu(make_slow_gpu((562,) * 3, ((APPLICATIONS,),) * 3, **K80)),
            "the GPU ran at 64% of its 875 MHz: applications clocks setting of 562 MHz, as the device has it by "
            "default",
        ),
        (
            on_gpu(make_slow_gpu((800,) * 3, utilization=(0.49,) * 3)),
            "the GPU ran at 50% of its 1590 MHz: a kernel was running for 49% of the time only",
        ),
        # 95% of 1590 MHz are 1510.5 MHz.
        (on_gpu(make_slow_gpu((1511,) * 3)), None),
        (on_gpu(make_slow_gpu((1510,) * 3)), "the GPU ran at 95% of its 1590 MHz: NVML gives no reason"),
        # The samples of the pass are at 1590 MHz, 5% of which are 79.5 MHz.
        (on_gpu(make_gpu_use(window=make_window(sm_clock_mhz=(1510, 1511, 1512)))), None),
        (
            on_gpu(make_gpu_use(window=make_window(sm_clock_mhz=(1509, 1510, 1511)))),
            "the GPU ran at 1510 MHz in the timed window, at 1590 MHz in the sampling pass",
        ),
    ],
)
def test_what_a_healthy_measurement_shows_is_noted(inputs: ValidityInputs, note: str | None) -> None:
    validity = judge_validity(inputs)
    assert (validity.verdict, validity.notes) == ("valid", () if note is None else (note,))


NO_PASS: dict[str, Any] = {
    name: () for name in ("sample_seconds", "sm_clock_mhz", "temperature_celsius", "power_watts", "sample_reasons")
}
UNSEEN = f"processes of others on {UUID} cannot be seen here"


def on_cores(**fields: float | None) -> ValidityInputs:
    """Return a cell of 8 threads on 8 of 64 cores."""
    given = {"num_affinity_cores": 8, "num_affinity_physical_cores": 8, "num_machine_cores": 64}
    return make_inputs(cpu_use=make_cpu_use(window_seconds=1.0, **(given | fields)), num_threads=8)


@pytest.mark.parametrize(
    ("inputs", "unchecked"),
    [
        (make_inputs(), ()),
        (make_gpu_inputs(), ()),
        (on_gpu(), ("other users of the GPU not looked for", "clocks of the GPU not observed")),  # no NVML
        (on_gpu(make_gpu_use(**NO_PASS)), ("clocks of the GPU not observed",)),
        (
            make_gpu_inputs(device_kind=None, roofline=make_roofline(peak_flops_per_second=None, share_of_peak=None)),
            ("device of the output not known", "peak of the device not known"),
        ),
        (on_gpu(make_gpu_use(processes_visible=False, foreign_memory_after_bytes=None)), (UNSEEN,)),
        (on_gpu(make_gpu_use(foreign_processes=None)), (UNSEEN,)),
        (
            on_gpu(make_gpu_use(foreign_memory_after_bytes=None)),
            (f"memory of others on {UUID} after the window not known",),
        ),
        (on_gpu(make_gpu_use(memory_used_before_bytes=None)), (f"memory in use on {UUID} before the start not known",)),
        (on_gpu(make_gpu_use(sample_reasons=())), ("what holds the clock of the GPU down not observed",)),
        (
            on_gpu(make_gpu_use(default_power_limit_watts=None)),
            ("power limit of the GPU, or its default one, not known",),
        ),
        (
            on_gpu(make_gpu_use(uuid="MIG-cccc4444")),
            ("a MIG slice shares clocks, heat and power with the other slices of its GPU: none of them observed",),
        ),
        (
            on_cores(other_cores=None, affinity_other_cores=None, pressure_share=0.25),
            ("other processes on the cores not observed, in 25% of the window some thread waited for a core",),
        ),
        (on_cores(sibling_busy_cores=None), ("use of the hyperthreads that share the cell's cores not observed",)),
        (
            # 8 threads with a quota, on 32 cores with 64 hyperthreads of which others use 40: some must have shared.
            on_cores(num_affinity_cores=64, num_affinity_physical_cores=32, affinity_other_cores=40.0),
            (
                "whether the 40.0 cores of others shared a physical core with the cell: its 8 threads are not pinned, "
                "and there are 32 physical cores",
            ),
        ),
        (on_cores(num_affinity_cores=64, num_affinity_physical_cores=32, affinity_other_cores=20.0), ()),
        (
            make_inputs(samples=make_samples((0.0,) * 10).model_copy(update={"data_wait_seconds": None})),
            ("how long steps waited for data not observed",),
        ),
    ],
)
def test_a_valid_measurement_says_what_nobody_saw(inputs: ValidityInputs, unchecked: tuple[str, ...]) -> None:
    assert judge_validity(inputs) == Validity(verdict="valid", reasons=(), unchecked=unchecked)


def test_noise_between_the_steps_widens_the_bound_of_a_drift_but_a_drift_does_not() -> None:
    drifting = tuple(1 + number / 100 for number in range(30))
    # Steps differ by 0.01 of a median of 1.145: far below what widens the bound.
    assert find_drift_bound(drifting) == 0.05
    noisy = (0.9, 1.1) * 15
    # 3 x 1.2533 x sqrt(2) x 1.0483 x 0.2 / 1.0 / sqrt(10) = 0.3525.
    assert find_drift_bound(noisy) == pytest.approx(0.3525, rel=1e-3)


def test_the_spread_is_the_scaled_median_absolute_deviation_over_the_median() -> None:
    # Median 10; deviations 1 0 0 2 90: their median is 1. The factor of five steps is 1.206.
    assert measure_spread((9.0, 10.0, 10.0, 12.0, 100.0)) == pytest.approx(1.206 * 0.14826)


@pytest.mark.parametrize("num_steps", [3, 6, 10, 30])
def test_the_spread_of_few_steps_is_right_on_average(num_steps: int) -> None:
    random = Random(num_steps)
    spreads = [measure_spread([random.gauss(100.0, 5.0) for _ in range(num_steps)]) for _ in range(4000)]
    assert fmean(spreads) == pytest.approx(0.05, rel=0.05)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([0.1, 0.3] * 45, []),  # in turns: they spread by half of their median
        # Nine blocks of ten steps, of 0.1 and 0.3 s in turns: they differ by 0.2 s from one to the next. The deviation
        # is 0.2 / root 2 of a mean of 0.189, 75 %, and that of the mean of nine blocks a third of it.
        ([0.1 + 0.2 * (block % 2) for block in range(9) for _ in range(10)], ["noisy"]),
        # Each block takes 3 % longer than the one before: the deviation is 3 % / root 2 of the mean, three standard
        # errors of the difference of thirds 5 %; the last third takes 18 % longer than the first.
        ([0.1 * (1 + 0.03 * block) for block in range(9) for _ in range(10)], ["not-steady"]),
        ([0.1 * (1 + 0.03 * block) for block in reversed(range(9)) for _ in range(10)], ["not-steady"]),
        ([0.1 * (1 + 0.005 * block) for block in range(9) for _ in range(10)], []),
        ([0.1, 0.5] * 4, []),  # too few to tell
        ([Random(seed).gauss(0.1, 0.01) for seed in range(90)], []),  # independent, with a spread of a tenth
    ],
)
def test_the_rate_of_a_tenant_is_judged_by_nine_blocks_of_steps(steps: list[float], expected: list[Verdict]) -> None:
    inputs = make_inputs(tuple(steps))
    checks = (("noisy", check_rate), ("not-steady", check_rate_drift))
    assert [verdict for verdict, check in checks if list(check(inputs))] == expected


def test_the_page_for_sceptics_has_a_row_for_each_verdict_in_the_order_of_gravity_and_fits_a_screen() -> None:
    lines = (Path(__file__).parents[4] / "docs" / "verdicts.md").read_text().splitlines()
    rows = [line.split("`")[1] for line in lines if line.startswith("| `")]
    assert rows == ["valid", *(verdict for verdict in get_args(Verdict) if verdict != "valid")]
    assert len(lines) <= 50


NOISY = Reason(verdict="noisy", message="the rate over the window has a standard error of 7%, more than 5%")


def test_cores_that_other_tenants_kept_busy_are_no_strangers() -> None:
    # Two threads on two cores, of which this tenant got one and the others 0.95.
    inputs = make_inputs(
        cpu_use=make_cpu_use(window_seconds=1.0, own_cores=1.0, other_cores=0.95, affinity_other_cores=0.95)
    )
    assert judge_validity(inputs).verdict == "contaminated"
    assert judge_tenants(inputs, {}, tenant_cores=0.95).verdict == "valid"
    verdict = judge_tenants(inputs, {}, tenant_cores=0.5)
    assert verdict.verdict == "contaminated"
    assert "others kept 0.4 of 2 cores busy" in verdict.reasons[0].message  # 0.95 less 0.5


def test_each_tenants_reasons_are_told_with_its_number() -> None:
    verdict = judge_tenants(make_inputs(), {0: (), 3: (NOISY,)}, tenant_cores=0.0)
    assert verdict.verdict == "noisy"
    assert [reason.message for reason in verdict.reasons] == [f"tenant 3: {NOISY.message}"]


def test_a_stranger_on_the_gpu_is_told_of_once() -> None:
    gpu = make_gpu_use(foreign_memory_after_bytes=2**30)
    inputs = make_gpu_inputs(gpu_use=(gpu,))
    assert judge_tenant(inputs).verdict == "valid"  # a tenant alone cannot tell who the others are
    assert judge_tenants(inputs, {}, tenant_cores=0.0).verdict == "contaminated"


def test_turns_of_time_slicing_are_no_noise_in_a_tenants_steps() -> None:
    steps = (0.1, 0.3) * 45
    inputs = make_inputs(steps, cell=make_cell())
    assert judge_validity(inputs).verdict == "noisy"
    assert judge_tenant(inputs).verdict == "valid"


def test_memory_before_the_start_may_be_that_of_the_server_of_mps() -> None:
    gpu = make_gpu_use(memory_used_before_bytes=2**30)
    assert judge_validity(make_gpu_inputs(gpu_use=(gpu,))).verdict == "contaminated"
    verdict = judge_validity(make_gpu_inputs(gpu_use=(gpu,), is_under_mps=True))
    assert verdict.verdict == "valid"
    assert f"whose memory was in use on {gpu.uuid} before the start: MPS's server has some" in verdict.unchecked
