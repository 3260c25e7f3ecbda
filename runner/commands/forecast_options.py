"""The options that choose the series of a forecast and shape its intervals."""

from pathlib import Path
from typing import Annotated

import typer

TableOption = Annotated[
    str | None,
    typer.Option(
        "--table",
        metavar="FILE|URL",
        help="CSV or Parquet with dates and values: yours, Epoch AI's files as published, or a table of GPUs; "
        "default: the table of GPUs that comes with the tool. See docs/forecast.md.",
    ),
]
SeriesOption = Annotated[
    str | None,
    typer.Option(
        metavar="SERIES",
        help="frontier: the largest value of each year; median: the median of each year; all: every release; records: "
        "record highs. Default: frontier of a table of GPUs, all of another.",
    ),
]
QuantityOption = Annotated[
    str | None,
    typer.Option(metavar="WORD", help="Of a published table: memory, training-compute, parameters, price-per-hour."),
]
ValueOption = Annotated[str | None, typer.Option(metavar="COLUMN", help="The column of the values; default: value.")]
DateOption = Annotated[str | None, typer.Option(metavar="COLUMN", help="The column of the dates; default: date.")]
NameOption = Annotated[str | None, typer.Option(metavar="COLUMN", help="The column of the names; default: name.")]
UnitOption = Annotated[
    str | None, typer.Option(metavar="UNIT", help="The unit of --value; default: the name of its column.")
]
WhereOption = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        metavar="COLUMN[=VALUE]",
        help="Only rows with this value, or with any value, in this column; several must all hold.",
    ),
]
AtLeastOption = Annotated[
    float | None, typer.Option(metavar="AMOUNT", help="Leave out rows with a smaller value, in the series' unit.")
]
SinceOption = Annotated[int | None, typer.Option(metavar="YEAR", help="Leave out what is dated before this year.")]
LevelOption = Annotated[float, typer.Option(metavar="PERCENT", help="Level of the intervals.")]
MaxFactorOption = Annotated[
    float, typer.Option(metavar="FACTOR", help="Refuse a forecast whose interval spans more than this factor.")
]
PlotOption = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="Write the plot to this HTML, PNG or SVG file.")
]
