"""The command `report`: a run as a page, as tables, as one figure, or on the terminal; or the site of a store."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

from bench.errors import UserError
from runner.commands.options import CONSOLE, DEFAULT_STORE, PricesOption, StoredRunArgument, StoreOption, refuse_given

if TYPE_CHECKING:  # the collector takes a second to import: only the commands that need it do
    from bench.store import Store
    from collector.analysis import Analysis
    from collector.prices.table import PriceTable
    from collector.results.collection import Collection

FORMATS = ("html", "csv", "parquet", "latex", "markdown")
# As collector.report.figures has them (a test holds them equal): help must not wait for its import.
FigureName = Literal[
    "frameworks", "modes", "precisions", "speedups", "latencies", "tokens", "roofline", "memory", "scaling", "tenants",
]  # fmt: skip
OF_FIGURES = ("columns", "title")
NOT_WITH = {
    "--site": ("run_id", "output", "formats", "text", "figure", *OF_FIGURES),
    "--figure": ("formats", "text"),
    "--text": ("output", "formats", *OF_FIGURES),
}
"""What is written instead of files by --format, and the options that say nothing of it."""


def _read_folder(text: str) -> Path:
    if not text:  # as of a variable of the shell that is not set: it would be the current folder
        raise UserError("--site: expected a folder; name one, or . for the current one")
    return Path(text)


OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        metavar="FILE|FOLDER",
        help="The folder; for a figure or the HTML file alone, which then ends in .html, the file; "
        "default: reports/RUN_ID.",
    ),
]
FormatOption = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="FORMAT,...",
        help="html: report.html; csv, parquet: tables of all repeats and cells, and in Parquet every raw step; "
        "latex, markdown: the report's tables as tables.tex or tables.md.",
    ),
]
FigureOption = Annotated[
    FigureName | None,
    typer.Option(
        "--figure",
        metavar="NAME",
        help=f"Write this figure instead, for a paper, as .svg, .png or .pdf: {', '.join(get_args(FigureName))}. "
        "Of several panels each has a file: x-1.svg, x-2.svg, ...",
    ),
]
TitleOption = Annotated[
    bool, typer.Option("--title/--no-title", help="Of a figure: whether a file has the name of its panel.")
]
SiteOption = Annotated[
    Path | None,
    typer.Option(
        "--site",
        parser=_read_folder,
        metavar="FOLDER",
        help="Write a folder of static pages instead, for a bucket or GitHub Pages: the reports of all runs and "
        "nights of the store, and a list of them. What has not changed is left.",
    ),
]


def report(
    context: typer.Context,
    run_id: StoredRunArgument = None,
    store: StoreOption = DEFAULT_STORE,
    output: OutputOption = None,
    formats: FormatOption = "html",
    text: Annotated[
        bool, typer.Option("--text", help="Print the grid of the run and its doubts instead, as at the end of a run.")
    ] = False,
    figure: FigureOption = None,
    columns: Annotated[
        int, typer.Option(min=1, max=2, metavar="1|2", help="Of a figure: its width in columns, 88.9 or 182 mm.")
    ] = 1,
    title: TitleOption = True,
    site: SiteOption = None,
    prices: PricesOption = None,
) -> None:
    """Write a run's report: one HTML file that opens offline, or its tables as CSV, Parquet, LaTeX or Markdown.

    With csv or parquet, results that are new since the last time are kept in the store's tables/ for later commands.
    """
    from collector.analysis import analyze_run
    from collector.report.tables import print_summary
    from runner.price_tables import load_prices
    from runner.reporting import analyze_stored, load_history, print_notices
    from runner.stored_runs import load_collection, open_existing_store

    kind = "--site" if site else "--figure" if figure else "--text" if text else None
    if kind is None:
        refuse_given(context, OF_FIGURES, "is for a figure; add --figure NAME")
    else:
        refuse_given(context, NOT_WITH[kind], f"does not go with {kind}; leave one of them out")
    wanted = _read_formats(formats, output)
    if figure is not None and output is not None:
        from collector.report.charts import check_figure_path

        check_figure_path(output)
    opened = open_existing_store(store)
    loaded_prices = load_prices(prices)
    if site is not None:
        from runner.reporting import write_site

        path = write_site(opened, site, loaded_prices, lambda line: CONSOLE.print(line, soft_wrap=True))
        CONSOLE.print(str(path), soft_wrap=True)
        return
    collection = load_collection(opened, run_id, writes_tables=not {"csv", "parquet"}.isdisjoint(wanted))
    if text:
        print_summary(CONSOLE, analyze_stored(opened, collection, loaded_prices))
    elif figure is not None:
        analysis = analyze_run(collection, history=load_history(opened, collection), prices=loaded_prices)
        _write_figure(figure, analysis, output, columns=columns, has_title=title)
    else:
        for path in _write_formats(wanted, opened, collection, loaded_prices, output):
            CONSOLE.print(str(path), soft_wrap=True)
    print_notices(opened, collection, CONSOLE)


def _read_formats(text: str, output: Path | None) -> list[str]:
    found = [word.strip() for word in text.split(",")]
    for word in found:
        if word not in FORMATS:
            raise UserError(f"--format {text}: expected one or more of {', '.join(FORMATS)}, with commas between them")
    if found != ["html"] and output is not None and output.suffix.lower() in (".html", ".htm"):
        raise UserError(f"--output {output}: is one file, and --format {text} writes several; name a folder")
    return found


def _write_formats(
    formats: Sequence[str], store: "Store", collection: "Collection", prices: "PriceTable", output: Path | None
) -> Iterator[Path]:
    from collector.export import write_collection
    from collector.files import replace_text
    from collector.report.page import write_page
    from collector.report.tables import list_tables
    from collector.tables.table import write_latex, write_markdown
    from runner.reporting import analyze_stored, choose_output, choose_report_path

    folder = choose_output(output, collection.run)
    page = choose_report_path(output, collection.run) if "html" in formats else None
    yield from write_collection(collection, folder, formats)
    if set(formats) <= {"csv", "parquet"}:
        return
    analysis = analyze_stored(store, collection, prices)
    if page is not None:
        write_page(analysis, page)
        yield page
    for name, file, write in (("latex", "tables.tex", write_latex), ("markdown", "tables.md", write_markdown)):
        if name in formats:
            replace_text(folder / file, write(list_tables(analysis)))
            yield folder / file


def _write_figure(
    name: FigureName, analysis: "Analysis", output: Path | None, *, columns: int, has_title: bool
) -> None:
    from collector.report.charts import number_paths, save_figure
    from collector.report.figures import PLOTS, draw_plot
    from runner.reporting import choose_output

    run = analysis.collection.run
    groups = draw_plot(name, analysis)
    panels = [figure for group in groups for figure in group.figures]
    if not panels:
        raise UserError(f"--figure {name}: run {run.run_id} has nothing to draw; it needs {PLOTS[name][0]}")
    paths = number_paths(output or choose_output(None, run) / f"{name}.svg", len(panels))
    for figure, path in zip(panels, paths, strict=True):
        save_figure(figure, path, columns=1 if columns == 1 else 2, has_title=has_title)
        CONSOLE.print(": ".join(filter(None, [str(path), figure.title, figure.note])), soft_wrap=True)
    for group in groups:
        for text in filter(None, (group.question, group.caption)):
            CONSOLE.print(text, soft_wrap=True)
