"""The rules that sentences about a run come from, in the order in which they are shown."""

from collector.answers.answer import Rule
from collector.answers.batch_rules import find_batches
from collector.answers.certainty_rules import find_certainty, find_changes
from collector.answers.comparison_rules import (
    find_devices,
    find_frameworks_by_work,
    find_frameworks_over_all,
    find_modes,
    find_precisions,
)
from collector.answers.cost_rules import find_cost_span, find_device_costs
from collector.answers.scaling_rules import find_scaling
from collector.answers.tenant_rules import find_tenants
from collector.answers.unknown_ratios import (
    find_confounded_pairs,
    find_no_difference,
    find_not_compared,
    find_tenants_not_compared,
)
from collector.answers.unknown_rules import (
    find_left_out,
    find_moderation,
    find_no_price,
    find_no_result,
    find_not_valid,
    find_one_kind,
    find_one_machine,
    find_one_repeat,
    find_skipped,
    find_unchecked,
)

DIFFERENCE = "a difference remains after Holm's adjustment over all ratios of the table"
MOST_PAIRS = "most comparisons first, modes with one switch turned last"

FINDINGS = (
    Rule(
        id="frameworks-over-all",
        kind="finding",
        says="in how many comparisons one framework and mode is slower or faster than PyTorch, over all work",
        only_if=f"there are three kinds of work (model, phase, device) or more, and {DIFFERENCE}",
        order=MOST_PAIRS,
        find=find_frameworks_over_all,
    ),
    Rule(
        id="frameworks-by-work",
        kind="finding",
        says="the same for one model, phase and device",
        only_if=DIFFERENCE,
        order=MOST_PAIRS,
        find=find_frameworks_by_work,
    ),
    Rule(
        id="devices",
        kind="finding",
        says="how many times faster a GPU is than a CPU, by phase; of the machines that were measured",
        only_if=DIFFERENCE,
        order="most comparisons first",
        find=find_devices,
    ),
    Rule(
        id="modes",
        kind="finding",
        says="what a mode gains over another of the same framework, by phase and device",
        only_if=DIFFERENCE,
        order=MOST_PAIRS,
        find=find_modes,
    ),
    Rule(
        id="precisions",
        kind="finding",
        says="what a precision gains over fp32, by framework, mode, phase and device",
        only_if=DIFFERENCE,
        order="most comparisons first",
        find=find_precisions,
    ),
    Rule(
        id="batches",
        kind="finding",
        says="samples per second of the largest batch over those of the smallest, of cells otherwise equal",
        only_if="a difference remains after Holm's adjustment over all such series",
        order="most series first",
        find=find_batches,
    ),
    Rule(
        id="scaling",
        kind="finding",
        says="which share of n times one GPU's throughput n GPUs reach; it is not tested against 1",
        only_if="a ratio has an interval",
        order="weak scaling first, most GPUs first",
        find=find_scaling,
    ),
    Rule(
        id="device-costs",
        kind="finding",
        says="what the same samples cost on the CPU over the GPU, at the cheapest offers of the price table",
        only_if="both have a price, and a difference remains after Holm's adjustment over all such ratios",
        order="one sentence",
        find=find_device_costs,
    ),
    Rule(
        id="cost-span",
        kind="finding",
        says="the least and the most that 1,000 samples of a cell cost",
        only_if="a cell with an interval has a price",
        order="one sentence",
        find=find_cost_span,
    ),
    Rule(
        id="tenants",
        kind="finding",
        says="how much tenants of one device get together, over one alone, by way of sharing",
        only_if=DIFFERENCE,
        order="most cells first",
        find=find_tenants,
    ),
    Rule(
        id="changes",
        kind="finding",
        says="what became slower or faster over the nights",
        only_if="a change was confirmed by measuring again, and its interval excludes 1",
        order="newest first",
        find=find_changes,
    ),
    Rule(
        id="certainty",
        kind="finding",
        says="how wide the intervals of step times are, by how many repeats",
        only_if="a step time has an interval",
        order="one sentence",
        find=find_certainty,
    ),
)
UNKNOWNS = (
    Rule(
        id="no-result",
        kind="unknown",
        says="how many planned repeats did not end ok, how they ended, how many cells have no figure, and what "
        "measures those that are missing",
        only_if="there is one",
        order="one sentence",
        find=find_no_result,
    ),
    Rule(
        id="not-valid",
        kind="unknown",
        says="how many repeats have which verdict but `valid`, and how many cells have no sound repeat",
        only_if="there is one",
        order="one sentence",
        find=find_not_valid,
    ),
    Rule(
        id="one-repeat",
        kind="unknown",
        says="how many step times have no interval",
        only_if="one repeat counts in a cell",
        order="one sentence",
        find=find_one_repeat,
    ),
    Rule(
        id="confounded",
        kind="unknown",
        says="how many ratios hold the difference of two machines",
        only_if="the sides ran on different machines, one of them on a single one (GPU over CPU and scaling aside)",
        order="one sentence",
        find=find_confounded_pairs,
    ),
    Rule(
        id="not-compared",
        kind="unknown",
        says="how many pairs have no ratio and why, and how many ratios have no interval",
        only_if="there is one",
        order="one sentence",
        find=find_not_compared,
    ),
    Rule(
        id="no-difference",
        kind="unknown",
        says="how many tested ratios show no difference",
        only_if="there is one",
        order="one sentence",
        find=find_no_difference,
    ),
    Rule(
        id="tenants-not-compared",
        kind="unknown",
        says="how many cells with tenants were not tested against one alone and why, how many show no difference, "
        "and how many ran on another machine",
        only_if="there is one",
        order="one sentence",
        find=find_tenants_not_compared,
    ),
    Rule(
        id="one-machine",
        kind="unknown",
        says="which kinds of GPU and CPU were measured on one card or host",
        only_if="there is one",
        order="one sentence",
        find=find_one_machine,
    ),
    Rule(
        id="one-kind",
        kind="unknown",
        says="of framework, device and precision, which has one value only",
        only_if="there is one",
        order="one sentence",
        find=find_one_kind,
    ),
    Rule(
        id="no-price",
        kind="unknown",
        says="how many cells have no price, and why",
        only_if="there is a price table and a cell without a price",
        order="one sentence",
        find=find_no_price,
    ),
    Rule(
        id="moderated",
        kind="unknown",
        says="that moderated intervals hold the truth less often in cells that vary more than the others",
        only_if="the intervals are moderated",
        order="one sentence",
        find=find_moderation,
    ),
    Rule(
        id="left-out",
        kind="unknown",
        says="how many cells of the matrix were not planned, and why",
        only_if="there is one",
        order="one sentence",
        find=find_left_out,
    ),
    Rule(
        id="unchecked",
        kind="unknown",
        says="which conditions could not be checked, and in how many rows",
        only_if="there is one",
        order="one sentence",
        find=find_unchecked,
    ),
    Rule(
        id="skipped",
        kind="unknown",
        says="how many documents in the store did not count",
        only_if="there is one",
        order="one sentence",
        find=find_skipped,
    ),
)
RULES = (*FINDINGS, *UNKNOWNS)
