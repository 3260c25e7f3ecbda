"""The plots of the report by the names that `benchmatrix plot` takes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from collector.analysis import Analysis
from collector.comparisons import FRAMEWORKS, MODES, PRECISIONS
from collector.report.figure import FigureGroup
from collector.report.question_figures import (
    show_changes,
    show_comparisons,
    show_costs,
    show_latencies,
    show_memory,
    show_roofline,
    show_scaling,
    show_sharing,
    show_speedups,
)


@dataclass(frozen=True, kw_only=True)
class NamedPlot:
    """A plot of the report, and what it needs."""

    needs: str
    """What a run has to have for there to be something to draw."""
    show: Callable[[Analysis], tuple[FigureGroup, ...]]


def _show_comparison(name: str) -> Callable[[Analysis], tuple[FigureGroup, ...]]:
    return lambda analysis: show_comparisons({name: analysis.comparisons[name]})


PLOTS: Mapping[str, NamedPlot] = {
    "frameworks": NamedPlot(needs="pairs of frameworks with an interval", show=_show_comparison(FRAMEWORKS.name)),
    "modes": NamedPlot(needs="pairs of modes with an interval", show=_show_comparison(MODES.name)),
    "precisions": NamedPlot(needs="pairs of precisions with an interval", show=_show_comparison(PRECISIONS.name)),
    "speedups": NamedPlot(
        needs="the same cells on a GPU and a CPU, with intervals", show=lambda analysis: (show_speedups(analysis),)
    ),
    "latencies": NamedPlot(needs="cells at two batches or more", show=lambda analysis: (show_latencies(analysis),)),
    "roofline": NamedPlot(needs="cells with a FLOP count", show=lambda analysis: (show_roofline(analysis),)),
    "memory": NamedPlot(
        needs="GPU cells whose framework says its memory", show=lambda analysis: (show_memory(analysis),)
    ),
    "costs": NamedPlot(needs="cells with a price", show=lambda analysis: (show_costs(analysis),)),
    "scaling": NamedPlot(
        needs="the same cells on one GPU and on several", show=lambda analysis: (show_scaling(analysis),)
    ),
    "tenants": NamedPlot(
        needs="cells with tenants, and the same cells alone", show=lambda analysis: show_sharing(analysis.sharing)
    ),
    "nights": NamedPlot(
        needs="changes that `benchmatrix watch` recorded", show=lambda analysis: (show_changes(analysis),)
    ),
}


def draw_plot(name: str, analysis: Analysis) -> tuple[FigureGroup, ...]:
    """Return the groups of figures of a plot; those that have something to draw."""
    return tuple(group for group in PLOTS[name].show(analysis) if group.figures)
