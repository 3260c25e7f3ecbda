"""Measures steps that run back to back with one synchronisation at the end, as people train.

In the timed window the device falls idle between the end of a step and the launch of the next one. Here the next step
is launched while the device works on the last: what a launch costs is hidden as far as it is shorter than the step.
"""

import math
from time import perf_counter

from bench.measure.harness import Workload
from bench.schema import PipelinedWindow

# More steps than the timed window's median gives for the length asked for: back to back they take less, up to 17 % for
# Conv6 on an H200.
LENGTH_RESERVE = 1.25
# One step alone has nothing to overlap with.
MIN_STEPS = 2
# Two seconds of the shortest steps that were seen (0.1 ms). A CUDA stream takes about 1,000 launches and makes the host
# wait beyond, and queued steps have no memory each: PyTorch and TensorFlow reuse it in the order of the stream, JAX
# starts few programs ahead. So this bounds the length of the window only.
MAX_STEPS = 20_000


def run_pipelined(workload: Workload, seconds: float, step_seconds: float) -> PipelinedWindow:
    """Run steps without synchronising one by one, for about `seconds`; `step_seconds`: of a synchronised step."""
    expected = LENGTH_RESERVE * seconds / step_seconds
    num_steps = math.ceil(min(max(expected, MIN_STEPS), MAX_STEPS))
    run_step = workload.run_step
    workload.synchronize()
    start = perf_counter()
    for _ in range(num_steps):
        run_step()
    workload.synchronize()
    return PipelinedWindow(num_steps=num_steps, seconds=perf_counter() - start)
