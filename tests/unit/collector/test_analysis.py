"""What several parts of a report show of one run is computed once for it, and for each run by itself."""

import sys
from collections import Counter
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType
from typing import Any

from answered_runs import GPU_PYTORCH, GPU_TENSORFLOW, make_spread
from collector.analysis import Analysis, analyze_run
from collector.answers.fastest import rank_programs
from collector.answers.planned import list_combinations
from collector.claims.page import find_claim_results
from collector.report.html import make_page
from collector.report.page_cells import list_page_cells
from factories import make_cell
from measured_runs import Collect

SHARED = (find_claim_results, rank_programs, list_page_cells, list_combinations)


def count_calls(functions: tuple[Callable[..., Any], ...], work: Callable[[], object]) -> dict[str, int]:
    """Return how often each of `functions` is entered while `work` runs in this thread."""
    names: dict[CodeType, str] = {
        function.__code__: function.__name__ for function in functions if isinstance(function, FunctionType)
    }
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code in names:
            calls[names[frame.f_code]] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return dict(calls)


def test_a_page_computes_what_its_parts_share_once(collect: Collect) -> None:
    cell = make_cell(device="gpu", phase="infer", model="vgg16", input_size=224)
    graph = cell.model_copy(update={"framework": "tensorflow", "mode": "graph"})
    analysis = analyze_run(collect(*make_spread(cell, 0.1, GPU_PYTORCH), *make_spread(graph, 0.09, GPU_TENSORFLOW)))
    pages: list[str] = []
    assert count_calls(SHARED, lambda: pages.append(make_page(analysis))) == {
        function.__name__: 1 for function in SHARED
    }
    assert 'id="claim-latency"' in pages[0]
    assert "The fastest for each kind of work" in pages[0]


def test_what_is_derived_belongs_to_its_run(collect: Collect) -> None:
    def count_cells(analysis: Analysis) -> int:
        return len(analysis.summary)

    one = analyze_run(collect(*make_spread(make_cell(), 0.1)))
    two = analyze_run(collect(*make_spread(make_cell(), 0.1), *make_spread(make_cell(batch_size=2), 0.1)))
    assert [one.derive(count_cells), two.derive(count_cells), one.derive(count_cells)] == [1, 2, 1]
