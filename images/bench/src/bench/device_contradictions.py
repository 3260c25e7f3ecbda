"""Finds what a record says of its devices and of the passes beside the timed window that they rule out.

Every bound has as much room as clocks, counters and other versions can need, and more: what is ruled out is an energy,
a memory or a pass that is of another measurement.
"""

from collections.abc import Iterator

from bench.pipelined import MAX_STEPS
from bench.schema import GpuUse, Result

# Each is known to a few percent; what is between a bound and its double is believed.
MOST = 2.0
# As many seconds can lie between the readings of a counter and the work that they are for: NVML's moves every 0.1 s.
READING_SECONDS = 0.5
# Two events of a profiler lie within some microseconds of those of the host.
PROFILER_SECONDS = 1e-3
# Back to back, a step still has its launch: the shortest steps were seen to take a sixth of what they take one by one.
MIN_PIPELINED_SHARE = 0.1
# What makes TF32 of float32, by the names that the frameworks' switches have in a record.
TF32_SETTINGS = ("matmul_tf32", "cudnn_tf32", "tf32")
# What was computed in the same process from the same floats: only its writing in decimal can differ, and it does not.
ROUNDING = 1e-6

Found = Iterator[str]


def check_devices(result: Result) -> Found:
    """Yield that the devices, or how they were set, are not those that the cell asks for."""
    cell, environment = result.cell, result.environment
    if result.status != "ok" or environment is None or cell.device != "gpu":
        return
    if len(environment.gpus) != cell.num_gpus:
        yield f"its environment has {len(environment.gpus)} GPUs, its cell {cell.num_gpus}"
    if cell.precision == "fp32":
        for name in TF32_SETTINGS:
            if environment.settings.get(name) is True:
                yield f"its cell is in fp32, and its setting {name} was on"


def check_passes(result: Result) -> Found:
    """Yield that the profiled or the pipelined steps are not the timed ones, or not as many as the cell asks for."""
    if result.status != "ok" or result.samples is None:
        return
    times = [result.samples.center_step_seconds]
    pipelined = result.pipelined
    if pipelined is not None:
        asked = result.cell.pipelined_seconds
        if pipelined.num_steps < MAX_STEPS and pipelined.seconds < MIN_PIPELINED_SHARE * asked:
            yield f"its pipelined window took {pipelined.seconds:.3g} s, its cell asks for {asked:g} s"
        times.append(pipelined.step_seconds)
    profile = result.device_profile
    if profile is None:
        return
    num_steps, busy = len(profile.step_seconds), max(gpu.busy_seconds for gpu in profile.gpus)
    kernels = profile.kernel_seconds_per_step
    if not _is_equal(kernels, busy / num_steps):
        yield f"kernels took {kernels:.4g} s a step, by those of {num_steps} profiled steps {busy / num_steps:.4g} s"
    if not _is_equal(profile.kernel_busy_share, kernels / times[0]):
        yield f"kernels took {kernels / times[0]:.3g} of a step, by kernel_busy_share {profile.kernel_busy_share:.3g}"
    if busy > MOST * sum(profile.step_seconds) + PROFILER_SECONDS:
        yield f"kernels took {busy:.4g} s of profiled steps of {sum(profile.step_seconds):.4g} s in sum"
    if kernels > MOST * min(times) + PROFILER_SECONDS:
        yield f"kernels took {kernels:.4g} s a step, and a step of it takes {min(times):.4g} s"


def check_counters(result: Result) -> Found:
    """Yield that a counter of a device counted what the device cannot have, or in another window than the steps'."""
    if result.status != "ok":
        return
    seconds = result.phases.steady_seconds if result.tenancy is None else result.tenancy.window_seconds
    if seconds is not None:
        for use in result.gpu_use:
            yield from _check_energy(use)
            if use.window is not None and MOST * use.window.seconds < seconds:
                yield f"{use.uuid} was watched for {use.window.seconds:.3g} s of a window of {seconds:.3g} s"
    cores = result.cpu_use
    if cores is not None and cores.own_cores > MOST * cores.num_machine_cores:
        yield f"its process kept {cores.own_cores:.1f} of {cores.num_machine_cores} cores busy"
    yield from _check_memory(result)
    yield from _check_host_peak(result)


def _check_host_peak(result: Result) -> Found:
    """Yield that the peak of a CPU is not the largest of the figures that it is taken from."""
    host, roofline = result.host_peak, result.roofline
    if result.cell.device != "cpu" or host is None or roofline is None or host.flops_per_second is None:
        return
    peak = roofline.peak_flops_per_second
    if peak is None or not _is_equal(peak, host.flops_per_second):
        yield f"roofline.peak_flops_per_second is {peak}, the largest of host_peak {host.flops_per_second:.4g}"
    factors = (host.num_cores, host.flops_per_cycle, host.clock_hertz, host.theoretical_flops_per_second)
    if None not in factors:
        cores, per_cycle, clock, theory = (float(factor or 0) for factor in factors)
        if theory > MOST * cores * per_cycle * clock:
            yield f"host_peak.theoretical_flops_per_second is {theory:.4g}, its factors {cores * per_cycle * clock:.4g}"


def _check_energy(use: GpuUse) -> Found:
    """Yield an energy of more than twice the limit, or of less than half the least power that was ever seen."""
    limits = [limit for limit in (use.power_limit_watts, use.default_power_limit_watts) if limit]
    powers = [*use.power_watts] or ([use.idle_power_watts] if use.idle_power_watts else [])
    parts = [("the sampling pass", use.energy_joules, use.window_seconds)]
    parts += [("the window", use.window.energy_joules, use.window.seconds)] if use.window is not None else []
    for name, energy, seconds in parts:
        if energy is None or seconds is None:
            continue
        if limits and energy > MOST * max(limits) * (seconds + READING_SECONDS):
            yield f"{use.uuid} took {energy:.4g} J in {name} of {seconds:.3g} s, and may take {max(limits):g} W"
        if powers and MOST * energy < min(powers) * (seconds - READING_SECONDS):
            yield f"{use.uuid} took {energy:.4g} J in {name} of {seconds:.3g} s, and never less than {min(powers):g} W"


def _check_memory(result: Result) -> Found:
    """Yield more memory than the largest GPU has: the peaks of several GPUs are those of the fullest."""
    total = max((gpu.memory_total_bytes for gpu in result.environment.gpus), default=0) if result.environment else 0
    if not total:
        return
    sizes = [(use.uuid, use.memory_used_peak_bytes) for use in result.gpu_use]
    memories = {"its process": result.memory}
    if result.tenancy is not None:
        memories |= {f"tenant {record.tenant}": record.memory for record in result.tenancy.tenants}
        sizes += [(f"tenant {record.tenant}", record.device_memory_bytes) for record in result.tenancy.tenants]
        sizes.append(("all tenants", result.tenancy.device_memory_used_bytes))
    for name, memory in memories.items():
        if memory is not None:
            sizes += [(name, memory.peak_memory_allocated_bytes), (name, memory.peak_memory_reserved_bytes)]
    for name, size in sizes:
        if size is not None and size > MOST * total:
            yield f"{name} used {size:,} bytes of a GPU that has {total:,}"


def _is_equal(stored: float, expected: float) -> bool:
    return abs(stored - expected) <= ROUNDING * abs(expected)
