"""The rules that sentences about a run come from, in the order in which they are shown."""

from collector.answers.answer import Rule
from collector.answers.batch_rules import find_batches
from collector.answers.certainty_rules import find_certainty, find_changes
from collector.answers.cheapest_rules import find_cheapest
from collector.answers.claim_rules import find_claims
from collector.answers.comparison_rules import (
    find_devices,
    find_frameworks_over_all,
    find_modes,
    find_precisions,
)
from collector.answers.cost_rules import find_device_costs
from collector.answers.fastest_rules import find_fastest
from collector.answers.limit_rules import find_memory, find_roofline
from collector.answers.pipelined_rules import find_pipelined
from collector.answers.scaling_rules import find_scaling
from collector.answers.tenant_rules import find_tenants
from collector.answers.unknown_list import UNKNOWNS

DIFFERENCE = "the interval of a ratio of the table excludes 1"
MOST_PAIRS = "most comparisons first, modes with one switch turned last"

FINDINGS = (
    Rule(
        id="fastest",
        title="Fastest",
        kind="finding",
        says="which program has the least step time for one kind of work, which comes second, and by how much that "
        "takes longer or that no difference is shown; then the programs that are not told from the first either, and "
        "where the second is one of them the next that is; the report shows these as a table, "
        "which names those that are not told from the first beside it, and has the number of programs and the repeats "
        "of either side",
        only_if="two programs did the same work on the same machines, each with an interval; differences are stated by "
        "the intervals of their table",
        order="as planned",
        find=find_fastest,
    ),
    Rule(
        id="frameworks-over-all",
        title="Frameworks",
        kind="finding",
        says="in how many comparisons one framework and mode takes longer or less time than PyTorch, over all work; "
        "the table counts training and inference apart",
        only_if=f"there are two kinds of work (model, phase, device) or more, and {DIFFERENCE}",
        order=MOST_PAIRS,
        find=find_frameworks_over_all,
    ),
    Rule(
        id="devices",
        title="GPU against CPU",
        kind="finding",
        says="how much longer a CPU takes than a GPU, by phase; of the machines that were measured",
        only_if=DIFFERENCE,
        order="most comparisons first",
        find=find_devices,
    ),
    Rule(
        id="modes",
        title="Modes",
        kind="finding",
        says="what a mode gains over another of the same framework, by phase and device; the first also names modes "
        "that no cell has",
        only_if=DIFFERENCE,
        order=f"TensorFlow's compiled against its graph first, which differ in XLA alone; then {MOST_PAIRS}",
        find=find_modes,
    ),
    Rule(
        id="precisions",
        title="Precisions",
        kind="finding",
        says="what a precision gains over fp32 (without TF32), by framework, mode, phase and device",
        only_if=DIFFERENCE,
        order="most comparisons first",
        find=find_precisions,
    ),
    Rule(
        id="batches",
        title="Larger batches",
        kind="finding",
        says="the samples per second at each batch of cells otherwise equal, with their own interval where it reaches "
        "a quarter of them or more to a side, how many more the largest gives than the next smaller, and whether the "
        "run has a larger one; tested together are all batches of the run, each over the "
        "next smaller",
        only_if="the interval of a ratio of such neighbours, by phase and device, excludes 1",
        order="most series first",
        find=find_batches,
    ),
    Rule(
        id="pipelined",
        title="Pipelined steps",
        kind="finding",
        says="by how much the ratios of frameworks differ where steps run back to back instead of being waited for one "
        "by one, and in which pairs the other side is ahead",
        only_if="two frameworks did the same work both ways, and a ratio differs by 2 % or more",
        order="one sentence",
        is_on_terminal=False,
        find=find_pipelined,
    ),
    Rule(
        id="scaling",
        title="More GPUs",
        kind="finding",
        says="which share of n times one GPU's throughput n GPUs reach; it is not tested against 1",
        only_if="a ratio has an interval",
        order="weak scaling first, most GPUs first",
        find=find_scaling,
    ),
    Rule(
        id="memory",
        title="Memory",
        kind="finding",
        says="on which work on one GPU a program had most in use, and of each program what it had in use and held for "
        "tensors; where it was not seen what was in use, the work with the largest tensors",
        only_if="a framework said what its tensors take",
        order="one sentence",
        is_on_terminal=False,
        find=find_memory,
    ),
    Rule(
        id="roofline",
        title="What limits",
        kind="finding",
        says="how many cells reach half of their nearest roof or more, and which one stays furthest below",
        only_if="a share of a roof is known",
        order="one sentence",
        is_on_terminal=False,
        find=find_roofline,
    ),
    Rule(
        id="device-costs",
        title="Cost, CPU against GPU",
        kind="finding",
        says="what the same samples cost on the CPU over the GPU, at the cheapest offers of the price table",
        only_if="both have a price, and the interval of such a ratio of costs excludes 1",
        order="one sentence",
        find=find_device_costs,
    ),
    Rule(
        id="cost-span",
        title="Cost",
        kind="finding",
        says="of each work (model, phase, input size, classes, data) the cell of which 1,000 samples cost least, how "
        "long it took to start, and what the machine costs an hour",
        only_if="a cell with an interval has a price",
        order="one sentence",
        is_on_terminal=False,
        find=find_cheapest,
    ),
    Rule(
        id="claims",
        title="Published claim",
        kind="finding",
        says="the verdict on what the study's abstract claims; in the claim's own direction (lower, higher) what those "
        "comparisons of the run show that it is about, and the mean or the reason that the verdict rests on",
        only_if="the run has a ratio of what the claim compares, at whatever batch and on whatever hardware",
        order="as in the study, those not tested last",
        find=find_claims,
    ),
    Rule(
        id="tenants",
        title="Sharing",
        kind="finding",
        says="how much tenants of one device get together, over one alone, by way of sharing",
        only_if=DIFFERENCE,
        order="most cells first",
        find=find_tenants,
    ),
    Rule(
        id="changes",
        title="Over the nights",
        kind="finding",
        says="what became slower or faster over the nights",
        only_if="a change was confirmed by measuring again, and its interval excludes 1",
        order="newest first",
        find=find_changes,
    ),
    Rule(
        id="certainty",
        title="Intervals",
        kind="finding",
        says="how wide the intervals of step times are",
        only_if="a step time has an interval",
        order="one sentence",
        find=find_certainty,
    ),
)
RULES = (*FINDINGS, *UNKNOWNS)
