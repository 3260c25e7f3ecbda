"""The peak of a host: matrix products around the window beside a calculation, on a host with a clock of its own."""

from itertools import repeat

import pytest

from bench.measure.host_peak import SIZES, find_host_peaks, measure_matrix_product, repeat_undisturbed
from bench.probes.cpu import CpuCounters
from bench.schema import Cell
from factories import make_cell, make_host_figures
from scripted_workload import Clock, ScriptedWorkload


class Host:
    """Builds products that take what they would at its rate, by a clock that these move, and remembers their cells."""

    def __init__(self, clock: Clock, flops_per_second: float) -> None:
        self._clock, self._flops_per_second = clock, flops_per_second
        self.cells: list[Cell] = []

    def build(self, cell: Cell) -> ScriptedWorkload:
        self.cells.append(cell)
        return ScriptedWorkload(self._clock, repeat(2 * cell.input_size**3 / self._flops_per_second))


def test_the_product_is_run_as_the_cell_is(clock: Clock) -> None:
    host = Host(clock, 1e11)
    cell = make_cell(framework="jax", mode="compiled", precision="bf16", batch_size=64)
    rate, _ = measure_matrix_product(cell, host.build)
    assert rate == pytest.approx(1e11)
    product = Cell.model_validate(host.cells[0].model_dump())
    found = (product.model, product.framework, product.mode, product.precision, product.batch_size)
    assert found == ("matmul", "jax", "compiled", "bf16", 1)


def test_products_grow_until_one_would_take_too_long(clock: Clock) -> None:
    slow, middling, fast = (Host(clock, rate) for rate in (5e9, 1e11, 1e13))
    for host in (slow, middling, fast):
        measure_matrix_product(make_cell(), host.build)
    # 2 x 512^3 operations take 54 ms at 5e9, eight times that is more than 0.25 s; 2 x 2048^3 take 0.17 s at 1e11.
    assert [cell.input_size for cell in slow.cells] == [512]
    assert [cell.input_size for cell in middling.cells] == [512, 1024, 2048]
    assert [cell.input_size for cell in fast.cells] == list(SIZES)


@pytest.mark.parametrize(("other_cores", "expected"), [(0.19, 5e9), (0.21, None)])
def test_a_product_beside_a_busy_neighbour_is_measured_again_and_then_not_known(
    clock: Clock, other_cores: float, expected: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # More than a tenth of the two threads have no core from 0.2 on.
    def read() -> CpuCounters:
        return CpuCounters(seconds=clock.now, own_seconds=0.0, busy_seconds={0: other_cores * clock.now, 1: 0.0})

    monkeypatch.setattr("bench.measure.host_peak.read_cpu_counters", read)
    host = Host(clock, 5e9)
    found = repeat_undisturbed(2, lambda: measure_matrix_product(make_cell(), host.build))
    assert found is None if expected is None else found is not None and found[0] == pytest.approx(expected)
    assert len(host.cells) == (2 if expected is None else 1)


@pytest.mark.parametrize(
    ("figures", "expected", "source"),
    [
        ((3e11, 1e11, 2e11), 3e11, "calculated: 2 cores x 32 operations x 2.60 GHz"),
        ((1e11, 3e11, 2e11), 3e11, "measured: the fastest matrix product in pytorch, 2 threads"),
        ((None, None, 2e11), 2e11, "measured: the fastest matrix product in pytorch, 2 threads"),
        ((1e11, None, None), 1e11, "calculated: 2 cores x 32 operations x 2.60 GHz"),
        ((None, None, None), None, "neither calculated nor measured"),
    ],
)
def test_the_peak_is_the_largest_of_what_is_known(
    figures: tuple[float | None, float | None, float | None], expected: float | None, source: str
) -> None:
    peaks = find_host_peaks(make_host_figures(*figures, clock_hertz=2.6e9))
    assert (peaks.flops_per_second, peaks.source) == (expected, source)
    assert (peaks.bytes_per_second, peaks.cache_bytes) == (None, 0)
