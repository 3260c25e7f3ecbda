"""A Collection and, if there is one, a Forecast come in; one self-contained HTML file goes out that opens offline.

The page's content security policy forbids every request and every script but the two that are inlined here, known by
their hashes: text from results can neither load nor run anything, whatever it says.
"""

import base64
import hashlib
from collections.abc import Iterable
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from collector.claims.page import find_claim_results, introduce_study
from collector.comparisons import COMPARISONS, compare_all, count_left_out
from collector.files import replace_text
from collector.forecast.fit import Forecast, describe_forecast
from collector.labels import add_labels
from collector.report.facts import list_facts, list_warnings, present_environments, state_outcome
from collector.report.figures import build_figures, draw_forecast
from collector.results.collection import Collection
from collector.statistics import NUM_RESAMPLES
from collector.tables.comparisons import present_comparison
from collector.tables.conditions import present_devices, present_energy, present_roofline
from collector.tables.presentation import (
    present_failures,
    present_invalid,
    present_left_out,
    present_memory,
    present_phases,
    present_skipped,
    present_step_times,
)
from collector.tables.summary import list_failures, list_invalid, summarize_cells

MAX_LISTED = 100
PHASES = ("train", "infer")
TEMPLATES = resources.files("collector.report") / "templates"


def render_report(
    collection: Collection, *, forecast: Forecast | None, path: Path, include_invalid: bool = False
) -> None:
    """Write the report to `path`, whose directory is made if absent. UserError where it cannot be written.

    `include_invalid`: rows without a valid repeat are compared too.
    """
    scripts = {"bundle": load_bundle(), "mount": (TEMPLATES / "report.js").read_text()}
    html = (
        _open_templates()
        .get_template("report.html.j2")
        .render(
            _collect_content(collection, forecast, include_invalid=include_invalid),
            forecast=describe_forecast(forecast) if forecast else [],
            forecast_figure=draw_forecast(forecast) if forecast else None,
            policy=state_policy(scripts.values()),
            style=Markup((TEMPLATES / "report.css").read_text()),
            scripts={name: Markup(text) for name, text in scripts.items()},
        )
    )
    replace_text(path, html)


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


def _collect_content(collection: Collection, forecast: Forecast | None, *, include_invalid: bool) -> dict[str, Any]:
    """Return what the template shows of the run itself; an empty value is a section that is not there."""
    summary = add_labels(summarize_cells(collection))
    comparisons = compare_all(summary, include_invalid=include_invalid)
    failures, invalid = list_failures(collection), list_invalid(collection)
    compared = [present_comparison(comparisons[comparison.name], comparison) for comparison in COMPARISONS]
    conditions = (present_roofline(summary), present_energy(summary), present_devices(summary))
    measured = (summary["num_ok"] > 0).any()
    return {
        "run": collection.run,
        "outcome": state_outcome(collection),
        "facts": list_facts(collection),
        "warnings": list_warnings(collection, summary),
        "step_times": [present_step_times(summary, phase) for phase in PHASES if phase in set(summary["phase"])],
        "invalid": present_invalid(invalid.head(MAX_LISTED)),
        "num_invalid": len(invalid),
        "groups": build_figures(collection, summary, comparisons),
        "memory": [present_memory(summary), present_phases(summary)] if measured else [],
        "conditions": [view for view in conditions if view],
        "comparisons": [view for view in compared if len(view.frame)],
        "study": introduce_study(),
        "claims": find_claim_results(summary, forecast=forecast, include_invalid=include_invalid),
        "left_out_pairs": count_left_out(comparisons.values()),
        "failures": present_failures(failures.head(MAX_LISTED)),
        "num_failures": len(failures),
        "left_out": present_left_out(collection.run.left_out),
        "environments": present_environments(collection),
        "skipped": present_skipped(collection.skipped[:MAX_LISTED]),
        "num_skipped": len(collection.skipped),
        "num_resamples": f"{NUM_RESAMPLES:,}",
    }
