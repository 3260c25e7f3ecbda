"""contaminated: a measurement just within each bound and one just beyond."""

import pytest

from bench.schema import ForeignProcess, Verdict
from bench.validity import judge_validity
from factories import make_cpu_use, make_gpu_use
from validity_inputs import list_verdicts, make_gpu_inputs, make_inputs


def test_a_foreign_process_on_a_gpu_contaminates() -> None:
    foreign = make_gpu_use(foreign_processes=(ForeignProcess(pid=17, memory_bytes=None),))
    validity = judge_validity(make_gpu_inputs(gpu_use=(make_gpu_use(), foreign)))
    assert validity.verdict == "contaminated"
    assert validity.reasons[0].message.endswith("was computing for others before the start (process 17)")


@pytest.mark.parametrize(("mebibytes", "expected"), [(100, []), (101, ["contaminated"])])
def test_memory_in_use_before_the_start_contaminates(mebibytes: int, expected: list[Verdict]) -> None:
    gpu = make_gpu_use(memory_used_before_bytes=mebibytes * 2**20)
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
    use = make_cpu_use(1.0, num_machine_cores=num_cores, other_cores=other_cores)
    assert list_verdicts(make_inputs(cpu_use=use, num_threads=num_threads)) == expected


@pytest.mark.parametrize(
    ("num_cores", "own_cores", "other_cores", "expected"),
    [
        (16, 1.1, 0.2, []),  # a server with nobody else on it
        (16, 1.1, 13.9, []),  # a neighbour on all cores but two
        (16, 1.1, 14.8, ["contaminated"]),  # a neighbour on all cores
        (16, 15.8, 0.2, []),  # a cell whose data pipeline fills the cores, on a quiet server
        (16, 14.2, 1.8, ["contaminated"]),  # the same, and a build beside it
        (4, 1.0, 2.7, []),  # a workstation where three programs work
        (4, 1.0, 2.9, ["contaminated"]),
        (2, 1.0, 0.1, []),  # a small cloud machine, whose launching thread spins on one of two cores
        (2, 1.0, 0.95, ["contaminated"]),
    ],
)
def test_others_contaminate_a_gpu_cell_where_they_leave_no_core_idle(
    num_cores: int, own_cores: float, other_cores: float, expected: list[Verdict]
) -> None:
    use = make_cpu_use(1.0, own_cores=own_cores, num_machine_cores=num_cores, other_cores=other_cores)
    assert list_verdicts(make_gpu_inputs(cpu_use=use, num_threads=num_cores)) == expected


def test_a_neighbour_on_all_cores_of_a_gpu_cell_is_told_in_numbers() -> None:
    use = make_cpu_use(1.0, own_cores=1.1, num_machine_cores=16, other_cores=14.8)
    (reason,) = judge_validity(make_gpu_inputs(cpu_use=use)).reasons
    assert reason.message.startswith("others kept 14.8 of 16 cores busy: 1% of the machine were idle, less than 5%")
