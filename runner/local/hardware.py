"""Find the GPUs that this machine has for cells, say why a cell cannot run here, and share a GPU among tenants.

What is used of NVIDIA's Multi-Process Service (MPS) is documented in https://docs.nvidia.com/deploy/mps/ (read
2026-11-22): `nvidia-cuda-mps-control -d` starts the control daemon, which starts a server for its first client; clients
find it by CUDA_MPS_PIPE_DIRECTORY; the command `quit` on its standard input ends both. No root is needed where daemon
and clients are one user's.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path

import pynvml

from bench.probes.gpu import find_first_uuid, find_visible_devices, list_slices
from bench.probes.nvml import NvmlError, open_nvml
from bench.schema import Cell, Run
from bench.worker.compilers import explain_missing_compiler
from runner.local.process import ProcessNotStarted, find_marked, kill_marked
from runner.matrix import GpuKind, Matrix, explain_incapable, plan_run
from runner.processes import explain_exhaustion

MAX_GPUS = 1000
MPS_PROGRAM = "nvidia-cuda-mps-control"
MPS_SECONDS = 30.0
"""For the daemon to say that it listens, and to end when it is told to."""
POLL_SECONDS = 0.05


def plan_local_run(matrix: Matrix, *, gpu: GpuKind | None, run_id: str | None, assumes_gpu: bool = False) -> Run:
    """Return a new run of the cells that this machine can run (UserError: none); `assumes_gpu`: as if it had a GPU."""

    def explain(cell: Cell) -> str | None:
        if assumes_gpu and gpu is None and cell.device == "gpu":
            return None
        return explain_unsupported(cell, gpu) or explain_unshared(cell)

    return plan_run(matrix, explain, run_id=run_id)


def explain_unsupported(cell: Cell, gpu: GpuKind | None) -> str | None:
    return explain_incapable(cell, gpu) or explain_missing_compiler(cell)


def find_gpu() -> GpuKind | None:
    """Return the GPUs that a cell's framework would see and use; None if there is no driver or no such GPU.

    A cell uses them in their order, and all GPUs of a cell have to be of one kind: those before the first of another
    kind are counted. CUDA_VISIBLE_DEVICES is respected.
    """
    with suppress(NvmlError), open_nvml():
        devices = find_visible_devices(MAX_GPUS)
        kinds = [(one.name, one.read_compute_capability() or "0.0", one.memory_total_bytes) for one in devices]
        if kinds:
            major, minor = map(int, kinds[0][1].split("."))
            num_gpus = sum(1 for _ in takewhile(lambda kind: kind == kinds[0], kinds))
            name, _, memory = kinds[0]
            return GpuKind(name=name, compute_capability=(major, minor), num_gpus=num_gpus, memory_bytes=memory)
    return None


def list_slice_uuids() -> list[str]:
    """Return the UUIDs of the MIG slices of the first GPU in MIG mode that this process may use."""
    chosen = [word.strip() for word in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")]
    with suppress(NvmlError), open_nvml():
        first = next((device.uuid for device in find_visible_devices(1) if device.is_slice), None)
        if first is None or first in chosen:  # chosen one by one
            return [uuid for uuid in chosen if uuid.startswith("MIG-")]
        gpu = pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(pynvml.nvmlDeviceGetHandleByUUID(first))
        return [str(pynvml.nvmlDeviceGetUUID(handle)) for handle in list_slices(gpu)]
    return []


def is_exclusive() -> bool:
    """Return whether the first GPU lets in one process at a time, or none (`nvidia-smi -c`)."""
    uuid = find_first_uuid()
    with suppress(NvmlError), open_nvml():  # a slice has no mode of its own
        handle = uuid and pynvml.nvmlDeviceGetHandleByUUID(uuid)
        return uuid is not None and pynvml.nvmlDeviceGetComputeMode(handle) != pynvml.NVML_COMPUTEMODE_DEFAULT
    return False


def explain_unshared(cell: Cell) -> str | None:
    if cell.device == "cpu":
        return None
    if cell.sharing == "mps":
        missing = f"sharing 'mps' needs NVIDIA's {MPS_PROGRAM}, which is not on the PATH; it comes with the driver"
        return missing if shutil.which(MPS_PROGRAM) is None else None
    if cell.sharing == "mig":
        num_slices = len(list_slice_uuids())
        if num_slices >= cell.tenants:
            return None
        return (
            f"sharing 'mig' needs a slice for each of {cell.tenants} tenants, and the GPU has {num_slices} here; "
            "`nvidia-smi mig` makes slices"
        )
    if cell.tenants > 1 and is_exclusive():
        return (
            "sharing 'time-slicing' needs a GPU that several processes may use, and its compute mode allows one; "
            "`nvidia-smi -c DEFAULT` lets them in"
        )
    return None


@contextmanager
def share_device(cell: Cell, *, keep_open: Sequence[int] = ()) -> Iterator[list[dict[str, str]]]:
    """Share the device of a cell among its tenants in the body; yield the variables that each of them needs.

    Raise ProcessNotStarted where the sharing cannot be set up. A process that it takes inherits `keep_open`.
    """
    if cell.sharing == "mig":
        uuids = list_slice_uuids()
        if len(uuids) < cell.tenants:
            raise ProcessNotStarted(f"the GPU has {len(uuids)} MIG slices now, and the cell {cell.tenants} tenants")
        yield [{"CUDA_VISIBLE_DEVICES": uuid} for uuid in uuids[: cell.tenants]]
        return
    if cell.sharing == "time-slicing":
        yield [{} for _ in range(cell.tenants)]
        return
    with run_mps(find_first_uuid(), keep_open=keep_open) as variables:
        yield [variables] * cell.tenants


@contextmanager
def run_mps(device: str | None, *, keep_open: Sequence[int] = ()) -> Iterator[dict[str, str]]:
    """Run an MPS daemon of its own for the GPU with this UUID (None: for all); yield the variables of its clients.

    The daemon inherits the descriptors `keep_open` and this process's environment. Raise ProcessNotStarted where it
    does not start.
    """
    # Below /tmp whatever TMPDIR says: the path of a socket has 107 characters at the most (unix(7)).
    folder = Path(tempfile.mkdtemp(prefix="benchmatrix-mps-", dir="/tmp"))
    client = {"CUDA_MPS_PIPE_DIRECTORY": str(folder), "CUDA_MPS_LOG_DIRECTORY": str(folder)}
    # By UUID: the server renumbers the GPUs that it is shown, so that an index would mean another one to its clients.
    shown = {} if device is None else {"CUDA_VISIBLE_DEVICES": device}
    variables = {**os.environ, **client, **shown}
    try:
        _start_mps(variables, folder, keep_open)
        yield client
    finally:
        _end_mps(variables, f"CUDA_MPS_PIPE_DIRECTORY={folder}")
        shutil.rmtree(folder, ignore_errors=True)


def _start_mps(variables: dict[str, str], folder: Path, keep_open: Sequence[int]) -> None:
    output = folder / "output"
    with output.open("wb") as file:  # a pipe would stay open as long as the daemon
        try:
            code = subprocess.run(
                [MPS_PROGRAM, "-d"],
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                timeout=MPS_SECONDS,
                start_new_session=True,
                pass_fds=keep_open,
                check=False,
            ).returncode
        except (OSError, subprocess.TimeoutExpired) as error:
            if explain_exhaustion(error):  # as in runner.local.process
                raise
            raise ProcessNotStarted(f"{MPS_PROGRAM} -d: {error}") from error
    if code:
        said = output.read_text(errors="replace").split("\n")
        reason = next(filter(None, map(str.strip, reversed(said))), "it gives no reason")
        raise ProcessNotStarted(f"{MPS_PROGRAM} -d ended with exit code {code}: {reason}")


def _end_mps(variables: dict[str, str], mark: str) -> None:
    """End the daemon with its servers, which have `mark` in their environment; kill them where they do not end."""
    with suppress(OSError, subprocess.SubprocessError):
        subprocess.run(
            [MPS_PROGRAM],
            env=variables,
            input=b"quit\n",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=MPS_SECONDS,
            check=False,
        )
    deadline = time.monotonic() + MPS_SECONDS
    while any(find_marked(mark)) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    kill_marked(mark)
