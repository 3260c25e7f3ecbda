"""Set a framework up as an attempt does and print the threads that it took and its Environment, as JSON."""

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import cast

from bench.frameworks.interface import load_framework
from bench.probes.cpu import count_threads, limit_library_threads
from bench.probes.machine import read_environment
from bench.registry import FRAMEWORKS
from bench.schema import Framework
from bench.worker.request import Order, read_timing_variables
from factories import make_cell


def main(name: Framework) -> None:
    """Print one JSON object on the last line."""
    modules = ("numpy", "torch", "tensorflow", "jax", "keras")
    loaded_too_early = [module for module in modules if module in sys.modules]
    num_threads, variables = count_threads(), read_timing_variables(os.environ)
    limit_library_threads(num_threads)
    cell = make_cell(framework=name, mode=FRAMEWORKS[name].modes[0])
    framework = load_framework(cell, num_threads)
    order = Order(cell=cell, run_id="r", repeat=1, attempt="a", store_url="-", git_revision="abc")
    environment = read_environment(order, framework, num_threads, variables)
    threads = describe_threads(name)
    print(
        json.dumps({"early": loaded_too_early, "threads": threads, "environment": environment.model_dump(mode="json")})
    )


def describe_threads(name: Framework) -> str:
    """Return what the framework says of its threads; JAX, which says nothing, the number of those that compute."""
    if name == "pytorch":
        return str(import_module("torch").__config__.parallel_info())
    if name == "tensorflow":
        threading = import_module("tensorflow").config.threading
        return f"{threading.get_intra_op_parallelism_threads()} {threading.get_inter_op_parallelism_threads()}"
    import_module("jax").numpy.zeros(1).block_until_ready()
    threads = [(task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()]
    return str(threads.count("tf_XLAEigen"))


if __name__ == "__main__":
    main(cast(Framework, sys.argv[1]))
