"""Write figures of the report as files for papers: as wide as one column or two, text at 8 points."""

import re
from pathlib import Path
from typing import Any, Literal

import altair as alt
import vl_convert

from bench.errors import UserError
from collector.files import replace_file, replace_text
from collector.report.figure import Figure
from collector.report.plots.picture_files import check_addresses

Columns = Literal[1, 2]
WIDTH_MILLIMETRES: dict[Columns, float] = {1: 88.9, 2: 182.0}
"""IEEE's widths of figures: https://ieeeauthorcenter.ieee.org, "Size Requirements for Graphics" (read in November "
"2026)."""
POINTS_PER_MILLIMETRE = 72 / 25.4
FONT_POINTS = 8.0
FONT_PIXELS = 11.0
"""Of the labels as the report draws them; a file is scaled so that they have FONT_POINTS."""
PICTURE_DPI = 300.0
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
"""Fonts with equal widths of letters. A PDF embeds the first, which vl-convert brings along; an SVG names them."""
FORMATS = (".svg", ".png", ".pdf")
_VEGA_LITE = ".".join(alt.SCHEMA_VERSION.split(".")[:2])


def check_figure_path(path: Path) -> None:
    """Raise UserError where the file's ending names no format of a figure, or where figures cannot be drawn."""
    if path.suffix.lower() not in FORMATS:
        raise UserError(f"--output {path}: the ending says the format; it takes {', '.join(FORMATS)}")
    check_addresses(f"--output {path}")


def number_paths(path: Path, number: int) -> list[Path]:
    """Return the paths of so many files: the path itself for one, `name-1.svg`, `name-2.svg`, ... for several."""
    if number == 1:
        return [path]
    return [path.with_name(f"{path.stem}-{index}{path.suffix}") for index in range(1, number + 1)]


def save_figure(figure: Figure, path: Path, *, columns: Columns, has_title: bool) -> None:
    """Write a figure to an .svg, .png or .pdf, on white, with its content in words as the description of an SVG."""
    check_figure_path(path)
    scale = FONT_POINTS / FONT_PIXELS
    spec = size_spec(figure, WIDTH_MILLIMETRES[columns] * POINTS_PER_MILLIMETRE / scale, has_title=has_title)
    kind, width = path.suffix.lower(), WIDTH_MILLIMETRES[columns]
    if kind == ".png":
        data = vl_convert.vegalite_to_png(spec, vl_version=_VEGA_LITE, scale=scale * PICTURE_DPI / 72, ppi=72)
    else:
        svg = vl_convert.vegalite_to_svg(spec, vl_version=_VEGA_LITE)
        if kind == ".svg":
            replace_text(path, set_width(svg, width, "mm"))
            return
        # A page of a PDF is as large as the SVG says without a unit, in points.
        data = vl_convert.svg_to_pdf(set_width(svg, width * POINTS_PER_MILLIMETRE, ""))
    with replace_file(path) as file:
        file.write(data)


def size_spec(figure: Figure, width_pixels: float, *, has_title: bool) -> dict[str, Any]:
    """Return the Vega-Lite document of a figure that is so wide, axes and legends included."""
    config = figure.spec.get("config", {}) | {"font": FONT}
    sized: dict[str, Any] = figure.spec | {
        "width": round(width_pixels),
        "autosize": {"type": "fit-x", "contains": "padding"},
        "background": "white",
        "description": figure.description,
        "config": config,
    }
    if has_title and figure.title and "title" not in sized:
        sized["title"] = {"text": figure.title, "anchor": "start", "fontSize": FONT_PIXELS, "fontWeight": "bold"}
    return sized


def set_width(svg: str, width: float, unit: Literal["mm", ""]) -> str:
    """Scale an SVG to a width in the given unit, its height in proportion; its view box is kept."""
    found = re.search(r'<svg [^>]*?width="([\d.]+)" height="([\d.]+)"', svg)
    if found is None:
        return svg
    height = width * float(found[2]) / float(found[1])
    size = f'width="{found[1]}" height="{found[2]}"'
    return svg.replace(size, f'width="{width:g}{unit}" height="{height:.4g}{unit}"', 1)
