"""The sections of the report in their order: which tables and other content each section has.

To add a table: write a module in collector/tables/, and name its function in the `tables` of a section here.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from collector.analysis import Analysis
from collector.answers.batch_rules import make_batches_table
from collector.answers.cheapest_rules import make_cheapest_table
from collector.answers.faster_table import make_faster_table
from collector.answers.fastest_rules import make_fastest_table
from collector.answers.planning_rules import PLANNED_ANCHOR
from collector.comparisons import COMPARISONS
from collector.facts import count_things
from collector.report.packing import Pools
from collector.report.section_contents import (
    Content,
    collect_answers,
    collect_claims,
    collect_comparisons,
    collect_costs,
    collect_forecast,
    collect_method,
    collect_not_known,
    collect_overview,
    collect_planned,
    collect_plots,
    collect_sharing,
    collect_trust,
    make_cost_table,
)
from collector.report.section_parts import (
    ARITHMETIC_PARTS,
    CONDITION_PARTS,
    COST_PARTS,
    Part,
    find_parts,
    join_abouts,
    join_titles,
)
from collector.report.table_html import TableView, view_table
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
from collector.tables.table import Table

MakeTable = Callable[[Analysis], Table | None]


def _collect_nothing(_: Analysis) -> Content:
    return {}


@dataclass(frozen=True, kw_only=True)
class Section:
    """Describes one section of the report, which leaves it out where it has neither a table nor content."""

    anchor: str
    title: str
    parts: tuple[Part, ...] = ()
    """What the section may hold, where that differs from run to run: those that are there make its title."""
    tables: tuple[MakeTable, ...] = ()
    template: str = ""
    """The file in templates/sections/ that shows `collect_content`."""
    tables_first: bool = False
    """Whether the tables stand above what the template shows."""
    about: str = ""
    """What is in it, in a few words, where the reader opens it; empty: it stands open."""
    collect_content: Callable[[Analysis], Content] = _collect_nothing


@dataclass(frozen=True, kw_only=True)
class SectionView:
    """What a section shows of one run."""

    section: Section
    content: Content = field(default_factory=dict)
    tables: tuple[TableView, ...] = ()
    parts: tuple[Part, ...] = ()
    """Those of the section that the run has."""

    @property
    def title(self) -> str:
        """The title of the section, by what it holds of this run."""
        return join_titles(self.parts) or self.section.title

    @property
    def about(self) -> str:
        """What stands beside the title where the section is folded; empty: it stands open."""
        own = join_abouts(self.parts) or self.section.about
        return str(self.content.get("summary", own)) if self.section.about else ""


def build_sections(analysis: Analysis, pools: Pools | None = None) -> list[SectionView]:
    """Return the sections that have something to show of the run. `pools`: texts that packed rows need not repeat."""
    views = [
        SectionView(
            section=section,
            content=section.collect_content(analysis),
            parts=find_parts(section.parts, analysis),
            tables=tuple(
                view_table(count_skipped(table, analysis), pools) for table in _list_section_tables(section, analysis)
            ),
        )
        for section in SECTIONS
    ]
    return [view for view in views if view.content or view.tables]


def _list_section_tables(section: Section, analysis: Analysis) -> list[Table]:
    """Return the tables as the section shows them: what all rows say alike stands in the caption.

    A table above the words of its section is itself an answer, and keeps its columns.
    """
    made = [table for make in section.tables if (table := make(analysis)) is not None]
    return made if section.tables_first else [table.lift_alike() for table in made]


def list_shown_tables(analysis: Analysis) -> list[Table]:
    """Return the tables of all sections of the run as the report shows them."""
    return [table for section in SECTIONS for table in _list_section_tables(section, analysis)]


def list_tables(analysis: Analysis) -> list[Table]:
    """Return the tables of all sections of the run with all of their columns, for files."""
    return [table for section in SECTIONS for make in section.tables if (table := make(analysis)) is not None]


def count_skipped(table: Table, analysis: Analysis) -> Table:
    """Return the table with a remark on how many documents did not count, if there are any."""
    count = len(analysis.collection.skipped)
    if not count or table.caption == SKIPPED_CAPTION:
        return table
    remark = f"{count_things(count, 'document')} in the store did not count, see Skipped documents."
    return replace(table, remark=" ".join(filter(None, [table.remark, remark])))


SECTIONS = (
    Section(
        anchor="answers",
        title="Answers",
        template="answers.html.j2",
        collect_content=collect_answers,
        tables=(make_fastest_table, make_faster_table, make_cheapest_table),
        tables_first=True,
    ),
    Section(anchor="trust", title="Can this be trusted?", template="trust.html.j2", collect_content=collect_trust),
    Section(anchor="overview", title="Overview", template="overview.html.j2", collect_content=collect_overview),
    Section(
        anchor=PLANNED_ANCHOR,
        title="What was planned",
        template="planned.html.j2",
        collect_content=collect_planned,
    ),
    Section(
        anchor="not-known",
        title="What failed or was left out",
        about="repeats, cells and pairs without a figure, with their reasons and logs",
        template="not-known.html.j2",
        collect_content=collect_not_known,
        tables=(make_invalid_table, make_left_out_table, make_skipped_table),
    ),
    Section(
        anchor="plots",
        title="Plots",
        about="by question",
        template="plots.html.j2",
        collect_content=collect_plots,
    ),
    Section(
        anchor="step-times",
        title="Step times",
        about="every cell: step time or latency with its interval, samples/s, repeats, verdict",
        tables=(make_training_table, make_inference_table, make_sustained_table),
    ),
    Section(
        anchor="comparisons",
        title="Comparisons",
        about="every pair: both times, their ratio with its intervals, the verdict",
        template="comparisons.html.j2",
        collect_content=collect_comparisons,
        tables=(*(partial(make_comparison_table, comparison) for comparison in COMPARISONS), make_batches_table),
    ),
    Section(
        anchor="sharing",
        title="Sharing",
        about="what tenants of one device do to each other",
        template="plots.html.j2",
        collect_content=collect_sharing,
        tables=(make_tenant_speed_table, make_tenant_latency_table, make_shared_device_table, make_fallen_table),
    ),
    Section(
        anchor="costs",
        title="Cost, energy and CO2",
        parts=COST_PARTS,
        about="1,000 samples of each cell at listed prices",
        template="costs.html.j2",
        collect_content=collect_costs,
        tables=(make_cost_table,),
    ),
    Section(
        anchor="memory",
        title="Memory and durations",
        about="peak memory of each cell; where the time of a repeat goes",
        tables=(make_memory_table, make_durations_table),
    ),
    Section(
        anchor="conditions",
        title="Conditions",
        parts=CONDITION_PARTS,
        about="under which conditions it was measured",
        tables=(make_energy_table, make_devices_table),
    ),
    Section(
        anchor="roofline",
        title="Arithmetic of a step",
        parts=ARITHMETIC_PARTS,
        about="the operations of a step and their rate",
        tables=(make_roofline_table, make_kernel_time_table),
    ),
    Section(
        anchor="nights",
        title="Changes over the nights",
        about="changes that were seen, with what became of them",
        tables=(make_nights_table,),
    ),
    Section(
        anchor="environments",
        title="Environments",
        about="machines, versions and settings",
        tables=(make_machines_table, make_environments_table, make_shared_environment_table),
    ),
    Section(
        anchor="method",
        title="How it was measured",
        about="what each figure is, with its formula",
        template="method.html.j2",
        collect_content=collect_method,
    ),
    Section(
        anchor="claims",
        title="Published claims",
        about="each claim with its verdict, and what that rests on",
        template="claims.html.j2",
        collect_content=collect_claims,
    ),
    Section(
        anchor="forecast",
        title="Forecast of GPU memory",
        about="from a public table of GPUs, by year: nothing of it was measured in this run",
        template="forecast.html.j2",
        collect_content=collect_forecast,
    ),
)
