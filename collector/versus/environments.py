"""Name what differs between the environments of two sides, and say whether that is hardware."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from bench.schema import Environment
from collector.results.collection import Collection
from collector.versus.document import EnvironmentDifference
from collector.versus.selections import describe_value

Row = dict[str, Any]

FROM_ROWS: Mapping[str, str] = {
    "GPU": "gpu_name",
    "power limit of the GPUs, W": "gpu_power_limit_watts",
    "CPU": "cpu_model",
    "threads": "num_threads",
    "machine type": "instance_type",
    "driver": "driver_version",
    "image": "image",
    "Python": "python_version",
    "spot": "is_spot",
    "region": "region",
    "zone": "zone",
    "kubelet": "kubelet_version",
    "CPU manager": "cpu_manager_policy",
    "host": "host",
    "machine (host and GPUs)": "machine",
}
"""What each repeat says, by the column that it is in."""
FROM_ENVIRONMENTS: Mapping[str, Callable[[Environment], object]] = {
    "cores": lambda found: found.num_visible_cores,
    "CPU quota": lambda found: found.cpu_quota_cores if found.cpu_quota_cores is not None else "none",
    "CPU governor": lambda found: found.cpu_governor,
    "memory, bytes": lambda found: found.memory_total_bytes,
    "machine (firmware)": lambda found: found.machine and f"{found.machine.vendor} {found.machine.product}",
    "MIG profile": lambda found: found.gpu and found.gpu.mig_profile,
    "ECC": lambda found: found.gpu and found.gpu.ecc_enabled,
    "PCIe lanes": lambda found: found.gpu and found.gpu.pcie_width,
    "CUDA": lambda found: found.gpu and found.gpu.cuda_version,
    "cuDNN": lambda found: found.gpu and found.gpu.cudnn_version,
    "kernel": lambda found: found.kernel,
    "revision of the tool where it measured": lambda found: found.git_revision,
}
"""What the first repeat of each environment says."""
HARDWARE = (
    *("GPU", "CPU", "cores", "CPU quota", "threads", "machine type", "machine (firmware)", "MIG profile", "ECC"),
    "PCIe lanes",
)
"""Facts that make a comparison one of machines. The power limit is none: it is a setting, and a lowered one makes a
measurement `throttled`."""
ORDER = (*HARDWARE, "power limit of the GPUs, W", "driver", "CUDA", "cuDNN", "image")
"""What is named first; the rest follows as it comes, hosts last."""
SETTING = "setting "
LAST = ("region", "zone", "host", "machine (host and GPUs)")


def list_differences(
    rows_a: Sequence[Row], rows_b: Sequence[Row], collections: Sequence[Collection]
) -> list[EnvironmentDifference]:
    """Return what differs between the repeats of two sides, hardware first.

    A fact differs where the sides have not the same values of it, be it one or several. A value that one repeat of
    several lacks is unknown and is no difference; one that a whole side lacks is named as not recorded.
    """
    environments = {
        (collection.run.run_id, environment_id): environment
        for collection in collections
        for environment_id, environment in collection.environments.items()
    }
    facts = [_list_facts(rows, environments, collections) for rows in (rows_a, rows_b)]
    are_others = {row["framework"] for row in rows_a}.isdisjoint(row["framework"] for row in rows_b)
    own = {
        name for one in environments.values() for name in (*one.versions, *(f"{SETTING}{key}" for key in one.settings))
    }
    differences = []
    for name in sorted(facts[0].keys() | facts[1].keys(), key=_rank):
        a, b = (tuple(sorted(found.get(name, ()))) for found in facts)
        if a != b:
            is_own = are_others and name in own and not (a and b)
            differences.append(
                EnvironmentDifference(fact=name, a=a, b=b, is_hardware=name in HARDWARE, is_of_one_framework=is_own)
            )
    return differences


def _list_facts(
    rows: Sequence[Row], environments: Mapping[tuple[str, str], Environment], collections: Sequence[Collection]
) -> dict[str, set[str]]:
    """Return each fact with the values that the repeats have of it; a fact that none of them says is left out."""
    facts = {
        fact: {describe_value(row[column]) for row in rows if row[column] is not None}
        for fact, column in FROM_ROWS.items()
    }
    for key in {(row["run_id"], row["environment_id"]) for row in rows}:
        for fact, value in _describe_environment(environments[key]) if key in environments else ():
            facts.setdefault(fact, set()).add(value)
    run_ids = {row["run_id"] for row in rows}
    runs = [collection.run for collection in collections if collection.run.run_id in run_ids]
    facts["version of the tool"] = {run.tool_version for run in runs}
    facts["revision of the tool that planned"] = {run.git_revision for run in runs if run.git_revision is not None}
    return {fact: values for fact, values in facts.items() if values}


def _describe_environment(environment: Environment) -> Iterator[tuple[str, str]]:
    facts: dict[str, object] = {fact: read(environment) for fact, read in FROM_ENVIRONMENTS.items()}
    facts |= environment.versions
    facts |= {f"{SETTING}{name}": value for name, value in environment.settings.items()}
    return ((fact, describe_value(value)) for fact, value in facts.items() if value is not None)


def _rank(fact: str) -> tuple[int, str]:
    if fact in ORDER:
        return ORDER.index(fact), fact
    return len(ORDER) + (fact in LAST), fact
