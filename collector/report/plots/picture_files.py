"""Write a plot to a file of its own: a page that opens offline, or a picture."""

from pathlib import Path

import altair as alt
import vl_convert

from bench.errors import UserError
from collector.files import replace_file, replace_text

PICTURE_WIDTH_PIXELS = 800
_VEGA_LITE = ".".join(alt.SCHEMA_VERSION.split(".")[:2])


def check_plot_path(path: Path) -> None:
    """Raise UserError where the file's ending names no format that a plot can be written in."""
    if path.suffix not in (".html", ".png", ".svg"):
        raise UserError(f"--plot {path}: the ending says the format; it takes .html, .png or .svg")


def save_plot(chart: alt.LayerChart, path: Path) -> None:
    """Write a chart to an .html file that opens offline, or to a .png or .svg. UserError for another ending."""
    check_plot_path(path)
    if path.suffix == ".html":
        replace_text(path, chart.to_html(inline=True))
        return
    spec = chart.properties(width=PICTURE_WIDTH_PIXELS).to_dict()  # a picture has no container to be as wide as
    if path.suffix == ".svg":
        replace_text(path, vl_convert.vegalite_to_svg(spec, vl_version=_VEGA_LITE))
        return
    picture = vl_convert.vegalite_to_png(spec, vl_version=_VEGA_LITE, scale=2)
    with replace_file(path) as file:
        file.write(picture)
