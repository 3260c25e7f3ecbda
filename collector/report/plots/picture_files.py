"""Write a plot to a file of its own: a page that opens offline, or a picture."""

import json
import resource
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from bench.errors import UserError
from collector.files import replace_file, replace_text

PICTURE_WIDTH_PIXELS = 800
MIN_ADDRESS_BYTES = 72 * 2**30
"""V8, which draws, reserves 64 GiB of addresses for its heap and takes hardly any memory of them."""
_VEGA_LITE = ".".join(alt.SCHEMA_VERSION.split(".")[:2])


class _ScriptEncoder(json.JSONEncoder):
    """Writes JSON that can stand in a script element: a name such as `</script>` in a table would end it."""

    def encode(self, o: Any) -> str:
        return super().encode(o).replace("<", "\\u003c")


def check_plot_path(path: Path) -> None:
    """Raise UserError where the file's ending names no format of a plot, or where pictures cannot be drawn."""
    if path.suffix not in (".html", ".png", ".svg"):
        raise UserError(f"--plot {path}: the ending says the format; it takes .html, .png or .svg")
    if path.suffix != ".html":
        check_addresses(f"--plot {path}")


def check_addresses(option: str) -> None:
    """Raise UserError where this process may not reserve what V8 reserves: V8 would end it by SIGTRAP."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY and limit < MIN_ADDRESS_BYTES:
        raise UserError(
            f"{option}: this process may take {limit // 2**20:,} MiB of addresses, and what draws pictures reserves "
            f"{MIN_ADDRESS_BYTES // 2**20:,}; raise the limit (`ulimit -v unlimited`)"
        )


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
