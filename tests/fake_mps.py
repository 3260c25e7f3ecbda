"""A stand-in for nvidia-cuda-mps-control: a daemon that says it listens, has a server, and ends when it is told to.

It has the name, the options, the variables and the file of the real one (docs.nvidia.com/deploy/mps); it serves nobody.
"""

import sys
from pathlib import Path

PROGRAM = "nvidia-cuda-mps-control"
# Two processes with names of MPS: the daemon, and the server that it starts. Both note what they were started with.
SCRIPT = """#!{python}
import os, signal, subprocess, sys, time
folder = os.environ["CUDA_MPS_PIPE_DIRECTORY"]
pid_file = os.path.join(folder, "nvidia-cuda-mps-control.pid")
if sys.argv[1:] == ["-d"]:
    if os.environ.get("FAKE_MPS_FAILS"):
        print("An instance of this daemon is already running")
        sys.exit(1)
    for _ in range(2):
        daemon = subprocess.Popen([os.path.abspath(__file__), "--serve"], stdin=subprocess.DEVNULL)
    with open(pid_file, "w") as file:
        file.write(str(daemon.pid))
    with open("{log}", "a") as file:
        file.write("%s %s\\n" % (os.environ.get("CUDA_VISIBLE_DEVICES"), folder))
elif sys.argv[1:] == ["--serve"]:
    time.sleep(1000)
elif sys.stdin.read() == "quit\\n" and not os.environ.get("FAKE_MPS_IS_DEAF"):
    for entry in filter(str.isdecimal, os.listdir("/proc")):
        try:
            command = open("/proc/%s/cmdline" % entry, "rb").read()
            variables = open("/proc/%s/environ" % entry, "rb").read()
        except OSError:
            continue
        if b"--serve" in command and folder.encode() in variables:
            os.kill(int(entry), signal.SIGTERM)
"""


def install_mps(folder: Path) -> Path:
    """Put the stand-in into `folder`, which has to be on the PATH; return the file that notes its starts."""
    log = folder / "mps.log"
    program = folder / PROGRAM
    program.write_text(SCRIPT.format(python=sys.executable, log=log))
    program.chmod(0o755)
    return log
