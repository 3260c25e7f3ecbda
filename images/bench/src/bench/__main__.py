"""`python -m bench`: listens for SIGTERM from its first moment on, then imports the rest and measures.

As PID 1 of a container it would ignore SIGTERM until it has a handler, and be killed when the grace period is over.
Therefore nothing that takes long may be imported before.
"""

import os

from bench.worker.shutdown import SigtermListener

if __name__ == "__main__":
    # Outside a container the parent handles signals, and SIGTERM ends this process as usual.
    listener = None if "BENCH_PARENT_PID" in os.environ else SigtermListener()
    if listener is not None:
        listener.start()
    from bench.worker.main import run_program

    run_program(listener)
