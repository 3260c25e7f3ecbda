"""Starting servers for tests and benchmarks that never outlive the process that started them."""

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

# Not by preexec_fn: that is not safe in a process with threads.
_LAUNCHER = (
    "import os, sys; from bench.worker.shutdown import die_with_parent; "
    "die_with_parent(int(sys.argv[1])); os.execvp(sys.argv[2], sys.argv[2:])"
)


def start_child(command: Sequence[object], **options: Any) -> "subprocess.Popen[bytes]":
    """Start a process that the kernel kills when this one dies, even by SIGKILL. `options` are those of Popen.

    RuntimeError outside the main thread: the kernel binds the child's life to the thread that started it.
    """
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError(f"{command[0]} would die with the thread that starts it; start it from the main thread")
    launcher = [sys.executable, "-c", _LAUNCHER, str(os.getpid())]
    return subprocess.Popen([*launcher, *map(str, command)], **options)
