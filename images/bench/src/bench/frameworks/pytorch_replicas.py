"""Steps a cell on several GPUs in PyTorch, one process per GPU (DistributedDataParallel).

This process steps the first GPU and is the one that is timed. What it does, it has every other process do: the messages
are names of methods. To synchronise, each answers when its GPU has finished: a timed step lasts as long as the slowest.
"""

import os
import tempfile
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from bench.frameworks.pytorch_workload import PyTorchWorkload, set_switches
from bench.schema import Cell
from bench.worker.shutdown import die_with_parent


class ReplicaWorkload(PyTorchWorkload):
    """One GPU's share of a cell; gradients are averaged over all shares as DistributedDataParallel does it.

    Compiled: torch.compile around DistributedDataParallel and the fused optimiser; no CUDA graph.
    """

    may_capture = False

    def _wrap(self, part: nn.Module) -> nn.Module:
        device_ids = [self._device.index] if self._device.type == "cuda" else None
        # Buffers stay as each process computes them: an image pool is each one's own.
        return super()._wrap(DistributedDataParallel(part, device_ids=device_ids, broadcast_buffers=False))


class ReplicatedWorkload(ReplicaWorkload):
    """The first GPU's share, which takes the others along in every step."""

    def __init__(self, cell: Cell, num_threads: int) -> None:
        rendezvous = Path(tempfile.mkdtemp(prefix="benchmatrix-")) / "rendezvous"
        self._connections = [_start_replica(cell, num_threads, rank, rendezvous) for rank in range(1, cell.num_gpus)]
        self._is_running = True  # the others are being built; the first synchronisation waits for them
        _join_group(cell, 0, rendezvous)
        super().__init__(cell, num_threads)

    def spin_up(self) -> None:
        self._send(b"spin_up")
        super().spin_up()
        self.synchronize()

    def run_step(self) -> None:
        self._send(b"run_step")
        super().run_step()

    def synchronize(self) -> None:
        is_running = self._is_running
        if is_running:
            self._send(b"synchronize")
        super().synchronize()
        if is_running:
            for connection in self._connections:
                _read_answer(connection)
            self._is_running = False

    def _send(self, message: bytes) -> None:
        for connection in self._connections:
            connection.send_bytes(message)
        self._is_running = True


def _start_replica(cell: Cell, num_threads: int, rank: int, rendezvous: Path) -> Connection:
    context = get_context("spawn")  # CUDA does not survive a fork
    ours, theirs = context.Pipe()
    arguments = (cell, num_threads, rank, rendezvous, theirs, os.getpid())
    context.Process(target=serve_replica, args=arguments, daemon=True).start()
    theirs.close()
    return ours


def serve_replica(
    cell: Cell, num_threads: int, rank: int, rendezvous: Path, connection: Connection, parent_pid: int
) -> None:
    die_with_parent(parent_pid)
    set_switches(cell, num_threads)
    _join_group(cell, rank, rendezvous)
    workload = ReplicaWorkload(cell, num_threads, rank=rank)
    while True:
        try:
            message = connection.recv_bytes()
        except EOFError:
            return
        getattr(workload, message.decode())()
        if message == b"synchronize":
            connection.send_bytes(b"done")


def _join_group(cell: Cell, rank: int, rendezvous: Path) -> None:
    if cell.device == "gpu":
        torch.cuda.set_device(rank)
    torch.distributed.init_process_group(
        "nccl" if cell.device == "gpu" else "gloo",
        init_method=f"file://{rendezvous}",
        rank=rank,
        world_size=cell.num_gpus,
    )


def _read_answer(connection: Connection) -> None:
    try:
        connection.recv_bytes()
    except EOFError:
        raise RuntimeError("the process of another GPU has died; what it said is above") from None
