"""Hold the machines of one type against each other by their calibration, and name those that differ."""

from collections.abc import Mapping, Sequence

import pandas as pd

from collector.statistics import Estimate, estimate_machine_effects

MIN_DIFFERENCE = 0.05
"""By how much a machine has to differ to be named: as for clocks, above which repeats were measured on what is in
effect another device (collector.results.summary). That it is no noise is for the p-value to say."""
CALIBRATIONS: Mapping[str, tuple[str, Sequence[str], str]] = {
    "product_factor": (
        "product_flops_per_second",
        ("framework", "precision", "environment_id"),
        "multiplies matrices",
    ),
    "copy_factor": ("copy_bytes_per_second", ("hardware_id", "copy_bytes"), "copies memory"),
}
"""By the column of the factor: the rate, what has to be alike for two rates to be compared, which includes the type of
the machine, and what it does at that rate."""

_PRODUCTS = ("gpu_product_flops_per_second", "cpu_product_flops_per_second")
READ_COLUMNS = tuple(
    dict.fromkeys(
        (
            "machine",
            "copy_bytes_per_second",
            *_PRODUCTS,
            *(name for _, kind, _ in CALIBRATIONS.values() for name in kind),
        )
    )
)
"""The columns of the results that are read here."""


def add_products(results: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with `product_flops_per_second`: of the GPU, or else of the CPUs."""
    of_gpu, of_cpu = _PRODUCTS
    products = results[of_gpu].fillna(results[of_cpu])
    return results.assign(product_flops_per_second=products)


def compare_calibrations(sound: pd.DataFrame, name: str) -> dict[str, Estimate]:
    """Return the factor `name` (of CALIBRATIONS) of each machine: its rate over that of the others of its type.

    `sound`: repeats as `add_products` returns them; machines of which only one has measured a kind are left out.
    """
    column, kind, _ = CALIBRATIONS[name]
    return compare_machines(sound, column, kind)


def compare_machines(sound: pd.DataFrame, column: str, kind: Sequence[str]) -> dict[str, Estimate]:
    """Return the factor of each machine on `column`, among repeats that are alike in the columns `kind`."""
    rows = sound[sound[column].notna()]
    kinds = rows.groupby(list(kind), sort=False, dropna=False).ngroup()
    return estimate_machine_effects(rows[column].to_list(), kinds.to_list(), rows["machine"].to_list())


def describe_deviations(sound: pd.DataFrame) -> dict[str, str]:
    """Return in words how each machine differs by its calibration from the others of its type, if it does.

    A machine differs that is MIN_DIFFERENCE faster or slower, and whose interval together with those of the others
    excludes 1. Without repeats to tell, none is said to.
    """
    rows = add_products(sound)
    found: dict[str, list[str]] = {}
    for name, (_, _, words) in CALIBRATIONS.items():
        tested = {
            machine: factor
            for machine, factor in compare_calibrations(rows, name).items()
            if factor.p_value is not None
        }
        for machine, factor in tested.items():
            is_large = not 1 / (1 + MIN_DIFFERENCE) < factor.center < 1 + MIN_DIFFERENCE
            if is_large and factor.excludes_one(len(tested)):
                found.setdefault(machine, []).append(f"{words} {_quote(factor, len(tested))} as fast")
    return {machine: f"{machine} {' and '.join(words)}" for machine, words in sorted(found.items())}


def _quote(factor: Estimate, num_intervals: int) -> str:
    """Return `1.067x (1.041 to 1.094)`, with the interval that holds together with those of the other machines."""
    low, high = factor.find_joint_interval(num_intervals) or (factor.center, factor.center)
    return f"{factor.center:.3f}x ({low:.3f} to {high:.3f})"
