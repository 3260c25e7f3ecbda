"""A real input pipeline that is slower than the steps: its queue is known, and the cell is input-bound."""

from pathlib import Path

import pytest

from bench.schema import Framework
from framework_programs import ask
from tiny_data import write_cifar10


# tf.data reads the files itself: a Python class cannot slow it down.
@pytest.mark.parametrize("framework", ["pytorch", "jax"])
def test_a_slow_pipeline_is_input_bound_although_its_queue_was_full(
    framework: Framework, interpreters: dict[Framework, Path], tmp_path: Path
) -> None:
    folder = write_cifar10(tmp_path / "cifar")
    answer = ask(interpreters[framework], "check_slow_loader.py", framework, str(folder))
    assert answer["num_read"] == answer["max_queued_batches"]
    assert answer["num_warmup_steps"] >= 2 * answer["max_queued_batches"]
    assert answer["verdict"] == "input-bound"
