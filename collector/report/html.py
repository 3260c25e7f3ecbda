"""Write the report of a run: one self-contained HTML file that opens offline.

The page's content security policy forbids every request and every script but the two that are inlined here, known by
their hashes: text from results can neither load nor run anything, whatever it says.
"""

import base64
import hashlib
from collections.abc import Iterable
from functools import cache
from importlib import resources
from pathlib import Path

import altair as alt
import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from collector.analysis import Analysis, analyze_run
from collector.facts import list_facts, state_outcome
from collector.files import replace_text
from collector.forecast.fit import Forecast
from collector.nights.records import ChangeHistory
from collector.prices.table import PriceTable
from collector.report.sections import build_sections, list_tables
from collector.report.warnings import list_warnings
from collector.results.collection import Collection

TEMPLATES = resources.files("collector.report") / "templates"


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
    scripts = {"bundle": load_bundle(), "mount": (TEMPLATES / "report.js").read_text()}
    html = (
        _open_templates()
        .get_template("report.html.j2")
        .render(
            run=collection.run,
            outcome=state_outcome(collection),
            facts=list_facts(collection),
            warnings=list_warnings(analysis),
            sections=build_sections(analysis),
            policy=state_policy(scripts.values()),
            style=Markup((TEMPLATES / "report.css").read_text()),
            scripts={name: Markup(text) for name, text in scripts.items()},
        )
    )
    replace_text(path, html)


def list_stale_tables(analysis: Analysis, html: str) -> list[str]:
    """Return the captions of the tables of the run that a report shows otherwise, or not at all.

    `html`: the text of the report. Its plots are of the same numbers, and take far longer to make.
    """
    show_table = _open_templates().get_template("table.html.j2").module.show_table  # type: ignore[attr-defined]
    return [table.caption for table in list_tables(analysis) if str(show_table(table)).strip() not in html]


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


def _open_templates() -> Environment:
    return Environment(loader=PackageLoader("collector.report"), autoescape=True, undefined=StrictUndefined)
