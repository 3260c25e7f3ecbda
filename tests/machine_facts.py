"""Make the facts of a machine for tests, which name only those that they care about."""

from typing import Any

from bench.schema import Machine


def make_machine(**overrides: Any) -> Machine:
    """Return two hyperthreads of one core of a cloud machine that has two cores."""
    fields: dict[str, Any] = {
        "vendor": "Amazon EC2",
        "product": "g4dn.xlarge",
        "is_virtual": True,
        "num_online_cores": 4,
        "visible_cores": "0-1",
        "num_physical_cores": 1,
        "num_sockets": 1,
        "num_numa_nodes": 1,
        "threads_per_core": 2,
        "instruction_sets": ("avx2", "avx512f"),
    }
    return Machine(**(fields | overrides))
