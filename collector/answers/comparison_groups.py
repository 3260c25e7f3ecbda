"""Group the pairs of a run's comparisons by what is compared: two programs over all work, two modes of a framework."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from collector.analysis import Analysis
from collector.answers.anchors import name_anchor
from collector.answers.measured import find_short_names
from collector.answers.pairs import Pair, group_pairs, list_usable_pairs, sort_groups, take_judged
from collector.answers.ratios import Family, JudgedRatio, shorten_all
from collector.comparisons import DEVICES, FP32, FRAMEWORKS, MODES, PRECISIONS, WITHOUT_TF32, Comparison
from collector.labels import DEVICE_NAMES, FRAMEWORK_NAMES, PHASE_NAMES, label_hardware
from collector.ratio_verdicts import count_tested
from collector.results.frames import Row
from collector.tables.comparisons import HEADINGS

MIN_WORKS = 2
"""Kinds of work that are worth a sentence over all of them: one has its row in the table of the fastest."""
TURNED_MODES = ("unfused", "fused-norm")
"""Modes with one switch of the framework turned to see what it is worth; nobody trains in them."""
XLA_ALONE = ("compiled", "graph")
"""Modes of TensorFlow that differ in XLA and nothing else."""


@dataclass(frozen=True, kw_only=True)
class PairGroup:
    """The pairs of a comparison that one sentence is about; a difference is shown in one of them at least."""

    title: str
    """What is compared: `TensorFlow, inference: compiled against graph`."""
    pairs: tuple[Pair, ...]
    comparison: Comparison
    size: int
    """How many ratios of the comparison were tested together."""
    named: frozenset[str]
    """The parts of a pair's name that the title says."""

    @property
    def family(self) -> Family:
        """Return the words for the ratios of the group, and how many ratios were tested together."""
        row = self.pairs[0].row
        subject, reference = str(row["subject"]), str(row["reference"])
        longer = (subject, reference) if self.comparison.measure == "time ratio" else (reference, subject)
        return Family(
            name=self.comparison.name,
            measure=self.comparison.measure,
            above=longer[0],
            below=longer[1],
            size=self.size,
        )

    @property
    def num_works(self) -> int:
        """How many kinds of work (model, phase, hardware) the pairs are of."""
        return len({_name_work(pair.row) for pair in self.pairs})

    def name_ratios(self, analysis: Analysis) -> list[JudgedRatio]:
        """Return the ratios, named by what neither the title nor the words on what was measured say."""
        return shorten_all(take_judged(self.pairs), find_short_names(analysis), self.named)


def list_framework_groups(analysis: Analysis) -> list[PairGroup]:
    """Group the pairs by both frameworks and their modes; the groups with the most pairs come first."""
    pairs = list_usable_pairs(analysis.comparisons[FRAMEWORKS.name], FRAMEWORKS)
    return _make_groups(pairs, analysis, FRAMEWORKS, _name_sides)


def list_device_groups(analysis: Analysis) -> list[PairGroup]:
    """Group the pairs of a GPU and a CPU by both of them and by phase."""
    pairs = list_usable_pairs(analysis.comparisons[DEVICES.name], DEVICES)
    return _make_groups(pairs, analysis, DEVICES, _name_devices)


def list_mode_groups(analysis: Analysis) -> list[PairGroup]:
    """Group the pairs of modes by both modes, framework, phase, and GPU or CPU; those of XLA alone come first."""
    pairs = list_usable_pairs(analysis.comparisons[MODES.name], MODES)
    name = partial(_name_group, has_hardware=_has_several(pairs))
    groups = _make_groups(pairs, analysis, MODES, name, _list_program_parts)
    return sorted(groups, key=lambda group: not _is_xla_alone(group.pairs[0].row))


def list_precision_groups(analysis: Analysis) -> list[PairGroup]:
    """Group the pairs of precisions by both precisions, framework, mode, phase, and GPU or CPU."""
    pairs = list_usable_pairs(analysis.comparisons[PRECISIONS.name], PRECISIONS)
    name = partial(_name_group, has_hardware=_has_several(pairs))
    return _make_groups(pairs, analysis, PRECISIONS, name, _list_program_parts)


def name_comparison_anchor(comparison: Comparison) -> str:
    """Return the anchor of a comparison's table."""
    return name_anchor(HEADINGS[comparison.name].caption)


def _list_nothing(_: Row) -> Collection[str]:
    return ()


def _make_groups(
    pairs: Sequence[Pair],
    analysis: Analysis,
    comparison: Comparison,
    name: Callable[[Row], str],
    list_named: Callable[[Row], Collection[str]] = _list_nothing,
) -> list[PairGroup]:
    """Return a group for each title that `name` gives, of those in which a difference was shown.

    `list_named`: the parts of a pair's name that the title says. Groups with the most pairs come first, those of
    TURNED_MODES after all others.
    """
    size = count_tested(analysis.comparisons[comparison.name])
    return [
        PairGroup(
            title=title,
            pairs=tuple(found),
            comparison=comparison,
            size=size,
            named=frozenset(list_named(found[0].row)),
        )
        for title, found in _put_turned_last(sort_groups(group_pairs(pairs, name)))
    ]


def _put_turned_last(groups: Iterable[tuple[str, list[Pair]]]) -> list[tuple[str, list[Pair]]]:
    return sorted(groups, key=lambda item: _has_turned_mode(item[1][0].row))


def _list_modes(row: Row) -> list[object]:
    return [row.get(name) for name in ("mode", "mode_subject", "mode_reference")]


def _has_turned_mode(row: Row) -> bool:
    return any(mode in TURNED_MODES for mode in _list_modes(row))


def _is_xla_alone(row: Row) -> bool:
    return row["framework"] == "tensorflow" and (row["mode_subject"], row["mode_reference"]) == XLA_ALONE


def _list_program_parts(row: Row) -> Collection[str]:
    """Return the parts of a pair's name that the title of a group of modes or precisions says."""
    return (DEVICE_NAMES[row["device"]], _name_framework(row))


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
    alone = ", XLA alone" if "mode_subject" in row and _is_xla_alone(row) else ""
    exact = f" {WITHOUT_TF32}" if row["reference"] == FP32 else ""
    return f"{_name_framework(row)}, {PHASE_NAMES[row['phase']]}{hardware}: {_name_sides(row)}{exact}{alone}"


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
