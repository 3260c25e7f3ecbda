"""Records the environment of a repeat: machine, libraries, switches that change times, and where a tenant runs.

What tells a machine from all others: the id of its boot, and ids that outlive a reboot. /etc/machine-id is not among
them: images carry it, and all machines that start from one image would look like one.
"""

import hashlib
import os
import platform
import re
import socket
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import groupby
from pathlib import Path

from bench.frameworks.interface import Framework
from bench.probes.cpu import (
    SYSTEM_CPU,
    list_own_pids,
    list_physical_cores,
    parse_cpu_list,
    parse_cpuinfo,
    read_cpu_model,
    read_cpu_quota_cores,
)
from bench.probes.cuda import read_mps_state
from bench.probes.gpu import find_first_uuid, read_gpus
from bench.probes.memory import read_memory_limit_bytes, read_memory_total_bytes
from bench.registry.plugins import read_plugin_versions
from bench.schema import Device, Environment, Machine, MachineIdentity, TenantPlace, bound_time
from bench.worker.compilers import read_compiler_version
from bench.worker.request import Order

# What oneDNN, OpenBLAS, MKL and Eigen choose their kernels by, as the kernel names it in /proc/cpuinfo: x86, then ARM.
INSTRUCTION_SETS = (
    *("avx", "f16c", "fma", "avx2", "avx_vnni", "avx512f", "avx512bw", "avx512vl", "avx512_vnni", "avx512_bf16"),
    *("avx512_fp16", "amx_tile", "amx_int8", "amx_bf16", "amx_fp16"),
    *("asimd", "asimdhp", "asimddp", "bf16", "i8mm", "sve", "sve2", "sme"),
)


def read_machine(root: Path = Path("/"), cores: Collection[int] | None = None) -> Machine:
    visible = os.sched_getaffinity(0) if cores is None else cores
    system = root / "sys/devices/system"
    fields = parse_cpuinfo(_read_text(root / "proc/cpuinfo") or "")
    flags = set(fields.get("flags", fields.get("Features", "")).split())
    physical = list_physical_cores(visible, system / "cpu")
    sockets = {_read_text(system / f"cpu/cpu{core}/topology/physical_package_id") for core in visible}
    nodes = [parse_cpu_list(_read_text(node / "cpulist") or "") for node in system.glob("node/node[0-9]*")]
    is_virtual = "hypervisor" in flags or (root / "sys/hypervisor/type").exists()  # the latter: Xen
    return Machine(
        vendor=_read_text(root / "sys/class/dmi/id/sys_vendor"),
        product=_read_text(root / "sys/class/dmi/id/product_name"),
        # Every x86 CPU has the flag `fpu`, ARM has no flag for hypervisors.
        is_virtual=is_virtual if is_virtual or "fpu" in flags else None,
        num_online_cores=len(parse_cpu_list(_read_text(system / "cpu/online") or "")) or None,
        visible_cores=format_core_list(visible),
        num_physical_cores=len(physical) if physical else None,
        num_sockets=None if sockets & {None, "-1"} else len(sockets),  # -1: kernels of some ARM machines and sandboxes
        num_numa_nodes=sum(bool(node & set(visible)) for node in nodes) or None,
        threads_per_core=max(map(len, physical)) if physical else None,
        instruction_sets=tuple(name for name in INSTRUCTION_SETS if name in flags),
    )


def format_core_list(cores: Iterable[int]) -> str | None:
    runs = [
        [core for _, core in run] for _, run in groupby(enumerate(sorted(cores)), key=lambda pair: pair[1] - pair[0])
    ]
    return ",".join(f"{run[0]}-{run[-1]}" if run[1:] else str(run[0]) for run in runs) or None


def _read_text(path: Path) -> str | None:
    """Return the text of a file on one line; None where it is empty or cannot be read, as in some sandboxes."""
    try:
        return path.read_text(errors="replace").strip() or None
    except OSError:
        return None


# UUIDs and instance ids are nobody's business: what is published with a result is a hash with a key of this tool, as
# machine-id(5) asks for its own id.
HASH_KEY = b"benchmatrix machine identity"
BOOT_ID = "proc/sys/kernel/random/boot_id"
# Instances of EC2's Nitro system, whose tag every user may read:
# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/identify_ec2_instances.html
INSTANCE_TAG = "sys/class/dmi/id/board_asset_tag"
INSTANCE_ID = re.compile(r"i-(?:[0-9a-f]{8}|[0-9a-f]{17})")
BOOT_TIME = re.compile(r"^btime ([0-9]+)$", re.MULTILINE)
MAC_ADDRESS = re.compile(r"[0-9a-f]{2}(?::[0-9a-f]{2}){5}")
LOCALLY_ADMINISTERED, MULTICAST = 0x02, 0x01
"""Bits of an address's first byte (IEEE 802): hypervisors and containers make up such addresses, and repeat them."""


def read_machine_identity(root: Path = Path("/")) -> MachineIdentity | None:
    boot_id = _read_text(root / BOOT_ID)
    ids = set(_list_lasting_ids(root))
    if boot_id is None and not ids:
        return None
    found = BOOT_TIME.search(_read_text(root / "proc/stat") or "")
    booted_at = datetime.fromtimestamp(int(found[1]), UTC) if found else None
    return MachineIdentity(
        boot_id=boot_id,
        # The kernel changes it only when somebody sets the clock, which may not have been set at all yet.
        booted_at=booted_at if booted_at and bound_time(booted_at) == booted_at else None,
        lasting_ids=tuple(sorted(map(hash_id, ids))),
    )


def hash_id(text: str) -> str:
    return hashlib.blake2b(text.encode(), key=HASH_KEY, digest_size=8).hexdigest()


def _list_lasting_ids(root: Path) -> Iterator[str]:
    if INSTANCE_ID.fullmatch(tag := _read_text(root / INSTANCE_TAG) or ""):
        yield tag
    for interface in (root / "sys/class/net").glob("*"):
        # The addresses that makers gave to network cards, which alone have a device; a container sees made-up ones.
        text = _read_text(interface / "address") or ""
        if not (interface / "device").exists() or not MAC_ADDRESS.fullmatch(text):
            continue
        if text.strip("0:") and not int(text[:2], 16) & (LOCALLY_ADMINISTERED | MULTICAST):
            yield text


def read_place(device: Device) -> TenantPlace:
    """Return where this process runs; on a GPU its context must be there already. What cannot be read is None."""
    on_gpu, time_namespace = device == "gpu", None
    with suppress(OSError):  # before Linux 5.6
        time_namespace = os.readlink("/proc/self/ns/time")
    return TenantPlace(
        boot_id=_read_text(Path("/") / BOOT_ID),
        time_namespace=time_namespace,
        device=find_first_uuid() if on_gpu else None,
        pids=tuple(sorted(list_own_pids())),
        is_under_mps=read_mps_state() if on_gpu else None,
    )


def read_environment(order: Order, framework: Framework, num_threads: int, variables: Mapping[str, str]) -> Environment:
    """Return everything known of this process's machine, libraries and switches; `variables`: set from outside."""
    cell = order.cell
    on_gpu = cell.device == "gpu"
    return Environment(
        hostname=order.node or socket.gethostname(),  # in a container its own
        kernel=platform.release(),
        python_version=platform.python_version(),
        cpu_model=read_cpu_model(),
        num_visible_cores=len(os.sched_getaffinity(0)),
        cpu_quota_cores=read_cpu_quota_cores(),
        num_threads=num_threads,
        cpu_governor=_read_text(SYSTEM_CPU / "cpu0/cpufreq/scaling_governor"),
        machine=read_machine(),
        identity=read_machine_identity(),
        memory_total_bytes=read_memory_total_bytes(),
        memory_limit_bytes=read_memory_limit_bytes(),
        versions={
            **framework.versions,
            "numpy": version("numpy"),
            **read_compiler_version(cell),
            **read_plugin_versions((cell.model, cell.framework)),
        },
        settings={**framework.settings, **variables},
        gpus=read_gpus(cell.num_gpus, framework.cuda_version, framework.cudnn_version) if on_gpu else (),
        image=order.image,
        git_revision=order.git_revision,
    )
