"""The rules of what a run does not say, in the order in which it is shown."""

from collector.answers.answer import Rule
from collector.answers.limit_rules import find_disagreement
from collector.answers.planning_rules import find_libraries, find_no_prices, find_not_planned
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
        id="repeats-disagree",
        kind="unknown",
        says="in which cells repeats on one machine differ by more than their steps spread",
        only_if="nine tenths of the steps of each slower repeat take over 5 % longer than nine tenths of those of each "
        "faster one",
        order="one sentence",
        find=find_disagreement,
    ),
    Rule(
        id="libraries",
        kind="unknown",
        says="in which libraries and settings the frameworks differ, and that Keras computes a batch norm from several "
        "operations",
        only_if="their times were compared, and CUDA, cuDNN, the image layout or the search of algorithms differ, or a "
        "model has batch norms",
        order="one sentence",
        find=find_libraries,
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
        id="not-planned",
        kind="unknown",
        says="which combinations of the run's models, phases, devices and frameworks were not planned in any batch, "
        "and what measures them",
        only_if="there is one, modes with one switch turned aside",
        order="one sentence",
        find=find_not_planned,
    ),
    Rule(
        id="no-prices",
        kind="unknown",
        says="that no price was given, which command computes costs, and what is known without",
        only_if="there is no price table",
        order="one sentence",
        find=find_no_prices,
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
