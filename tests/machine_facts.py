"""Make the facts of a machine for tests, which name only those that they care about."""

from datetime import UTC, datetime, timedelta
from typing import Any

from bench.schema import Machine, MachineIdentity


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


def make_identity(boot: str = "a", *ids: str, minutes: float = 0) -> MachineIdentity:
    """Return what a machine says of its boot, which began so many minutes after midnight, and of `ids` that last."""
    booted_at = datetime(2026, 11, 21, tzinfo=UTC) + timedelta(minutes=minutes)
    return MachineIdentity(boot_id=boot * 8, booted_at=booted_at, lasting_ids=ids)
