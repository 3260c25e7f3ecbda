"""`python -m bench`: listens for SIGTERM from its first moment on, then imports the rest and measures.

As PID 1 of a container it would ignore SIGTERM until it has a handler, and be killed when the grace period is over.
Therefore nothing that takes long may be imported before.
"""

import os
import resource
import sys

from bench.exit_codes import EXIT_USER_ERROR
from bench.worker.shutdown import SigtermListener

MIN_FILES = 64
"""More than a measurement holds open at once; a library in Rust panics for want of one. 1024 is usual."""

if __name__ == "__main__":
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit != resource.RLIM_INFINITY and limit < MIN_FILES:
        needed = f"needs {MIN_FILES} at the least; raise the limit (`ulimit -n`)"
        print(f"error: this process may open {limit} files, and {needed}", file=sys.stderr)
        sys.exit(EXIT_USER_ERROR)
    # Outside a container the parent handles signals, and SIGTERM ends this process as usual.
    listener = None if "BENCH_PARENT_PID" in os.environ else SigtermListener()
    if listener is not None:
        listener.start()
    from bench.worker.main import run_program

    run_program(listener)
