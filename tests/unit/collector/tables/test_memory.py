"""collector.tables.cells: a peak that is no cell's own is not shown."""

import pytest

from collector.analysis import analyze_run
from collector.tables.cells import make_memory_table
from factories import make_cell, make_memory, make_result
from measured_runs import Collect

GIB = 2**30


@pytest.mark.parametrize(("peaks", "is_shown"), [((9 * GIB, 9 * GIB), False), ((8 * GIB, 9 * GIB), True)])
def test_the_peak_of_a_cgroup_that_all_cells_share_is_left_out(
    collect: Collect, peaks: tuple[int, int], is_shown: bool
) -> None:
    results = [
        make_result(make_cell(batch_size=number), memory=make_memory(peak_cgroup_bytes=peak))
        for number, peak in enumerate(peaks, start=1)
    ]

    table = make_memory_table(analyze_run(collect(*results, repeats=1)))

    assert table is not None
    assert any(heading.startswith("cgroup, peak") for heading in table.headings) is is_shown


def test_the_peak_of_the_only_cell_is_shown(collect: Collect) -> None:
    result = make_result(memory=make_memory(peak_cgroup_bytes=9 * GIB))

    table = make_memory_table(analyze_run(collect(result, repeats=1)))

    assert table is not None
    assert any(heading.startswith("cgroup, peak") for heading in table.headings)
