"""Write figures and tables to files: for papers, one column or two wide, in LaTeX and Markdown, and pages."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import altair as alt
import pandas as pd
import vl_convert

from bench.errors import UserError
from collector.files import replace_file, replace_text
from collector.report.charts import Figure
from collector.tables.table import Table

Columns = Literal[1, 2]
WIDTH_MILLIMETRES: dict[Columns, float] = {1: 88.9, 2: 182.0}
"""IEEE's widths of figures: https://ieeeauthorcenter.ieee.org, "Size Requirements for Graphics" (read in November
2026)."""
POINTS_PER_MILLIMETRE = 72 / 25.4
FONT_POINTS = 8.0
FONT_PIXELS = 11.0
"""Of the labels as the report draws them; a file is scaled so that they have FONT_POINTS."""
PICTURE_DPI = 300.0
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
"""Fonts with equal widths of letters. A PDF embeds the first, which vl-convert brings along; an SVG names them."""
FORMATS = (".svg", ".png", ".pdf")
VEGA_LITE = ".".join(alt.SCHEMA_VERSION.split(".")[:2])


def check_figure_path(path: Path, option: str = "--output") -> None:
    if path.suffix.lower() not in FORMATS:
        raise UserError(f"{option} {path}: the ending says the format; it takes {', '.join(FORMATS)}")


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
        data = vl_convert.vegalite_to_png(spec, vl_version=VEGA_LITE, scale=scale * PICTURE_DPI / 72, ppi=72)
    else:
        svg = vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE)
        if kind == ".svg":
            replace_text(path, set_width(svg, width, "mm"))
            return
        # A page of a PDF is as large as the SVG says without a unit, in points.
        data = vl_convert.svg_to_pdf(set_width(svg, width * POINTS_PER_MILLIMETRE, ""))
    with replace_file(path) as file:
        file.write(data)


def size_spec(figure: Figure, width_pixels: float, *, has_title: bool) -> dict[str, Any]:
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


LATEX_PREAMBLE = (
    "% Needs \\usepackage{booktabs}, and with pdfLaTeX \\usepackage[T1]{fontenc} and \\usepackage{textcomp}.\n"
    "% Units stand in the headings; numbers are text, so siunitx is not needed.\n"
)


def write_latex(tables: Iterable[Table]) -> str:
    return LATEX_PREAMBLE + "".join(f"\n{_write_table(table)}" for table in tables)


def _write_table(table: Table) -> str:
    rows = [[_flatten(text) for text in row] for row in table.format_rows()]
    caption = _flatten(". ".join(filter(None, [table.caption, table.remark])))
    return pd.DataFrame(rows, columns=table.headings).to_latex(
        index=False,
        escape=True,
        caption=re.sub(r"([%&$#_{}])", r"\\\1", caption),
        label=f"tab:{re.sub('[^a-z0-9]+', '-', table.caption.lower()).strip('-')}",
        column_format="".join("r" if column.align == "right" else "l" for column in table.columns),
    )


def _flatten(text: str) -> str:
    """Return the text on one line; control characters are left out."""
    return "".join(filter(str.isprintable, " ".join(text.split())))
