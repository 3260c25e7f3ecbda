"""Write the report of a run: one self-contained HTML file that opens offline.

The page's content security policy forbids every request and every script but the two that are inlined here, known by
their hashes: text from results can neither load nor run anything, whatever it says. Templates escape every text, the
page's script writes texts as text nodes alone, and what it draws from is base64.
"""

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from importlib import resources
from operator import itemgetter
from pathlib import Path

import altair as alt
import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from collector.analysis import Analysis, analyze_run
from collector.answers.measured import describe_measured
from collector.facts import describe_signatures, describe_windows, list_facts, state_outcome
from collector.files import replace_text
from collector.forecast.fit import Forecast
from collector.nights.records import ChangeHistory
from collector.prices.table import PriceTable
from collector.report.figure import Figure, pack_figure, place_groups
from collector.report.packing import Packed, Pools, compress_document, make_pools
from collector.report.page_cells import list_page_cells, pack_cells
from collector.report.page_details import pack_details
from collector.report.page_pairs import list_judged_tables
from collector.report.page_steps import pack_steps
from collector.report.sections import build_sections, list_shown_tables
from collector.report.series_figures import make_detail_figures
from collector.report.table_html import read_tables
from collector.report.trust import sum_up_trust
from collector.results.collection import Collection
from collector.visible_text import replace_steering

TEMPLATES = resources.files("collector.report") / "templates"
SCRIPTS = (
    *(
        "elements",
        "packed",
        "statistics",
        "digits",
        "words",
        "comparability",
        "state",
        "printing",
        "virtual",
        "filters",
        "columns",
        "heatmap",
    ),
    *(
        "sides",
        "documents",
        "vega",
        "protocol",
        "details",
        "panels",
        "plots",
        "step_plots",
        "sorting",
        "tables",
        "page",
    ),
)
"""The files of templates/scripts in the order in which they are joined: what is used stands before what uses it."""

HEADLINE = ("GPU", "driver", "CPU", "frameworks", "measured")
"""The facts that stand beside each other at the top; the others unfold."""


def render_report(
    collection: Collection,
    *,
    forecast: Forecast | None,
    path: Path,
    include_invalid: bool = False,
    moderated: bool = False,
    history: ChangeHistory | None = None,
    prices: PriceTable | None = None,
) -> None:
    """Write the report to `path`, whose directory is made if absent. UserError where it cannot be written.

    `include_invalid`: rows without a valid repeat are compared too. `moderated`: as in `summarize_cells`.
    `history`: the changes that were seen in the nights of the run's matrix. `prices`: what machines cost; None for a
    report without costs.
    """
    analysis = analyze_run(
        collection,
        forecast=forecast,
        include_invalid=include_invalid,
        moderated=moderated,
        history=history,
        prices=prices,
    )
    write_page(analysis, path)


def write_page(analysis: Analysis, path: Path) -> None:
    """Write the report of an analysed run to `path`, whose directory is made if absent; UserError if it cannot be."""
    replace_text(path, make_page(analysis))


def make_page(analysis: Analysis, *, links: Mapping[str, str] | None = None) -> str:
    """Return the report as HTML.

    `links`: of a page in a site, the address of the list of runs as `home`, and of the folder with the details of the
    cells as `details`.
    """
    collection, scripts = analysis.collection, {"bundle": load_bundle(), "page": load_scripts()}
    facts = [*list_facts(collection), *filter(itemgetter(1), [("timed", describe_windows(collection))])]
    if collection.signatures is None:
        facts.append(("signatures", describe_signatures(collection)))
    cells = pack_cells(analysis.derive(list_page_cells))
    pools = make_pools(cells)
    return (
        open_templates(pools)
        .get_template("report.html.j2")
        .render(
            run=collection.run,
            outcome=state_outcome(collection),
            facts=facts,
            measured=describe_measured(analysis),
            headline=_join_facts(dict(facts)),
            trust=sum_up_trust(analysis),
            sections=build_sections(analysis, pools),
            policy=state_policy(scripts.values()),
            style=Markup(load_style()),
            scripts={name: Markup(text) for name, text in scripts.items()},
            data=_pack_data(analysis, cells, pools, links or {}),
            home=(links or {}).get("home", ""),
        )
    )


def _pack_data(analysis: Analysis, cells: Packed, pools: Pools, links: Mapping[str, str]) -> dict[str, str]:
    """Return what the page's script draws from, compressed, by the names that it knows."""
    collection = analysis.collection
    own = {"include_invalid": analysis.include_invalid, "details": links.get("details", "")}
    documents = {
        "cells": cells | own | {"tables": list_judged_tables(analysis)},
        "details": pack_details(collection, pools),
        "steps": pack_steps(collection, pools),
        "detail-figures": {name: pack_figure(figure) for name, figure in make_detail_figures().items()},
    }
    return {name: compress_document(document) for name, document in documents.items()}


def _join_facts(facts: Mapping[str, str]) -> str:
    """Return on what and when was measured, in one line."""
    named = {name: f"driver {facts[name]}" if name == "driver" else facts[name] for name in HEADLINE if name in facts}
    return " · ".join(named.values())


def list_stale_tables(analysis: Analysis, html: str) -> list[str]:
    """Return the captions of the tables of the run that a report shows otherwise, or not at all.

    `html`: the text of the report. Its plots are of the same numbers, and take far longer to make.
    """
    shown = read_tables(html)
    return [
        table.caption
        for table in list_shown_tables(analysis)
        if shown.get(table.caption) != [tuple(table.headings), *table.format_rows()]
        or any(str(escape(text)) not in html for text in (table.remark, table.alike))
    ]


def load_scripts() -> str:
    """Return the page's own script: the files of SCRIPTS, one after the other."""
    return "\n".join((TEMPLATES / "scripts" / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS)


def load_style() -> str:
    """Return the style of all pages."""
    return (TEMPLATES / "report.css").read_text(encoding="utf-8")


def load_bundle() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script that can stand inside a script element."""
    return _bundle().replace("</script", "<\\/script")


def state_policy(scripts: Iterable[str]) -> str:
    """Return a content security policy that forbids every request and every script but `scripts`."""
    hashes = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    sources = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {sources}"


@cache
def _bundle() -> str:
    version = ".".join(alt.SCHEMA_VERSION.split(".")[:2])
    bundle: str = vl_convert.javascript_bundle(snippet="window.vegaEmbed = vegaEmbed;", vl_version=version)
    return bundle


def open_templates(pools: Pools | None = None) -> Environment:
    """Return the templates of all pages: every text that they show is escaped.

    `pools`: the texts that figures need not bring along.
    """
    environment = Environment(
        loader=PackageLoader("collector.report"), autoescape=True, undefined=StrictUndefined, finalize=_show
    )
    environment.filters["packed"] = partial(_pack_figures, pools=pools)
    environment.filters["placed"] = place_groups
    return environment


def _show(value: object) -> object:
    """Return a value as a page shows it: texts of others cannot turn around what follows them."""
    return replace_steering(value) if type(value) is str else value


def _pack_figures(figures: Sequence[Figure], pools: Pools | None) -> str:
    return compress_document([pack_figure(figure, pools) for figure in figures])
