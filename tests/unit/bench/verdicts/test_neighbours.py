"""contaminated: a measurement just within each bound and one just beyond."""

import pytest

from bench.schema import ForeignProcess, Verdict
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


@pytest.mark.parametrize(
    ("num_threads", "num_cores", "other_cores", "expected"),
    [
        (2, 2, 0.19, []),
        (2, 2, 0.21, ["contaminated"]),
        (2, 16, 14.1, []),  # a pod's share of a large node: the others have their own cores
        (2, 16, 14.3, ["contaminated"]),
        (16, 16, 1.5, []),
        (16, 16, 1.7, ["contaminated"]),
    ],
)
def test_others_on_the_cores_that_a_cpu_cell_needs_contaminate(
    num_threads: int, num_cores: int, other_cores: float, expected: list[Verdict]
) -> None:
    for use in (
        make_cpu_use(1.0, num_affinity_cores=num_cores, affinity_other_cores=other_cores),
        make_cpu_use(1.0, affinity_other_cores=None, num_machine_cores=num_cores, other_cores=other_cores),
    ):
        assert list_verdicts(make_inputs(cpu_use=use, num_threads=num_threads)) == expected


@pytest.mark.parametrize(
    ("own_cores", "throttled_seconds", "expected"),
    [
        (0.5, 0.5, ["throttled"]),  # the quota stopped it half of the time, and others ran on its core meanwhile
        (0.5, 0.0, ["contaminated"]),  # the quota stopped nothing: it was the others
        (0.5, 0.3, ["contaminated", "throttled"]),  # of the half that it did not have, others took 0.2
        (0.5, 0.45, ["throttled"]),  # 0.05 of one thread is within the bound
    ],
)
def test_others_on_a_core_while_the_quota_stops_the_cell_take_nothing_from_it(
    own_cores: float, throttled_seconds: float, expected: list[Verdict]
) -> None:
    others = 2 - own_cores  # both cores are busy all the time
    use = make_cpu_use(1.0, own_cores=own_cores, throttled_seconds=throttled_seconds, affinity_other_cores=others)
    assert list_verdicts(make_inputs(cpu_use=use, num_threads=1)) == expected


@pytest.mark.parametrize(
    ("affinity_other_cores", "sibling_busy_cores", "expected"),
    [
        (0.0, 0.0, []),  # the neighbour keeps to the other 56 cores of 64
        (4.0, 0.0, ["contaminated"]),  # it shares half of the cell's own: before, 8 + 4 of 64 cores looked like room
        (0.0, 0.7, []),
        (0.0, 0.9, ["contaminated"]),  # it is on the hyperthreads of the cell's cores
    ],
)
def test_of_a_cell_with_cores_of_its_own_only_these_and_their_hyperthreads_count(
    affinity_other_cores: float, sibling_busy_cores: float, expected: list[Verdict]
) -> None:
    use = make_cpu_use(
        1.0,
        own_cores=8.0,
        num_machine_cores=64,
        other_cores=56.0 if not affinity_other_cores + sibling_busy_cores else 4.0,
        num_affinity_cores=8,
        num_affinity_physical_cores=8,
        affinity_other_cores=affinity_other_cores,
        num_sibling_cores=8,
        sibling_busy_cores=sibling_busy_cores,
    )
    assert list_verdicts(make_inputs(cpu_use=use, num_threads=8)) == expected


@pytest.mark.parametrize(
    ("num_cores", "own_cores", "other_cores", "expected"),
    [
        (16, 1.1, 13.9, []),  # a neighbour on all cores but two
        (16, 1.1, 14.8, ["contaminated"]),  # a neighbour on all cores
        (16, 15.8, 0.2, []),  # a cell whose data pipeline fills the cores, on a quiet server
        (16, 14.2, 1.8, ["contaminated"]),  # the same, and a build beside it
        (4, 1.0, 2.7, []),  # a workstation where three programs work
        (4, 1.0, 2.9, ["contaminated"]),
        (2, 1.0, 0.95, ["contaminated"]),  # a small cloud machine, whose launching thread spins on one of two cores
    ],
)
def test_others_contaminate_a_gpu_cell_where_they_leave_no_core_idle(
    num_cores: int, own_cores: float, other_cores: float, expected: list[Verdict]
) -> None:
    use = make_cpu_use(1.0, own_cores=own_cores, num_affinity_cores=num_cores, affinity_other_cores=other_cores)
    assert list_verdicts(make_gpu_inputs(cpu_use=use, num_threads=num_cores)) == expected


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
    use = make_cpu_use(1.0, **(given | fields))
    validity = judge_validity(make_inputs(cpu_use=use, num_threads=8))
    assert (validity.verdict, validity.unchecked) == ("valid", (expected,))


def test_others_who_leave_physical_cores_idle_shared_none() -> None:
    use = make_cpu_use(1.0, num_affinity_cores=64, num_affinity_physical_cores=32, affinity_other_cores=20.0)
    assert judge_validity(make_inputs(cpu_use=use, num_threads=8)).unchecked == ()
