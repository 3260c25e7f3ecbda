"""The sections of the report in their order: which tables and other content each section has.

To add a table: write a module in collector/tables/, and name its function in the `tables` of a section here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from collector.analysis import MAX_PRICED_CELLS, Analysis
from collector.answers.batch_rules import make_batches_table
from collector.answers.fastest_rules import make_fastest_table
from collector.answers.run_answers import CERTAINTY_RULE, FASTEST_RULE, WIDTH_RULE, answer_run
from collector.claims.page import describe_verdicts, find_claim_results, introduce_study
from collector.comparisons import COMPARISONS, count_left_out
from collector.costs.tables import make_sample_table
from collector.costs.texts import list_answer_lines, list_basis_lines, list_unpriced_lines
from collector.facts import count_things
from collector.forecast.words import describe_forecast
from collector.report.failures import describe_failures
from collector.report.figure import make_figure
from collector.report.figures import build_figures
from collector.report.not_known import count_not_compared, list_unknowns
from collector.report.packing import Pools
from collector.report.plots.forecast import plot_forecast
from collector.report.sharing_figures import show_sharing
from collector.report.table_html import TableView, view_table
from collector.results.intervals import MODERATED
from collector.results.summary import list_failures
from collector.tables.comparisons import make_comparison_table
from collector.tables.devices import make_devices_table
from collector.tables.durations import make_durations_table
from collector.tables.energy import make_energy_table
from collector.tables.environments import make_environments_table, make_shared_environment_table
from collector.tables.invalid import make_invalid_table
from collector.tables.kernel_time import make_kernel_time_table
from collector.tables.left_out import make_left_out_table
from collector.tables.machines import make_machines_table
from collector.tables.memory import make_memory_table
from collector.tables.nights import make_nights_table
from collector.tables.roofline import make_roofline_table
from collector.tables.sharing import (
    make_fallen_table,
    make_shared_device_table,
    make_tenant_latency_table,
    make_tenant_speed_table,
)
from collector.tables.skipped import SKIPPED_CAPTION, make_skipped_table
from collector.tables.step_times import make_inference_table, make_training_table
from collector.tables.sustained import make_sustained_table
from collector.tables.table import MAX_LISTED, Table

MakeTable = Callable[[Analysis], Table | None]
CERTAIN = (WIDTH_RULE, CERTAINTY_RULE)
"""The rules of the answers that say how sure the others are, and stand below them."""
Content = Mapping[str, Any]
"""What the template of a section shows, by the names that it uses; empty where there is nothing to show."""


def _collect_nothing(_: Analysis) -> Content:
    return {}


@dataclass(frozen=True, kw_only=True)
class Section:
    """Describes one section of the report, which leaves it out where it has neither a table nor content."""

    anchor: str
    title: str
    tables: tuple[MakeTable, ...] = ()
    template: str = ""
    """The file in templates/sections/ that shows `collect_content`."""
    tables_first: bool = False
    """Whether the tables stand above what the template shows."""
    is_folded: bool = False
    """Whether the reader opens it: what is not about what was measured."""
    collect_content: Callable[[Analysis], Content] = _collect_nothing


@dataclass(frozen=True, kw_only=True)
class SectionView:
    """What a section shows of one run."""

    section: Section
    content: Content = field(default_factory=dict)
    tables: tuple[TableView, ...] = ()


def build_sections(analysis: Analysis, pools: Pools | None = None) -> list[SectionView]:
    """Return the sections that have something to show of the run. `pools`: texts that packed rows need not repeat."""
    views = [
        SectionView(
            section=section,
            content=section.collect_content(analysis),
            tables=tuple(
                view_table(count_skipped(table, analysis), pools)
                for make in section.tables
                if (table := make(analysis)) is not None
            ),
        )
        for section in SECTIONS
    ]
    return [view for view in views if view.content or view.tables]


def list_tables(analysis: Analysis) -> list[Table]:
    """Return the tables of all sections of the run: the numbers of the report without its plots."""
    return [table for section in SECTIONS for make in section.tables if (table := make(analysis)) is not None]


def count_skipped(table: Table, analysis: Analysis) -> Table:
    """Return the table with a remark on how many documents did not count, if there are any."""
    count = len(analysis.collection.skipped)
    if not count or table.caption == SKIPPED_CAPTION:
        return table
    remark = f"{count_things(count, 'document')} in the store did not count, see Skipped documents."
    return replace(table, remark=" ".join(filter(None, [table.remark, remark])))


def _collect_answers(analysis: Analysis) -> Content:
    answers = answer_run(analysis)
    nothing = "no repeat ended ok" if analysis.measured.empty else "no rule of the answers applies to what was measured"
    return {
        "findings": [one for one in answers if one.kind == "finding" and one.rule not in (FASTEST_RULE, *CERTAIN)],
        "unknowns": [one for one in answers if one.kind == "unknown"],
        "certainties": [one for one in answers if one.rule in CERTAIN],
        "nothing": "" if answers else nothing,
    }


def _collect_overview(analysis: Analysis) -> Content:
    return {"num_cells": len(analysis.summary) + len(analysis.collection.run.left_out)}


def _collect_not_known(analysis: Analysis) -> Content:
    rows = list_failures(analysis.collection)
    failures = describe_failures(rows) if len(rows) else []
    more = f"The first {MAX_LISTED} of {len(failures)} ways to fail; failures.csv has all repeats."
    pairs = list(analysis.comparisons.values())
    return {
        "lines": list_unknowns(analysis),
        "pairs": [line for line in (count_left_out(pairs), count_not_compared(pairs)) if line],
        "failures": failures[:MAX_LISTED],
        "remark": more if len(failures) > MAX_LISTED else "",
    }


def _collect_plots(analysis: Analysis) -> Content:
    groups = build_figures(analysis)
    return {"groups": groups} if groups else {}


def _collect_comparisons(analysis: Analysis) -> Content:
    if not any(len(pairs) for pairs in analysis.comparisons.values()):
        return {}
    return {"left_out_pairs": count_left_out(analysis.comparisons.values()), "is_moderated": analysis.moderated}


def _collect_costs(analysis: Analysis) -> Content:
    if analysis.costs is None or not analysis.costs.cells:
        return {}
    answers = [*list_answer_lines(analysis.costs), *list_unpriced_lines(analysis.costs)]
    return {"answers": answers, "basis": list(list_basis_lines(analysis.costs))}


def _make_cost_table(analysis: Analysis) -> Table | None:
    if analysis.costs is None or not analysis.costs.cells:
        return None
    table, num_cells = make_sample_table(analysis.costs), len(analysis.summary)
    if num_cells <= MAX_PRICED_CELLS:
        return table
    return replace(table, remark=f"The first {MAX_PRICED_CELLS} of {num_cells} cells; `benchmatrix cost` has all.")


def _collect_sharing(analysis: Analysis) -> Content:
    groups = show_sharing(analysis.sharing)
    return {"groups": groups} if groups else {}


def _collect_claims(analysis: Analysis) -> Content:
    results = find_claim_results(analysis.summary, forecast=analysis.forecast, include_invalid=analysis.include_invalid)
    if not results:
        return {}
    return {"study": introduce_study(), "results": results, "summary": describe_verdicts(results)}


def _collect_forecast(analysis: Analysis) -> Content:
    if analysis.forecast is None:
        return {}
    subject, *answers = describe_forecast(analysis.forecast)
    figure = make_figure(plot_forecast(analysis.forecast), " ".join([subject, *answers]))
    return {"figure": figure, "answers": answers, "summary": f"{subject} {answers[0]}"}


def _collect_method(analysis: Analysis) -> Content:
    methods = analysis.summary["interval_method"].dropna()
    num_moderated = int(methods.str.startswith(MODERATED).sum())
    return {
        "moderated": num_moderated if analysis.moderated else None,
        "num_intervals": len(methods),
        "tool_version": analysis.collection.run.tool_version,
    }


SECTIONS = (
    Section(
        anchor="answers",
        title="Answers",
        template="answers.html.j2",
        collect_content=_collect_answers,
        tables=(make_fastest_table,),
        tables_first=True,
    ),
    Section(anchor="overview", title="Overview", template="overview.html.j2", collect_content=_collect_overview),
    Section(
        anchor="not-known",
        title="What failed or was left out",
        template="not-known.html.j2",
        collect_content=_collect_not_known,
        tables=(make_invalid_table, make_left_out_table, make_skipped_table),
    ),
    Section(anchor="plots", title="Questions", template="plots.html.j2", collect_content=_collect_plots),
    Section(
        anchor="step-times",
        title="Step times",
        tables=(make_training_table, make_inference_table, make_sustained_table),
    ),
    Section(
        anchor="comparisons",
        title="Comparisons",
        template="comparisons.html.j2",
        collect_content=_collect_comparisons,
        tables=(*(partial(make_comparison_table, comparison) for comparison in COMPARISONS), make_batches_table),
    ),
    Section(
        anchor="sharing",
        title="Sharing",
        template="plots.html.j2",
        collect_content=_collect_sharing,
        tables=(make_tenant_speed_table, make_tenant_latency_table, make_shared_device_table, make_fallen_table),
    ),
    Section(
        anchor="costs",
        title="Cost, energy and CO2",
        template="costs.html.j2",
        collect_content=_collect_costs,
        tables=(_make_cost_table,),
    ),
    Section(anchor="memory", title="Memory and durations", tables=(make_memory_table, make_durations_table)),
    Section(
        anchor="conditions",
        title="Roofline, energy, devices",
        tables=(make_roofline_table, make_kernel_time_table, make_energy_table, make_devices_table),
    ),
    Section(anchor="nights", title="Changes over the nights", tables=(make_nights_table,)),
    Section(
        anchor="environments",
        title="Environments",
        tables=(make_machines_table, make_environments_table, make_shared_environment_table),
    ),
    Section(anchor="method", title="How it was measured", template="method.html.j2", collect_content=_collect_method),
    Section(
        anchor="claims",
        title="The study's claims",
        template="claims.html.j2",
        collect_content=_collect_claims,
        is_folded=True,
    ),
    Section(
        anchor="forecast",
        title="Forecast",
        template="forecast.html.j2",
        collect_content=_collect_forecast,
        is_folded=True,
    ),
)
