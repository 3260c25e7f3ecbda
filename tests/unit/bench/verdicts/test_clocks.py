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


def make_slow_gpu(clocks: tuple[int, ...], reasons: tuple[tuple[str, ...], ...], **fields: Any) -> GpuUse:
    """Return a GPU of at most 1590 MHz with these samples."""
    names = {name for given in reasons for name in given}
    shares = {name: sum(name in given for given in reasons) / len(reasons) for name in sorted(names)}
    series = {"sample_seconds": tuple(map(float, range(len(clocks)))), "sm_clock_mhz": clocks}
    flat = {"temperature_celsius": (50,) * len(clocks), "power_watts": (60.0,) * len(clocks)}
    return make_gpu_use(**(series | flat | {"sample_reasons": reasons, "throttle_reasons": shares} | fields))


def make_window(**overrides: Any) -> GpuWindow:
    """Return two seconds at the highest clock, in which nothing held it down."""
    fields: dict[str, Any] = {
        "seconds": 2.0,
        "sm_clock_before_mhz": 1590,
        "sm_clock_after_mhz": 1590,
        "sm_clock_mhz": (),
        "energy_joules": 100.0,
        "held_seconds": {},
    }
    return GpuWindow(**(fields | overrides))


# A low clock


@pytest.mark.parametrize(("clock", "expected"), [(1193, []), (1192, ["throttled"])])
def test_a_clock_below_three_quarters_of_the_highest_needs_an_explanation(clock: int, expected: list[Verdict]) -> None:
    # 75% of 1590 MHz is 1192.5 MHz; the first sample alone is no median.
    validity = judge(make_slow_gpu((300, clock, clock), ((), (), ())))
    assert [reason.verdict for reason in validity.reasons] == expected
    assert all("ran at 75% of its 1590 MHz" in reason.message for reason in validity.reasons)
    assert all("NVML gives no reason" in reason.message for reason in validity.reasons)


def test_a_healthy_card_at_its_power_limit_is_valid_and_says_so() -> None:
    """An H200 in a bf16 product of 16384 x 16384: 73 % of 1980 MHz, with the power cap in force all the time."""
    h200 = make_slow_gpu(
        (1440, 1446, 1452),
        ((CAP,),) * 3,
        max_sm_clock_mhz=1980,
        power_limit_watts=700.0,
        default_power_limit_watts=700.0,
        power_watts=(699.0,) * 3,
    )
    note = "the GPU ran at 73% of its 1980 MHz: power-limited, software power cap in 100% of the slower samples"
    assert judge(h200) == Validity(verdict="valid", reasons=(), notes=(note,))


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        # Slow are the four samples at 800 MHz; the two at 1590 MHz do not count.
        (((CAP,), (CAP,), (CAP,), (), (), ()), []),
        (((CAP,), (CAP,), (), (), (CAP,), (CAP,)), ["throttled"]),
        (((IDLE,), (IDLE,), (IDLE,), (), (), ()), []),
        ((("sync boost",),) * 6, ["throttled"]),
        ((("display clock setting",),) * 6, ["throttled"]),
    ],
)
def test_most_of_the_slow_samples_must_name_the_power_cap_or_idleness(
    reasons: tuple[tuple[str, ...], ...], expected: list[Verdict]
) -> None:
    gpu = make_slow_gpu((800, 800, 800, 800, 1590, 1590), reasons)
    assert list_verdicts(make_gpu_inputs(gpu_use=(gpu,))) == expected


@pytest.mark.parametrize(("utilization", "expected"), [(0.49, []), (0.51, ["throttled"])])
def test_work_that_leaves_the_device_idle_explains_a_low_clock(utilization: float, expected: list[Verdict]) -> None:
    validity = judge(make_slow_gpu((800,) * 3, ((),) * 3, utilization=(utilization,) * 3))
    assert [reason.verdict for reason in validity.reasons] == expected
    if not expected:
        assert validity.notes == ("the GPU ran at 50% of its 1590 MHz: a kernel was running for 49% of the time only",)


@pytest.mark.parametrize(("clock", "is_noted"), [(1511, False), (1510, True)])
def test_a_clock_that_is_a_twentieth_below_the_highest_is_noted(clock: int, is_noted: bool) -> None:
    # 95% of 1590 MHz are 1510.5 MHz.
    notes = judge(make_slow_gpu((clock,) * 3, ((),) * 3)).notes
    assert notes == (("the GPU ran at 95% of its 1590 MHz: NVML gives no reason",) if is_noted else ())


# Lowered limits


@pytest.mark.parametrize(("limit", "expected"), [(69.5, []), (69.0, ["throttled"]), (70.5, [])])
def test_a_power_limit_below_the_default_one_throttles_at_any_clock(limit: float, expected: list[Verdict]) -> None:
    # 1% of 70 W are 0.7 W.
    validity = judge(make_gpu_use(power_limit_watts=limit, default_power_limit_watts=70.0))
    assert [reason.verdict for reason in validity.reasons] == expected
    if expected:
        assert validity.reasons[0].message == f"{UUID}: its power limit is 69 W, lowered from the default of 70 W"


def test_applications_clocks_that_somebody_lowered_are_a_lowered_limit() -> None:
    gpu = make_gpu_use(application_clock_mhz=900, default_application_clock_mhz=1000)
    (reason,) = judge(gpu).reasons
    expected = f"{UUID}: its applications clocks setting is 900 MHz, lowered from the default of 1000 MHz"
    assert (reason.verdict, reason.message) == ("throttled", expected)


def test_applications_clocks_that_the_device_has_by_default_explain_a_low_clock() -> None:
    """A Tesla K80 is set to 562 of its 875 MHz when it leaves the factory."""
    clocks = {"max_sm_clock_mhz": 875, "application_clock_mhz": 562, "default_application_clock_mhz": 562}
    validity = judge(make_slow_gpu((562,) * 3, ((APPLICATIONS,),) * 3, **clocks))
    note = "64% of its 875 MHz: applications clocks setting of 562 MHz, as the device has it by default"
    assert (validity.verdict, validity.notes) == ("valid", (f"the GPU ran at {note}",))


# Faults


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        ({CAP: 1.0, APPLICATIONS: 1.0}, []),
        ({"hardware thermal slowdown": 0.05}, []),
        ({"hardware thermal slowdown": 0.06}, ["throttled"]),
        ({"software thermal slowdown": 0.06}, ["throttled"]),
        ({"hardware power brake slowdown": 1.0, "hardware slowdown": 1.0}, ["throttled", "throttled"]),
    ],
)
def test_heat_and_a_power_brake_throttle_at_any_clock(reasons: dict[str, float], expected: list[Verdict]) -> None:
    assert list_verdicts(make_gpu_inputs(gpu_use=(make_gpu_use(throttle_reasons=reasons),))) == expected


@pytest.mark.parametrize(("held", "expected"), [(0.10, []), (0.11, ["throttled"])])
def test_heat_in_the_timed_window_throttles_though_it_was_gone_in_the_sampling_pass(
    held: float, expected: list[Verdict]
) -> None:
    window = make_window(held_seconds={"power": 2.0, "thermal": held})
    assert list_verdicts(make_gpu_inputs(gpu_use=(make_gpu_use(window=window),))) == expected


@pytest.mark.parametrize(("clocks", "is_noted"), [((1510, 1511, 1512), False), ((1509, 1510, 1511), True)])
def test_a_sampling_pass_at_other_clocks_than_the_timed_window_is_noted(
    clocks: tuple[int, ...], is_noted: bool
) -> None:
    # The samples of the pass are at 1590 MHz, 5% of which are 79.5 MHz.
    expected = "the GPU ran at 1510 MHz in the timed window, at 1590 MHz in the sampling pass"
    assert judge(make_gpu_use(window=make_window(sm_clock_mhz=clocks))).notes == ((expected,) if is_noted else ())


# What was not seen


def test_reasons_that_cannot_be_read_are_not_called_none() -> None:
    validity = judge(make_gpu_use(sample_reasons=()))
    assert (validity.verdict, validity.unchecked) == ("valid", ("what holds the clock of the GPU down not observed",))
    (reason,) = judge(make_gpu_use(sm_clock_mhz=(800,) * 3, sample_reasons=())).reasons
    assert (reason.verdict, "NVML cannot be asked for reasons" in reason.message) == ("throttled", True)


def test_limits_that_cannot_be_read_are_not_called_untouched() -> None:
    validity = judge(make_gpu_use(default_power_limit_watts=None, sample_reasons=((),) * 3))
    expected = ("power limit of the GPU, or its default one, not known",)
    assert (validity.verdict, validity.unchecked) == ("valid", expected)


def test_of_a_slice_no_clock_is_judged_and_the_verdict_says_so() -> None:
    mig_slice = make_gpu_use(
        uuid="MIG-cccc4444",
        max_sm_clock_mhz=None,
        power_limit_watts=None,
        default_power_limit_watts=None,
        sm_clock_mhz=(),
        temperature_celsius=(),
        power_watts=(),
    )
    expected = ("a MIG slice shares clocks, heat and power with the other slices of its GPU: none of them observed",)
    assert judge(mig_slice) == Validity(verdict="valid", reasons=(), unchecked=expected)
