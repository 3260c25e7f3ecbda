"""The command `plot`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bench.errors import UserError
from runner.commands.options import (
    CONSOLE,
    DEFAULT_STORE,
    PricesOption,
    StoredRunArgument,
    StoreOption,
)

if TYPE_CHECKING:  # the collector takes a second to import: only the commands that need it do
    from collector.analysis import Analysis
    from collector.report.figure import Figure, FigureGroup

# As collector.report.question_figures has them (a test holds them equal): help must not wait for its import.
PlotName = Literal[
    "frameworks", "modes", "precisions", "speedups", "latencies", "roofline", "memory", "costs", "scaling", "tenants",
    "nights",
]  # fmt: skip
NameArgument = Annotated[PlotName, typer.Argument(metavar="NAME", help=f"Which plot: {', '.join(PlotName.__args__)}.")]
PlotFileOption = Annotated[
    Path,
    typer.Option(
        "--output",
        metavar="FILE",
        help="The file, .svg, .png or .pdf. Of several panels each has a file: x-1.svg, x-2.svg, ...",
    ),
]
ColumnsOption = Annotated[
    int, typer.Option(min=1, max=2, metavar="1|2", help="Width in columns of a paper: 88.9 or 182 mm.")
]
PanelOption = Annotated[int | None, typer.Option(min=1, metavar="NUMBER", help="Write this panel only.")]
TitleOption = Annotated[bool, typer.Option("--title/--no-title", help="Whether a file has the name of its panel.")]


def plot(
    name: NameArgument,
    run_id: StoredRunArgument = None,
    store: StoreOption = DEFAULT_STORE,
    output: PlotFileOption = Path("plot.svg"),
    columns: ColumnsOption = 1,
    panel: PanelOption = None,
    title: TitleOption = True,
    prices: PricesOption = None,
) -> None:
    """Write a plot of the report to a file for a paper: SVG, PDF with its fonts, or PNG at 300 dpi."""
    from collector.report.figure import list_panels
    from collector.report.paper import check_figure_path, number_paths, save_figure
    from collector.report.question_figures import PLOTS, draw_plot
    from runner.reporting.stored_runs import print_skipped

    check_figure_path(output)
    analysis = _analyze(run_id, store, prices)
    groups = draw_plot(name, analysis)
    figures = [panel for group in groups for figure in group.figures for panel in list_panels(figure)]
    if not figures:
        run = analysis.collection.run.run_id
        raise UserError(f"plot {name}: run {run} has nothing to draw; it needs {PLOTS[name].needs}")
    chosen = _choose_panel(figures, panel)
    paths = number_paths(output, len(chosen))
    for figure, path in zip(chosen, paths, strict=True):
        save_figure(figure, path, columns=1 if columns == 1 else 2, has_title=title)
    _print_figures(groups, chosen, paths)
    print_skipped(analysis.collection, CONSOLE)


def _print_figures(groups: "Sequence[FigureGroup]", figures: "Sequence[Figure]", paths: Sequence[Path]) -> None:
    """Print which panel is in which file, and what stands above and below the plots in the report."""
    for figure, path in zip(figures, paths, strict=True):
        CONSOLE.print(": ".join(filter(None, [str(path), figure.title, figure.note])), soft_wrap=True)
    for group in groups:
        for text in (group.question, group.caption, group.omitted):
            if text:
                CONSOLE.print(text, soft_wrap=True)


def _choose_panel(figures: "list[Figure]", panel: int | None) -> "list[Figure]":
    if panel is None:
        return figures
    if panel > len(figures):
        named = "; ".join(f"{number} {figure.title}" for number, figure in enumerate(figures, start=1))
        raise UserError(f"--panel {panel}: there are {len(figures)} panels: {named}")
    return [figures[panel - 1]]


def _analyze(
    run_id: str | None,
    store: str,
    prices: Path | None,
) -> "Analysis":
    from collector.analysis import analyze_run
    from runner.price_tables.loading import load_prices
    from runner.reporting.stored_runs import load_collection, load_history, open_existing_store

    opened = open_existing_store(store)
    collection = load_collection(opened, run_id)
    return analyze_run(
        collection,
        history=load_history(opened, collection),
        prices=load_prices(prices),
    )
