"""Collect what the templates of the sections show of a run beside their tables."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from collector.analysis import MAX_PRICED_CELLS, Analysis
from collector.answers.claim_rules import judge_claims
from collector.answers.run_answers import CERTAINTY_RULE, WIDTH_RULE, answer_run
from collector.claims.page import count_verdicts, introduce_study
from collector.costs.tables import make_sample_table
from collector.costs.texts import list_answer_lines, list_basis_lines, list_unpriced_lines
from collector.facts import count_left_out
from collector.forecast.words import describe_forecast
from collector.report.failures import describe_failures
from collector.report.figure import make_figure
from collector.report.figures import build_figures
from collector.report.not_known import count_not_compared, list_unknowns
from collector.report.planned_cells import tabulate_planned
from collector.report.plots.forecast import plot_forecast
from collector.report.sharing_figures import show_sharing
from collector.report.trust import list_trust_lines
from collector.report.warnings import list_warnings
from collector.results.intervals import MODERATED
from collector.results.summary import list_failures
from collector.tables.table import MAX_LISTED, Table

IN_TRUST = ("repeats-disagree", "unchecked", "skipped", "one-machine", "libraries")
"""The rules of what is not known that a line of the trust block says: a page says it once."""
CERTAIN = (WIDTH_RULE, CERTAINTY_RULE)
"""The rules of the answers that say how sure the others are, and stand below them."""
Content = Mapping[str, Any]
"""What the template of a section shows, by the names that it uses; empty where there is nothing to show."""


def collect_answers(analysis: Analysis) -> Content:
    """Return the findings, what is not known and how sure both are."""
    answers = answer_run(analysis, has_tables=True)
    nothing = "no repeat ended ok" if analysis.measured.empty else "no rule of the answers applies to what was measured"
    return {
        "findings": [one for one in answers if one.kind == "finding" and one.rule not in CERTAIN],
        "unknowns": [one for one in answers if one.kind == "unknown" and one.rule not in IN_TRUST],
        "certainties": [one for one in answers if one.rule in CERTAIN],
        "nothing": "" if answers else nothing,
    }


def collect_trust(analysis: Analysis) -> Content:
    """Return what speaks for and against trusting the run, and what to beware of."""
    return {"lines": analysis.derive(list_trust_lines), "warnings": list_warnings(analysis)}


def collect_planned(analysis: Analysis) -> Content:
    """Return the marks of every combination of work and program."""
    return {"table": tabulate_planned(analysis)}


def collect_overview(analysis: Analysis) -> Content:
    """Return how many cells there are."""
    return {"num_cells": len(analysis.summary) + len(analysis.collection.run.left_out)}


def collect_not_known(analysis: Analysis) -> Content:
    """Return what failed, was left out or not compared."""
    rows = list_failures(analysis.collection)
    failures = describe_failures(rows) if len(rows) else []
    more = f"The first {MAX_LISTED} of {len(failures)} ways to fail; failures.csv has all repeats."
    pairs = list(analysis.comparisons.values())
    lines = list_unknowns(analysis)
    not_compared = [line for line in (count_left_out(pairs), count_not_compared(pairs)) if line]
    summary = " ".join([*lines, *not_compared]) or "nothing"
    return {
        "summary": "" if analysis.measured.empty else summary,  # of a run without figures it is what there is: open
        "lines": lines,
        "pairs": not_compared,
        "failures": failures[:MAX_LISTED],
        "remark": more if len(failures) > MAX_LISTED else "",
    }


def collect_plots(analysis: Analysis) -> Content:
    """Return the figures of what was measured."""
    groups = build_figures(analysis)
    return {"groups": groups, "summary": " ".join(group.question for group in groups)} if groups else {}


def collect_comparisons(analysis: Analysis) -> Content:
    """Return which pairs were left out."""
    if not any(len(pairs) for pairs in analysis.comparisons.values()):
        return {}
    return {"left_out_pairs": count_left_out(analysis.comparisons.values()), "is_moderated": analysis.moderated}


def collect_costs(analysis: Analysis) -> Content:
    """Return what cells cost, in sentences."""
    if analysis.costs is None or not analysis.costs.cells:
        return {}
    unpriced = list(list_unpriced_lines(analysis.costs))
    devices = dict.fromkeys(f"--machine {cell.device}=MACHINE" for cell in analysis.costs.cells if not cell.offers)
    run_id = analysis.collection.run.run_id
    command = f"`benchmatrix cost {run_id} {' '.join(devices)}` prices them as on that machine, with their CO2."
    answers = [*list_answer_lines(analysis.costs), *unpriced, *([command] if unpriced else [])]
    return {"answers": answers, "basis": list(list_basis_lines(analysis.costs))}


def make_cost_table(analysis: Analysis) -> Table | None:
    """Return what 1,000 samples of each cell cost; None without prices."""
    if analysis.costs is None or not analysis.costs.cells:
        return None
    table, num_cells = make_sample_table(analysis.costs), len(analysis.summary)
    if table is None or num_cells <= MAX_PRICED_CELLS:
        return table
    return replace(table, remark=f"The first {MAX_PRICED_CELLS} of {num_cells} cells; `benchmatrix cost` has all.")


def collect_sharing(analysis: Analysis) -> Content:
    """Return the figures of what tenants do to each other."""
    groups = show_sharing(analysis.sharing)
    return {"groups": groups} if groups else {}


def collect_claims(analysis: Analysis) -> Content:
    """Return the study with its claims, where the run has a pair that concerns one."""
    results = analysis.derive(judge_claims)
    if not results:
        return {}
    return {"study": introduce_study(), "results": results, "summary": f"a numbered list of {count_verdicts(results)}"}


def collect_forecast(analysis: Analysis) -> Content:
    """Return the forecast that came with the run."""
    if analysis.forecast is None:
        return {}
    subject, *answers = describe_forecast(analysis.forecast)
    figure = make_figure(plot_forecast(analysis.forecast), " ".join([subject, *answers]))
    return {"figure": figure, "subject": subject, "answers": answers}


def collect_method(analysis: Analysis) -> Content:
    """Return what the page says of how intervals were made."""
    methods = analysis.summary["interval_method"].dropna()
    num_moderated = int(methods.str.startswith(MODERATED).sum())
    return {
        "moderated": num_moderated if analysis.moderated else None,
        "num_intervals": len(methods),
        "tool_version": analysis.collection.run.tool_version,
    }
