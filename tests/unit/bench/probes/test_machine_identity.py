"""What tells a machine from others of its name, from made-up /proc and /sys."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from bench.probes.machine import hash_id, read_machine_identity
from bench.schema import MachineIdentity
from file_trees import write_tree

BOOT = {"proc/sys/kernel/random/boot_id": "3f2a9c1d-0000-4000-8000-00000000000a\n"}


def test_a_boot_is_its_id_and_when_it_began(tmp_path: Path) -> None:
    write_tree(tmp_path, BOOT | {"proc/stat": "cpu  1 2 3\nctxt 5\nbtime 1795300106\nprocesses 9\n"})
    assert read_machine_identity(tmp_path) == MachineIdentity(
        boot_id="3f2a9c1d-0000-4000-8000-00000000000a",
        booted_at=datetime(2026, 11, 21, 22, 28, 26, tzinfo=UTC),  # `date -u -d @1795300106`
    )


@pytest.mark.parametrize(
    ("file", "text", "known"),
    [
        ("sys/class/dmi/id/product_uuid", "EC2E1916-9099-7CAF-FD21-012345ABCDEF\n", True),
        ("sys/class/dmi/id/product_uuid", "00000000-0000-0000-0000-000000000000\n", False),
        ("sys/class/dmi/id/product_uuid", "03000200-0400-0500-0006-000700080009\n", False),
        ("sys/hypervisor/uuid", "ec2e1916-9099-7caf-fd21-012345abcdef\n", True),
        ("proc/device-tree/vm,uuid", "ec2e1916-9099-7caf-fd21-012345abcdef\0", True),
        ("sys/class/dmi/id/board_asset_tag", "i-0af01c0123456789a\n", True),
        ("sys/class/dmi/id/board_asset_tag", "Default string\n", False),
        ("etc/machine-id", "0af01c0123456789a0af01c012345678\n", False),
    ],
)
def test_ids_that_outlive_a_reboot_are_kept_as_hashes(tmp_path: Path, file: str, text: str, known: bool) -> None:
    write_tree(tmp_path, BOOT | {file: text})
    identity = read_machine_identity(tmp_path)
    assert identity is not None
    assert identity.lasting_ids == ((hash_id(text.strip().strip("\0").lower()),) if known else ())
    assert "1916" not in identity.model_dump_json()
