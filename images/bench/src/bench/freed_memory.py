"""Gives memory that was freed back to the system."""

import ctypes


def release_freed_memory() -> None:
    """Give back what the C library's allocator keeps of freed memory. Does nothing where that is not glibc.

    To be called where much is freed at once, and Python's own objects, which have another allocator, come next.
    https://man7.org/linux/man-pages/man3/malloc_trim.3.html
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
