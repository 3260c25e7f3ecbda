"""Measures what the detector of `benchmatrix watch` finds in public series of real benchmarks, beside other methods.

Prints the table of docs/nights.md as Markdown. benchmarks/series_data.py says what a folder of series holds. They have
one value a night and nothing is measured again, so an alarm is what a look says by itself: one series in one night,
taken for the newest. From the checkout, minutes; `--rounds 10` takes all stretches:
.venv/bin/python benchmarks/watch_series.py ../shared/series-data --otava PYTHON
"""

import argparse
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from other_methods import FIRST_LOOK, ask_otava, find_with_windows  # noqa: E402
from series_data import (  # noqa: E402
    CHANGE_AT,
    NUM_NIGHTS,
    PLANTED_EVERY,
    SEED,
    Table,
    cut_known,
    cut_stretches,
    is_stationary,
    measure_noise,
    read_series,
)

from collector.nights.detection import (  # noqa: E402
    DECISION_P_VALUE,
    SUSPICION_P_VALUE,
    BoolArray,
    FloatArray,
    IntArray,
    look_for_changes,
)
from night_scenarios import take_first  # noqa: E402

WITHIN = (5, NUM_NIGHTS - CHANGE_AT)
"""Nights in which a change has to be found. Two windows as Perfherder has them need twelve after it."""
STEPS = (0.01, 0.02, 0.05, 0.1)
TARGET_STEP, LOW_NOISE = 0.05, 0.02
"""The target is for this step, where the noise is below this."""
BLOCKS = (5, 1)
"""Nights that stay together where their order is permuted."""
OTAVA_P_VALUES = (1e-3, 1e-5, 1e-7, 1e-9)
NUM_TIMED = 10_000
NUM_RESAMPLED = 2_000
NEVER = 10_000
OWN = {f"`watch`, p < {p_value:g}": p_value for p_value in (SUSPICION_P_VALUE, DECISION_P_VALUE)}
ALONE = ", each series by itself"
DECIDED = list(OWN)[1]
GROUPS, ALL, AFTER = "groups", "all", "nights after the change"
Find = Callable[[FloatArray, int], list[int]]
"""Logs and the number of nights at the first look in, the night of the first alarm of each out; -1: none."""
Firsts = dict[str, IntArray]
"""By method the night of each chosen stretch's first alarm to the worse; NEVER: none."""


def main() -> None:
    """Read the series, ask every method, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--otava", metavar="PYTHON", help="an interpreter that has apache-otava 0.8")
    parser.add_argument("--rounds", type=int, default=1, help="tenths of the stretches that are taken, 1 to 10")
    arguments = parser.parse_args()
    others: dict[str, Find] = {"t-test of two windows, t > 7": find_with_windows}
    for p_value in OTAVA_P_VALUES if arguments.otava else ():
        others[f"apache-otava 0.8, p < {p_value:g}"] = lambda logs, first_look, p_value=p_value: ask_otava(
            arguments.otava, logs, p_value, first_look
        )
    series = read_series(arguments.folder)
    everything = [cut_stretches(source, own) for source, own in series.items()]
    tables = [some for table in everything if (some := table.take(is_stationary(table.logs))).groups]
    total, kept = (sum(len(table.groups) for table in some) for some in (everything, tables))
    print(f"{sum(map(len, series.values()))} series of {len(series)} sources: {total} stretches, {kept} stationary")
    print("\n".join(list_lines(tables, cut_known(series, arguments.folder), others, arguments.rounds)))
    logs = np.concatenate([table.logs for table in tables])
    many = replace(tables[0], logs=logs[np.arange(NUM_TIMED) % len(logs)], groups=("one",) * NUM_TIMED).make_nights()
    begin = read_cpu_seconds()
    look_for_changes(many)
    print(
        f"`watch`: {read_cpu_seconds() - begin:.2f} s of CPU for one look at {NUM_TIMED} series of {NUM_NIGHTS} nights"
    )


def find_own(table: Table, first_look: int) -> Firsts:
    """Look with the detector of `watch` at every night.

    Of decisions, GROUPS has the first ones of all stretches of a group at once, ALL those of the stretches that are not
    chosen, too, and AFTER how many nights each of ALL rests on.
    """
    nights, names = table.make_nights(), list(dict.fromkeys(table.groups))
    firsts = {name: np.full(len(table.groups), NEVER) for name in OWN} | {GROUPS: np.full(len(names), NEVER)}
    after = np.zeros(len(table.groups), dtype=np.int64)
    for number in range(first_look, NUM_NIGHTS + 1):
        for seen in look_for_changes(take_first(nights, number)):
            row = names.index(table.groups[seen.rows[0]]) if seen.is_of_group else seen.rows[0]
            for name, p_value in ({GROUPS: DECISION_P_VALUE} if seen.is_of_group else OWN).items():
                if seen.shift > 0 and seen.p_value < p_value and firsts[name][row] == NEVER:
                    firsts[name][row] = number - 1
                    after[row] = seen.num_after if name == DECIDED else after[row]
    return firsts | {name: firsts[name][table.chosen] for name in OWN} | {ALL: firsts[DECIDED], AFTER: after}


def find_all(
    tables: Sequence[Table], others: Mapping[str, Find], spent: dict[str, FloatArray], first_look: int
) -> Firsts:
    """Return the first alarms by every method; `spent` counts seconds and looks."""
    found: defaultdict[str, list[IntArray]] = defaultdict(list)
    for table in tables:
        for each, ending in ((table, ""), (table.separate(), ALONE)):
            begin = read_cpu_seconds()
            for name, firsts in find_own(each, first_look).items():
                found[name + ending].append(firsts)
                looks = len(each.groups) * (NUM_NIGHTS + 1 - first_look)
                spent[name + ending] += np.array([read_cpu_seconds() - begin, looks])
    logs = np.concatenate([table.logs[table.chosen] for table in tables])
    for name, find in others.items():
        begin = read_cpu_seconds()
        firsts = np.array(find(logs, first_look))
        found[name].append(np.where(firsts < 0, NEVER, firsts))
        spent[name] += np.array([read_cpu_seconds() - begin, count_looks(found[name][0], first_look)])
    return {name: np.concatenate(parts) for name, parts in found.items()}


def read_cpu_seconds() -> float:
    """Return the CPU time of this process and of those it waited for."""
    return sum(os.times()[:4])


def count_looks(firsts: IntArray, first_look: int = FIRST_LOOK) -> int:
    """Return how many looks were taken until each series had its first alarm, or to its end."""
    return int((np.minimum(firsts, NUM_NIGHTS - 1) + 2 - first_look).sum())


def list_lines(tables: Sequence[Table], known: Table, others: Mapping[str, Find], num_rounds: int) -> Iterator[str]:
    """Yield what the table is of, and its lines."""
    spent: dict[str, FloatArray] = defaultdict(lambda: np.zeros(2))
    sampled = [table.choose(range(num_rounds)) for table in tables]
    orders = [sampled, *([table.permute(size) for table in sampled] for size in BLOCKS)]
    quiet = [find_all(order, others, spent, FIRST_LOOK) for order in orders]
    rounds = np.concatenate([np.flatnonzero(table.chosen) % PLANTED_EVERY for table in sampled])
    names = (*OWN, *(name + ALONE for name in OWN), *others)
    planted = {name: np.full((len(STEPS), len(rounds)), NEVER) for name in names}
    for number in range(num_rounds):
        for index, step in enumerate(STEPS):
            found = find_all([t.choose([number]).plant(step) for t in tables], others, spent, CHANGE_AT + 1)
            for name, firsts in planted.items():
                firsts[index, rounds == number] = found[name]
    documented = find_all([known], others, spent, FIRST_LOOK)
    is_calm = np.concatenate([measure_noise(table.logs[table.chosen]) for table in sampled]) < LOW_NOISE
    sources = np.repeat(np.arange(len(tables)), [table.chosen.sum() for table in sampled])
    yield f"{len(rounds)} stretches of {len(set(sources))} sources, {is_calm.sum()} with a noise < {LOW_NOISE:g}"
    for order, found in zip(("as measured", *(f"in blocks of {size}" for size in BLOCKS)), quiet, strict=True):
        alarms = found[ALL] < NEVER
        rate, lone = 1e4 * alarms.sum() / count_looks(found[ALL]), (found[AFTER][alarms] == 1).sum()
        yield f"{DECIDED} in all {len(alarms)} stretches, {order}: {rate:.1f} false alarms in 10,000 looks, "
        yield f"  {lone} of {alarms.sum()} by one night; {(found[GROUPS] < NEVER).sum()} alarms of groups at once"
    yield (
        "| method | false alarms in 10,000 looks: as measured, in blocks of 5, one by one "
        "| steps of 1, 2, 5, 10 % found within 5 nights, % | low noise: of 5 %, alarm before "
        "| precision, recall, F1: within 5 nights | within 20 | known changes: alarm before, within 5, within 20 "
        "| CPU seconds for 10,000 looks |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for name, firsts in planted.items():
        rates = [1e4 * (found[name] < NEVER).sum() / count_looks(found[name]) for found in quiet]
        before = quiet[0][name] < CHANGE_AT
        in_time = [~before & (firsts < CHANGE_AT + within) for within in WITHIN]
        at, of = documented[name], len(known.groups)
        seconds, looks = spent[name]
        cells = (
            name,
            ", ".join(f"{rate:.1f}" for rate in rates),
            ", ".join(f"{100 * share:.0f}" for share in in_time[0].mean(axis=1)),
            f"{100 * in_time[0][STEPS.index(TARGET_STEP), is_calm].mean():.0f}, {100 * before[is_calm].mean():.0f}",
            *(describe_score(before, found, sources) for found in in_time),
            f"{(at < CHANGE_AT).sum()}, "
            + ", ".join(str(((at >= CHANGE_AT) & (at < CHANGE_AT + within)).sum()) for within in WITHIN)
            + f" of {of}",
            f"{1e4 * seconds / looks:.2f}",
        )
        yield f"| {' | '.join(cells)} |"


def describe_score(before: BoolArray, found: BoolArray, sources: IntArray) -> str:
    """Return precision, recall and F1, and the 95 % interval of F1 over sources drawn anew.

    A stretch counts once with every step: as a false alarm if the first alarm is before the step, as found if it is in
    time. `found` has shape (steps, stretches).
    """
    counts = np.stack(
        [
            np.bincount(sources, weights)
            for weights in (found.sum(axis=0), before * len(found), np.full(before.shape, len(found)))
        ]
    )
    number = counts.shape[1]
    draws = np.random.default_rng(SEED).multinomial(number, np.full(number, 1 / number), NUM_RESAMPLED) @ counts.T
    (right, wrong, asked), (rights, wrongs, all_asked) = counts.sum(axis=1), draws.T
    low, high = np.quantile(2 * rights / np.maximum(1, rights + wrongs + all_asked), (0.025, 0.975))
    precision = right / max(1, right + wrong)
    return f"{precision:.2f}, {right / asked:.2f}, {2 * right / (right + wrong + asked):.2f} ({low:.2f} to {high:.2f})"


if __name__ == "__main__":
    main()
