"""What a run's comparisons say: which framework, device, mode and precision is faster, and by how much."""

from collections.abc import Callable, Collection, Sequence
from functools import partial

from collector.analysis import Analysis
from collector.answers.anchors import name_anchor
from collector.answers.answer import Said
from collector.answers.measured import find_short_names
from collector.answers.pairs import (
    Pair,
    count_tested,
    group_pairs,
    list_usable_pairs,
    sort_groups,
    take_judged,
)
from collector.answers.ratios import Family, say_times
from collector.comparisons import DEVICES, FRAMEWORKS, MODES, PRECISIONS, Comparison
from collector.labels import DEVICE_NAMES, FRAMEWORK_NAMES, PHASE_NAMES, label_hardware
from collector.results.frames import Row
from collector.tables.comparisons import HEADINGS

MIN_WORKS = 2
"""Kinds of work that are worth a sentence over all of them: one has its row in the table of the fastest."""
TURNED_MODES = ("unfused", "fused-norm")
"""Modes with one switch of the framework turned to see what it is worth; nobody trains in them."""


def find_frameworks_over_all(analysis: Analysis) -> list[Said]:
    """Return for each two frameworks and modes over how many kinds of work which one is faster."""
    pairs = list_usable_pairs(analysis.comparisons[FRAMEWORKS.name], FRAMEWORKS)
    groups = [
        (sides, found)
        for sides, found in _sort_by_modes(group_pairs(pairs, _name_sides))
        if len({_name_work(pair.row) for pair in found}) >= MIN_WORKS
    ]
    return [_say(sides, found, analysis, FRAMEWORKS) for sides, found in groups]


def find_devices(analysis: Analysis) -> list[Said]:
    """Return for each GPU, CPU and phase how much the GPU gains."""
    pairs = list_usable_pairs(analysis.comparisons[DEVICES.name], DEVICES)
    return _say_groups(pairs, analysis, DEVICES, _name_devices)


def find_modes(analysis: Analysis) -> list[Said]:
    """Return for each framework, device and phase what a mode gains over another."""
    pairs = list_usable_pairs(analysis.comparisons[MODES.name], MODES)
    name = partial(_name_group, has_hardware=_has_several(pairs))
    return _say_groups(pairs, analysis, MODES, name, _list_program_parts)


def find_precisions(analysis: Analysis) -> list[Said]:
    """Return for each framework, device and phase what a precision gains over float32."""
    pairs = list_usable_pairs(analysis.comparisons[PRECISIONS.name], PRECISIONS)
    name = partial(_name_group, has_hardware=_has_several(pairs))
    return _say_groups(pairs, analysis, PRECISIONS, name, _list_program_parts)


def name_comparison_anchor(comparison: Comparison) -> str:
    """Return the anchor of a comparison's table."""
    return name_anchor(HEADINGS[comparison.name].caption)


def _list_program_parts(row: Row) -> Collection[str]:
    """Return the parts of a pair's name that `_name_program` says."""
    return (DEVICE_NAMES[row["device"]], _name_framework(row))


def _list_nothing(_: Row) -> Collection[str]:
    return ()


def _say_groups(
    pairs: Sequence[Pair],
    analysis: Analysis,
    comparison: Comparison,
    name: Callable[[Row], str],
    list_named: Callable[[Row], Collection[str]] = _list_nothing,
) -> list[Said]:
    """Return a sentence for each group of pairs that `name` gives one title, of which a difference was shown.

    `list_named`: the parts of a pair's name that the title says.
    """
    groups = _sort_by_modes(group_pairs(pairs, name))
    return [_say(title, found, analysis, comparison, list_named(found[0].row)) for title, found in groups]


def _say(
    title: str, pairs: Sequence[Pair], analysis: Analysis, comparison: Comparison, named: Collection[str] = ()
) -> Said:
    family = make_family(comparison, pairs[0].row, count_tested(analysis.comparisons[comparison.name]))
    return say_times(
        title,
        take_judged(pairs),
        family,
        anchor=name_comparison_anchor(comparison),
        named=named,
        names=find_short_names(analysis),
    )


def make_family(comparison: Comparison, row: Row, size: int) -> Family:
    """Return the words for the ratios of a comparison whose pairs have the sides of `row`."""
    subject, reference = str(row["subject"]), str(row["reference"])
    longer = (subject, reference) if comparison.measure == "time ratio" else (reference, subject)
    return Family(name=comparison.name, measure=comparison.measure, above=longer[0], below=longer[1], size=size)


def _sort_by_modes(groups: dict[str, list[Pair]]) -> list[tuple[str, list[Pair]]]:
    """Return the groups with a difference: those with the most pairs first, after all others those of TURNED_MODES."""
    return sorted(sort_groups(groups), key=lambda item: _has_turned_mode(item[1][0].row))


def _has_turned_mode(row: Row) -> bool:
    modes = (row.get(name) for name in ("mode", "mode_subject", "mode_reference"))
    return any(mode in TURNED_MODES for mode in modes)


def _name_sides(row: Row) -> str:
    return f"{row['subject']} against {row['reference']}"


def _name_work(row: Row) -> str:
    return f"{row['model']} {row['phase']} on {_name_hardware(row)}"


def _has_several(pairs: Sequence[Pair]) -> bool:
    """Return whether the pairs are of several kinds of GPU or CPU, so that a sentence has to name its own."""
    return len({_name_hardware(pair.row) for pair in pairs}) > 1


def _name_group(row: Row, *, has_hardware: bool) -> str:
    """Return `PyTorch, training: compiled against eager`, with the GPU or CPU where there are several."""
    hardware = f" on {_name_hardware(row)}" if has_hardware else ""
    return f"{_name_framework(row)}, {PHASE_NAMES[row['phase']]}{hardware}: {_name_sides(row)}"


def _name_framework(row: Row) -> str:
    """Return the framework, with its mode where both sides have the same."""
    mode = f" {row['mode']}" if "mode" in row else ""
    return f"{FRAMEWORK_NAMES[row['framework']]}{mode}"


def _name_hardware(row: Row) -> str:
    """Return the GPU of a GPU cell, the CPU of a CPU cell."""
    if row["device"] == "gpu":
        return str(row["gpu_name_subject"])
    return label_hardware(row["cpu_model_subject"], row["num_threads_subject"])


def _name_devices(row: Row) -> str:
    cpu = label_hardware(row["cpu_model_reference"], row["num_threads_reference"])
    return f"{row['gpu_name_subject']} against {cpu or DEVICE_NAMES['cpu']}, {PHASE_NAMES[row['phase']]}"
