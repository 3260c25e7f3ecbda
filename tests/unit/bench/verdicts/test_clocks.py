"""throttled, by a GPU: what is faulty, lowered or unexplained is; what is limited by power or idle is noted."""

from typing import Any

import pytest

from bench.schema import GpuUse, GpuWindow, Validity, Verdict
from bench.verdicts import judge_validity
from factories import make_gpu_use
from validity_inputs import list_verdicts, make_gpu_inputs

CAP, IDLE, APPLICATIONS = "software power cap", "GPU idle", "applications clocks setting"
UUID = "GPU-5c1e2f6a-0000-0000-0000-000000000001"


def judge(*gpus: GpuUse) -> Validity:
    return judge_validity(make_gpu_inputs(gpu_use=gpus))


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


@pytest.mark.parametrize(
    ("gpu", "expected"),
    [
        # 75% of 1590 MHz is 1192.5 MHz; the first sample alone is no median.
        (make_slow_gpu((300, 1193, 1193)), []),
        (make_slow_gpu((300, 1192, 1192)), ["throttled"]),
        # Most of the slow samples must name the power cap or idleness.
        (make_slow_gpu(SLOW, ((CAP,), (CAP,), (CAP,), (), (), ())), []),
        (make_slow_gpu(SLOW, ((CAP,), (CAP,), (), (), (CAP,), (CAP,))), ["throttled"]),
        (make_slow_gpu(SLOW, ((IDLE,), (IDLE,), (IDLE,), (), (), ())), []),
        (make_slow_gpu(SLOW, (("sync boost",),) * 6), ["throttled"]),
        # Or the work leaves the device idle.
        (make_slow_gpu((800,) * 3, utilization=(0.49,) * 3), []),
        (make_slow_gpu((800,) * 3, utilization=(0.51,) * 3), ["throttled"]),
        # Limits below the default ones, at any clock: 1% of 70 W are 0.7 W.
        (make_gpu_use(power_limit_watts=69.5, default_power_limit_watts=70.0), []),
        (make_gpu_use(power_limit_watts=69.0, default_power_limit_watts=70.0), ["throttled"]),
        (make_gpu_use(power_limit_watts=70.5, default_power_limit_watts=70.0), []),
        (make_gpu_use(application_clock_mhz=900, default_application_clock_mhz=1000), ["throttled"]),
        # Heat and a power brake, at any clock.
        (make_gpu_use(throttle_reasons={CAP: 1.0, APPLICATIONS: 1.0}), []),
        (make_gpu_use(throttle_reasons={"hardware thermal slowdown": 0.05}), []),
        (make_gpu_use(throttle_reasons={"hardware thermal slowdown": 0.06}), ["throttled"]),
        (make_gpu_use(throttle_reasons={"software thermal slowdown": 0.06}), ["throttled"]),
        (make_gpu_use(throttle_reasons={"hardware power brake slowdown": 1.0}), ["throttled"]),
        # Heat in the timed window, though it was gone in the sampling pass.
        (make_gpu_use(window=make_window(held_seconds={"power": 2.0, "thermal": 0.10})), []),
        (make_gpu_use(window=make_window(held_seconds={"power": 2.0, "thermal": 0.11})), ["throttled"]),
    ],
)
def test_a_gpu_is_throttled_that_is_faulty_or_lowered_or_slow_without_a_reason(
    gpu: GpuUse, expected: list[Verdict]
) -> None:
    assert list_verdicts(make_gpu_inputs(gpu_use=(gpu,))) == expected


@pytest.mark.parametrize(
    ("gpu", "message"),
    [
        (
            make_slow_gpu((300, 1192, 1192)),
            " ran at 75% of its 1590 MHz, less than 75%, and neither the power cap",
        ),
        (make_slow_gpu((800,) * 3, sample_reasons=()), "explains it (NVML cannot be asked for reasons)"),
        (
            make_gpu_use(power_limit_watts=69.0, default_power_limit_watts=70.0),
            f"{UUID}: its power limit is 69 W, lowered from the default of 70 W",
        ),
        (
            make_gpu_use(application_clock_mhz=900, default_application_clock_mhz=1000),
            f"{UUID}: its applications clocks setting is 900 MHz, lowered from the default of 1000 MHz",
        ),
    ],
)
def test_the_reason_says_what_held_the_clock_down(gpu: GpuUse, message: str) -> None:
    (reason,) = judge(gpu).reasons
    assert message in reason.message


H200 = {"max_sm_clock_mhz": 1980, "power_limit_watts": 700.0, "default_power_limit_watts": 700.0}
K80 = {"max_sm_clock_mhz": 875, "application_clock_mhz": 562, "default_application_clock_mhz": 562}


@pytest.mark.parametrize(
    ("gpu", "note"),
    [
        # In a bf16 product of 16384 x 16384, with the power cap in force all the time.
        (
            make_slow_gpu((1440, 1446, 1452), ((CAP,),) * 3, **H200, power_watts=(699.0,) * 3),
            "at 73% of its 1980 MHz: power-limited, software power cap in 100% of the slower samples",
        ),
        # Set to 562 of its 875 MHz when it leaves the factory.
        (
            make_slow_gpu((562,) * 3, ((APPLICATIONS,),) * 3, **K80),
            "at 64% of its 875 MHz: applications clocks setting of 562 MHz, as the device has it by default",
        ),
        (
            make_slow_gpu((800,) * 3, utilization=(0.49,) * 3),
            "at 50% of its 1590 MHz: a kernel was running for 49% of the time only",
        ),
        # 95% of 1590 MHz are 1510.5 MHz.
        (make_slow_gpu((1511,) * 3), None),
        (make_slow_gpu((1510,) * 3), "at 95% of its 1590 MHz: NVML gives no reason"),
        # The samples of the pass are at 1590 MHz, 5% of which are 79.5 MHz.
        (make_gpu_use(window=make_window(sm_clock_mhz=(1510, 1511, 1512))), None),
        (
            make_gpu_use(window=make_window(sm_clock_mhz=(1509, 1510, 1511))),
            "at 1510 MHz in the timed window, at 1590 MHz in the sampling pass",
        ),
    ],
)
def test_what_a_healthy_card_does_is_noted(gpu: GpuUse, note: str | None) -> None:
    validity = judge(gpu)
    assert (validity.verdict, validity.notes) == ("valid", () if note is None else (f"the GPU ran {note}",))


@pytest.mark.parametrize(
    ("gpu", "unchecked"),
    [
        (make_gpu_use(sample_reasons=()), "what holds the clock of the GPU down not observed"),
        (
            make_gpu_use(default_power_limit_watts=None, sample_reasons=((),) * 3),
            "power limit of the GPU, or its default one, not known",
        ),
        (
            make_gpu_use(uuid="MIG-cccc4444"),
            "a MIG slice shares clocks, heat and power with the other slices of its GPU: none of them observed",
        ),
    ],
)
def test_what_cannot_be_read_is_not_called_untouched(gpu: GpuUse, unchecked: str) -> None:
    assert judge(gpu) == Validity(verdict="valid", reasons=(), unchecked=(unchecked,))
