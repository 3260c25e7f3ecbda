"""contaminated: a measurement just within each bound and one just beyond."""

import pytest

from bench.schema import CpuUse, ForeignProcess, Verdict
from bench.verdicts import judge_validity
from factories import make_cpu_use, make_gpu_use
from validity_inputs import list_verdicts, make_gpu_inputs, make_inputs


@pytest.mark.parametrize(
    ("field", "when"), [("foreign_processes", "before the start"), ("foreign_processes_after", "after the window")]
)
def test_a_foreign_process_on_a_gpu_contaminates(field: str, when: str) -> None:
    foreign = make_gpu_use(**{field: (ForeignProcess(pid=17, memory_bytes=None),)})
    (reason,) = judge_validity(make_gpu_inputs(gpu_use=(make_gpu_use(), foreign))).reasons
    assert reason.verdict == "contaminated"
    assert reason.message.endswith(f"was computing for others {when} (process 17)")


@pytest.mark.parametrize("field", ["memory_used_before_bytes", "foreign_memory_after_bytes"])
@pytest.mark.parametrize(("mebibytes", "expected"), [(100, []), (101, ["contaminated"])])
def test_memory_of_others_contaminates(field: str, mebibytes: int, expected: list[Verdict]) -> None:
    gpu = make_gpu_use(**{field: mebibytes * 2**20})
    assert list_verdicts(make_gpu_inputs(gpu_use=(gpu,))) == expected


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


@pytest.mark.parametrize(
    ("num_threads", "use", "expected"),
    [
        *(
            (num_threads, use(num_cores, others), expected)
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
        (1, share(2, 1.5, own_cores=0.5, throttled_seconds=0.5), ["throttled"]),
        (1, share(2, 1.5, own_cores=0.5, throttled_seconds=0.0), ["contaminated"]),  # it was the others
        (1, share(2, 1.5, own_cores=0.5, throttled_seconds=0.3), ["contaminated", "throttled"]),  # others took 0.2
        (1, share(2, 1.5, own_cores=0.5, throttled_seconds=0.45), ["throttled"]),  # 0.05 is within the bound
        # Of a cell with cores of its own only these and their hyperthreads count.
        (8, pin(0.0, 0.0), []),
        (8, pin(4.0, 0.0), ["contaminated"]),
        (8, pin(0.0, 0.7), []),
        (8, pin(0.0, 0.9), ["contaminated"]),
    ],
)
def test_others_on_the_cores_that_a_cpu_cell_needs_contaminate(
    num_threads: int, use: CpuUse, expected: list[Verdict]
) -> None:
    assert list_verdicts(make_inputs(cpu_use=use, num_threads=num_threads)) == expected


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        (share(16, 13.9, own_cores=1.1), []),  # a neighbour on all cores but two
        (share(16, 14.8, own_cores=1.1), ["contaminated"]),  # a neighbour on all cores
        (share(16, 0.2, own_cores=15.8), []),  # a cell whose data pipeline fills the cores, on a quiet server
        (share(16, 1.8, own_cores=14.2), ["contaminated"]),  # the same, and a build beside it
        (share(4, 2.7, own_cores=1.0), []),  # a workstation where three programs work
        (share(4, 2.9, own_cores=1.0), ["contaminated"]),
        (share(2, 0.95, own_cores=1.0), ["contaminated"]),  # the launching thread spins on one of two cores
    ],
)
def test_others_contaminate_a_gpu_cell_where_they_leave_no_core_idle(use: CpuUse, expected: list[Verdict]) -> None:
    assert list_verdicts(make_gpu_inputs(cpu_use=use, num_threads=use.num_affinity_cores)) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"processes_visible": False, "foreign_memory_after_bytes": None}, "processes of others on GPU-"),
        ({"foreign_processes": None}, "processes of others on GPU-"),
        ({"foreign_memory_after_bytes": None}, "memory of others on GPU-"),
        ({"memory_used_before_bytes": None}, "memory in use on GPU-"),
    ],
)
def test_who_cannot_be_seen_on_a_gpu_is_unchecked(fields: dict[str, object], expected: str) -> None:
    validity = judge_validity(make_gpu_inputs(gpu_use=(make_gpu_use(sample_reasons=((),) * 3, **fields),)))
    assert validity.verdict == "valid"
    (unchecked,) = validity.unchecked
    assert unchecked.startswith(expected)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"other_cores": None, "affinity_other_cores": None, "pressure_share": 0.25},
            "other processes on the cores not observed, in 25% of the window some thread waited for a core",
        ),
        ({"sibling_busy_cores": None}, "use of the hyperthreads that share the cell's cores not observed"),
        (
            # 8 threads with a quota, on 32 cores with 64 hyperthreads of which others use 40: some must have shared.
            {"num_affinity_cores": 64, "num_affinity_physical_cores": 32, "affinity_other_cores": 40.0},
            "whether the 40.0 cores of others shared a physical core with the cell: its 8 threads are not pinned, and "
            "there are 32 physical cores",
        ),
    ],
)
def test_who_cannot_be_seen_on_the_cores_is_unchecked(fields: dict[str, float | None], expected: str) -> None:
    given = {"num_affinity_cores": 8, "num_affinity_physical_cores": 8, "num_machine_cores": 64}
    use = make_cpu_use(window_seconds=1.0, **(given | fields))
    validity = judge_validity(make_inputs(cpu_use=use, num_threads=8))
    assert (validity.verdict, validity.unchecked) == ("valid", (expected,))


def test_others_who_leave_physical_cores_idle_shared_none() -> None:
    use = make_cpu_use(
        window_seconds=1.0, num_affinity_cores=64, num_affinity_physical_cores=32, affinity_other_cores=20.0
    )
    assert judge_validity(make_inputs(cpu_use=use, num_threads=8)).unchecked == ()
