"""Write a plot to a file of its own: a page that opens offline, or a picture."""

import json
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from bench.errors import UserError
from collector.files import replace_file, replace_text

PICTURE_WIDTH_PIXELS = 800
_VEGA_LITE = ".".join(alt.SCHEMA_VERSION.split(".")[:2])


class _ScriptEncoder(json.JSONEncoder):
    """Writes JSON that can stand in a script element: a name such as `</script>` in a table would end it."""

    def encode(self, o: Any) -> str:
        return super().encode(o).replace("<", "\\u003c")


def check_plot_path(path: Path) -> None:
    """Raise UserError where the file's ending names no format that a plot can be written in."""
    if path.suffix not in (".html", ".png", ".svg"):
        raise UserError(f"--plot {path}: the ending says the format; it takes .html, .png or .svg")


def save_plot(chart: alt.LayerChart, path: Path) -> None:
    """Write a chart to an .html file that opens offline, or to a .png or .svg. UserError for another ending."""
    check_plot_path(path)
    if path.suffix == ".html":
        replace_text(path, chart.to_html(inline=True, json_kwds={"cls": _ScriptEncoder}))
        return
    spec = chart.properties(width=PICTURE_WIDTH_PIXELS).to_dict()  # a picture has no container to be as wide as
    if path.suffix == ".svg":
        replace_text(path, vl_convert.vegalite_to_svg(spec, vl_version=_VEGA_LITE))
        return
    picture = vl_convert.vegalite_to_png(spec, vl_version=_VEGA_LITE, scale=2)
    with replace_file(path) as file:
        file.write(picture)
