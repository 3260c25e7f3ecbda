"""Calibration: work that is the same for every cell of a device, so that machines can be held against each other."""

from bench.schema.document import Bytes, Count, Document, PositiveAmount, Seconds


class Calibration(Document):
    """What the machine did of such work in the cell's process, after the timed window and everything that follows it.

    None: not measured there, or others kept the threads from their cores meanwhile.
    """

    product_flops_per_second: PositiveAmount | None = None
    """Of a GPU: square matrix products (calibration.PRODUCT_SIZE) in the cell's precision, back to back. None on
    a CPU, where HostPeak has it."""
    copy_bytes_per_second: PositiveAmount | None = None
    """Bytes read and written per second of the fastest copy of `copy_bytes` within the device's memory."""
    copy_bytes: Bytes | None = None
    """How many bytes one copy reads, and writes as many."""
    cache_bytes: Bytes | None = None
    """Last level of cache that the copy has to pass: of the CPUs that the process may use, as far as the machine shows
    it, or of the GPU."""
    num_threads: Count | None = None
    """Threads that copied, on a CPU."""
    seconds: Seconds
    """What all of it took."""
