"""Say how the ratios of a comparison are to be read: which intervals hold together, and where each floor comes from."""

from collections.abc import Iterator

from collector.facts import count_things
from collector.labels import DEVICE_NAMES
from collector.machines import ACROSS
from collector.repeats_needed import POWER_WORDS
from collector.versus.document import CompareDocument, NoiseDescription, ReportTable
from collector.versus.metrics import METRICS
from collector.versus.texts import ALONE, MAX_VALUES, format_floor
from collector.versus.verdicts import ADVISES_REPEATS

ONE_RUN = "These are ratios of one run: the verdicts rest on its repeats, and are about that run on its machines."
MACHINES_IN_RATIO = "Across machines, a ratio holds the difference of the machines too, which its interval does not."
FLOOR_WORDS = "slower or faster"
OF_TWO_RUNS = "The 95 % interval allows for what identical runs differ by."
ADVICE = (
    f"About N repeats a side decide in {POWER_WORDS} if the true ratio and spread are the measured ones. So few "
    "repeats know both only roughly, and the pairs that stay open are chosen by them: in simulations, N repeats "
    "decided 3 to 10 of 10 pairs that differ, and of equal ones without a floor next to none (docs/compare.md). A "
    "ratio further from 1 takes fewer, even where its interval is wider."
)
NO_INTERVALS = (
    "Peak memory has no interval: its repeats are mostly equal, and else differ by whole blocks. The largest repeats "
    "of both sides are compared; the floor of a cell is the most that repeats of a side, or identical runs, differ by."
)


def list_method_lines(document: CompareDocument) -> Iterator[str]:
    """Yield how to read the ratios, which intervals hold together, and what each floor comes from."""
    yield document.metric.reading
    if not METRICS[document.metric.name].has_intervals:
        yield NO_INTERVALS
    yield from _list_family_lines(document)
    for table in document.report_tables:
        yield _describe_report_table(table, document)
    for noise in document.noise:
        yield describe_noise(noise)
    if document.is_within_runs and document.families:
        yield from _list_scope_lines(document)
    if any(ADVISES_REPEATS in cell.reason for cell in document.cells):
        yield ADVICE


def _list_family_lines(document: CompareDocument) -> Iterator[str]:
    """Yield by which intervals ratios are judged, and which of them hold together."""
    for family in document.families:
        number = family.num_cells + family.num_groups
        counts = (family.num_cells, "cell"), (family.num_groups, "group of cells together")
        named = " and ".join(count_things(count, noun) for count, noun in counts if count)
        if number > 1:
            yield f"Verdicts on {named}: by their 95 % intervals, which hold together for these {number:,}."
        else:
            mean = "; it is about their mean, not about any one of them" if family.num_groups else ""
            yield f"Verdict on {named}: by its 95 % interval{mean}."
    if document.families:
        yield from _list_rules(document)


def _list_rules(document: CompareDocument) -> Iterator[str]:
    """Yield which interval each verdict is read from."""
    differs = f"{document.metric.worse} or {document.metric.better}"
    floors = [*(cell.floor for cell in document.cells), *(group.floor for group in document.together)]
    if all(floor is None for floor in floors):
        yield f"B is called {differs} where the 95 % interval excludes 1."
        return
    if not document.is_within_runs:
        yield OF_TWO_RUNS
    yield (
        f"B is called {differs} where the 95 % interval excludes 1 and the ratio is beyond the floor; within the floor "
        f"where the interval of {ALONE}, by the repeats of these runs, lies within it."
    )


def _describe_report_table(table: ReportTable, document: CompareDocument) -> str:
    num_cells = sum(family.num_cells for family in document.families)
    if table.num_ratios == table.num_common == num_cells:
        return (
            f"The table of {table.name} in the run's report has the same ratios, tested together: the same intervals "
            "and verdicts (with its default intervals)."
        )
    return (
        f"The table of {table.name} in the run's report tests {count_things(table.num_ratios, 'ratio')} together, "
        f"{table.num_common:,} of these among them: its intervals are other ones, and its verdicts may be. Those here "
        "are right where these ratios were chosen before any was seen."
    )


def _list_scope_lines(document: CompareDocument) -> Iterator[str]:
    if len(document.a.run_ids) == 1:
        known = any(noise.is_same_run and noise.source == "measured" for noise in document.noise)
        yield ONE_RUN if known else f"{ONE_RUN} By how much another run's ratios differ is not known."
    if any(cell.scope.startswith(ACROSS) for cell in document.cells):
        yield MACHINES_IN_RATIO


def describe_noise(noise: NoiseDescription) -> str:
    """Return the floor of one kind of cells, what it does to verdicts, and its source, in a sentence or two."""
    where = "" if noise.is_same_machine else f" {ACROSS}"
    cells = f"{DEVICE_NAMES[noise.device]} cells{' with tenants' if noise.is_shared else ''}{where}"
    floor, source = format_floor(noise.floor), _describe_source(noise)
    if noise.is_same_run and noise.source == "measured":
        return f"Of identical runs, 95 % differ by less than {floor} in the ratio of two {cells} of one run: {source}."
    never = f"a smaller difference is never called {FLOOR_WORDS}"
    if noise.source == "given":
        return f"Floor {floor} for {cells}: {source}; {never}."
    differ = "differ" if noise.source == "measured" else "are assumed to differ"
    return f"Floor {floor} for {cells}: {never}, as identical runs {differ} by as much; {source}."


def _describe_source(noise: NoiseDescription) -> str:
    if noise.source == "given":
        return "as given by --floor"
    if noise.source == "measured":
        runs = f"{', '.join(noise.run_ids[:MAX_VALUES])}{' ...' if len(noise.run_ids) > MAX_VALUES else ''}"
        number = count_things(len(noise.run_ids), "identical run")
        return f"measured, {number} of {count_things(noise.num_cells, 'cell')} ({runs})"
    return (
        "the default, since the store has no two identical runs of such cells; a second run of A or B would measure it "
        "(docs/compare.md)"
    )
