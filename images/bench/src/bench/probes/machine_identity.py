"""Reads what tells a machine from all others: the id of its boot, and ids that outlive a reboot.

/etc/machine-id is not among them: images carry it, and all machines that start from one image would look like one.
"""

import hashlib
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from bench.schema import MachineIdentity, bound_time

# UUIDs and instance ids are nobody's business: what is published with a result is a hash with a key of this tool, as
# machine-id(5) asks for its own id.
HASH_KEY = b"benchmatrix machine identity"
UUID_FILES = (
    "sys/class/dmi/id/product_uuid",  # of the firmware; only root may read it
    "sys/hypervisor/uuid",  # Xen
    "proc/device-tree/vm,uuid",  # KVM on POWER
)
# Instances of EC2's Nitro system, whose tag every user may read:
# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/identify_ec2_instances.html
INSTANCE_TAG = "sys/class/dmi/id/board_asset_tag"
INSTANCE_ID = re.compile(r"i-(?:[0-9a-f]{8}|[0-9a-f]{17})")
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# What boards say that nobody gave a UUID, beside all zeros and all f: https://github.com/osquery/osquery/pull/4374
UNSET_UUIDS = (
    "03000200-0400-0500-0006-000700080009",
    "03020100-0504-0706-0809-0a0b0c0d0e0f",
    "10000000-0000-8000-0040-000000000000",
)
BOOT_TIME = re.compile(r"^btime ([0-9]{1,10})$", re.MULTILINE)
MAC_ADDRESS = re.compile(r"[0-9a-f]{2}(?::[0-9a-f]{2}){5}")
LOCALLY_ADMINISTERED, MULTICAST = 0x02, 0x01
"""Bits of an address's first byte (IEEE 802): hypervisors and containers make up such addresses, and repeat them."""


def read_machine_identity(root: Path = Path("/")) -> MachineIdentity | None:
    """Return what tells the machine from others; None if nothing of it can be read."""
    boot_id = _read_text(root / "proc/sys/kernel/random/boot_id")
    boot_id = boot_id if UUID.fullmatch(boot_id) else ""
    ids = {*_read_uuids(root), *_read_instance_id(root), *_read_mac_addresses(root)}
    if not boot_id and not ids:
        return None
    return MachineIdentity(
        boot_id=boot_id or None,
        booted_at=_read_boot_time(root / "proc/stat"),
        lasting_ids=tuple(sorted(map(hash_id, ids))),
    )


def hash_id(text: str) -> str:
    """Return 16 hex digits by which an id can be recognised and from which it cannot be told."""
    return hashlib.blake2b(text.encode(), key=HASH_KEY, digest_size=8).hexdigest()


def _read_boot_time(stat: Path) -> datetime | None:
    """Return when the boot began, in whole seconds; None if it is not there, or the clock had not been set.

    The kernel changes it only when somebody sets the clock.
    """
    found = BOOT_TIME.search(_read_text(stat))
    booted_at = datetime.fromtimestamp(int(found[1]), UTC) if found else None
    return booted_at if booted_at is None or bound_time(booted_at) == booted_at else None


def _read_uuids(root: Path) -> Iterator[str]:
    for file in UUID_FILES:
        text = _read_text(root / file)
        if UUID.fullmatch(text) and len(set(text)) > 2 and text not in UNSET_UUIDS:  # 2: all zeros or all f, and "-"
            yield text


def _read_instance_id(root: Path) -> Iterator[str]:
    text = _read_text(root / INSTANCE_TAG)
    if INSTANCE_ID.fullmatch(text):
        yield text


def _read_mac_addresses(root: Path) -> Iterator[str]:
    """Yield the addresses that makers gave to network cards; a container sees only interfaces that are made up."""
    for interface in (root / "sys/class/net").glob("*"):
        text = _read_text(interface / "address")
        if not (interface / "device").exists() or not MAC_ADDRESS.fullmatch(text):  # only cards have a device
            continue
        if not int(text[:2], 16) & (LOCALLY_ADMINISTERED | MULTICAST) and text.strip("0:"):
            yield text


def _read_text(file: Path) -> str:
    """Return the text of a file in lower case, stripped; empty if it cannot be read."""
    try:
        return file.read_text(errors="replace").strip().strip("\0").lower()
    except OSError:
        return ""
