"""Say what a run's comparisons show: which framework, device, mode and precision is faster, and by how much."""

from collections.abc import Iterable
from dataclasses import replace

from collector.analysis import Analysis
from collector.answers.answer import Said
from collector.answers.comparison_groups import (
    MIN_WORKS,
    PairGroup,
    list_device_groups,
    list_framework_groups,
    list_mode_groups,
    list_precision_groups,
    name_comparison_anchor,
)
from collector.answers.planned import describe_idle_modes
from collector.answers.ratios import say_times


def find_frameworks_over_all(analysis: Analysis) -> list[Said]:
    """Return for each two frameworks and modes over how many kinds of work which one is faster."""
    groups = analysis.derive(list_framework_groups)
    return _say_all([group for group in groups if group.num_works >= MIN_WORKS], analysis)


def find_devices(analysis: Analysis) -> list[Said]:
    """Return for each GPU, CPU and phase how much the GPU gains."""
    return _say_all(analysis.derive(list_device_groups), analysis)


def find_modes(analysis: Analysis) -> list[Said]:
    """Return for each framework, device and phase what a mode gains over another, and first what was not planned."""
    said = _say_all(analysis.derive(list_mode_groups), analysis)
    idle = describe_idle_modes(analysis)
    if said and idle:
        said[0] = replace(said[0], text=f"{said[0].text} Not planned: {idle}.")
    return said


def find_precisions(analysis: Analysis) -> list[Said]:
    """Return for each framework, device and phase what a precision gains over float32."""
    return _say_all(analysis.derive(list_precision_groups), analysis)


def _say_all(groups: Iterable[PairGroup], analysis: Analysis) -> list[Said]:
    return [
        say_times(
            group.title, group.name_ratios(analysis), group.family, anchor=name_comparison_anchor(group.comparison)
        )
        for group in groups
    ]
