"""Compute how much memory of a card a batch can have: what the driver reports less what is not for tensors."""

from dataclasses import dataclass

MIB = 2**20
# The driver keeps memory that it counts neither as used nor as free: 616 MiB on an H200 (143,771 MiB in total, less 788
# used and 142,367 free: docs/results/2026-11-22-h200). A T4 keeps 250 MiB (15,360 less the 15,110 that CUDA sees, as
# deviceQuery prints). What an H200 keeps is taken for all: on a T4 that leaves a batch 366 MiB too little.
DRIVER_BYTES = 616 * MIB
# The CUDA context with the libraries' kernels, where a framework does not say what its allocator holds: what PyTorch
# training takes on an H100 and an H200 (the most in use less what the allocator held, docs/results).
CONTEXT_BYTES = 768 * MIB


@dataclass(frozen=True, kw_only=True)
class Card:
    """A size of GPU memory."""

    name: str
    sold_as: str
    """The size by which its vendor sells it, such as `16 GB`."""
    total_bytes: int
    """As the driver reports it."""

    @property
    def label(self) -> str:
        """The size that it is sold as, and its name."""
        return f"{self.sold_as} ({self.name})"

    def find_budget(self, context_bytes: int) -> int:
        """Return the bytes that tensors can have."""
        return self.total_bytes - DRIVER_BYTES - context_bytes


# Totals as nvidia-smi reports them: https://thundergolfer.com/blog/nvidia-gpu-memory-capacity (read in November 2026);
# those of the H100 and the H200 are also in docs/results. The marketed GB are sometimes GiB and sometimes less.
CARDS = tuple(
    Card(name=name, sold_as=sold_as, total_bytes=mebibytes * MIB)
    for name, sold_as, mebibytes in (
        ("T4", "16 GB", 15_360),
        ("L4", "24 GB", 23_034),
        ("A100", "40 GB", 40_960),
        ("H100", "80 GB", 81_559),
        ("H200", "141 GB", 143_771),
    )
)
