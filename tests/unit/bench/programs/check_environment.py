"""Sets a framework up as an attempt does: its name in, the threads it took and the Environment (JSON) out."""

import json
import sys
from importlib import import_module

from bench.attempt import count_threads, limit_library_threads, load_framework
from bench.probes.environment import read_environment
from factories import make_cell


def main(name: str) -> None:
    """Print one JSON object on the last line."""
    loaded_too_early = [module for module in ("numpy", "torch", "tensorflow", "keras") if module in sys.modules]
    num_threads = count_threads()
    limit_library_threads(num_threads)
    cell = make_cell(framework=name)
    framework = load_framework(cell, num_threads)
    environment = read_environment(cell, framework, num_threads, image=None, git_revision="abc")
    if name == "pytorch":
        threads = import_module("torch").__config__.parallel_info()
    else:
        threading = import_module("tensorflow").config.threading
        threads = f"{threading.get_intra_op_parallelism_threads()} {threading.get_inter_op_parallelism_threads()}"
    print(json.dumps({"early": loaded_too_early, "threads": threads, "environment": environment.model_dump()}))


if __name__ == "__main__":
    main(sys.argv[1])
