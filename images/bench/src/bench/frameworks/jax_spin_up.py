"""Keeps GPUs busy through JAX before the first step."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from bench.measure.spin_up import NUM_ELEMENTS, OPERATIONS_PER_BURST, spin_up


def keep_busy(devices: Sequence[jax.Device]) -> None:
    """Spin up the GPUs among `devices`, all at once; return when their clocks are up."""
    gpus = [device for device in devices if device.platform == "gpu"]
    values = [jax.device_put(np.ones(NUM_ELEMENTS, dtype=np.float32), device) for device in gpus]

    def apply_sines(array: Any) -> Any:
        return jax.lax.fori_loop(0, OPERATIONS_PER_BURST, lambda _, value: jax.numpy.sin(value), array)

    program = jax.jit(apply_sines, donate_argnums=0)

    def run_burst() -> None:
        values[:] = map(program, values)
        jax.block_until_ready(values)

    if gpus:
        spin_up(run_burst)
