"""What every framework has to do in each of its modes; and how a program runs checks in a framework's environment."""

import json
import os
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from workload_state import find_networks, read_losses

from bench.tasks.cyclegan import POOL_SIZE
from factories import make_cell

NUM_STEPS = 3
SIZES: dict[str, dict[str, Any]] = {
    "conv6": {"batch_size": 4, "input_size": 16, "num_classes": 10},
    "resnet18-cifar": {"batch_size": 4, "input_size": 16, "num_classes": 10},
    "text-classifier": {"batch_size": 2, "input_size": 8, "num_classes": 2},
    "cyclegan": {"batch_size": 1, "input_size": 24, "num_classes": None},
    "matmul": {"batch_size": 1, "input_size": 16, "num_classes": None},
}
DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
Cases = Mapping[tuple[str, str], Sequence[str]]
"""(model, precision) to the modes to run it in, the one first that others have to equal."""


@dataclass(frozen=True, kw_only=True)
class Examiner:
    """Carries out cells of small models with one framework on one CPU device."""

    framework: str
    modes: Sequence[str]
    build_workload: Callable[..., Any]
    """Returns a cell's workload, its precision set; equal in all modes."""
    draw_weights: Callable[[Any], None]
    skip_drawing: Callable[[], AbstractContextManager[Any]] = nullcontext
    """Keeps the framework from drawing weights in vain: in JAX, each shape is a program to compile."""
    open_pool: Callable[[], Callable[[Any], Any]]
    """Returns an ImagePool as a function of three numbers, which stand for images, and of three that come back."""
    training: Cases
    inference: Cases
    loss_tolerances: Mapping[str, tuple[float, float]]
    """How far the losses of modes may be apart, relatively, in the first step and later."""
    half_tolerance: float
    """How far half precision may move the losses of the first `half_steps` steps, relatively."""
    half_steps: int
    output_tolerances: Mapping[str, tuple[float, float]]
    """By precision: how far outputs of modes may be apart, relatively and beside that; of others 1 % of their norm."""

    def build(self, model: str = "conv6", *, draws: bool = True, **fields: Any) -> Any:
        given = {"framework": self.framework, "mode": self.modes[-1], **SIZES[model]}
        cell = make_cell(model=model, **(given | fields))
        if not draws:
            return self.build_workload(cell)
        with self.skip_drawing():
            workload = self.build_workload(cell)
        self.draw_weights(workload)
        return workload


def run_checks(examiner: Examiner, *modules: Mapping[str, Any]) -> None:
    """Call the functions `check_...` of modules; print {name: None, or the traceback of its failure} and end."""
    outcomes: dict[str, str | None] = {}
    for name, check in [item for module in modules for item in module.items() if item[0].startswith("check_")]:
        try:
            check(examiner)
            outcomes[name] = None
        except Exception:
            outcomes[name] = traceback.format_exc()
    print(json.dumps(outcomes), flush=True)
    os._exit(0)  # as bench does: replicas end with their parent


def catch(cause: Callable[[], object]) -> Exception:
    try:
        cause()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def list_tensors(workload: Any) -> list[Any]:
    """Return the networks' weights and statistics."""
    networks = [network for _, network in sorted(find_networks(workload).items())]
    return [tensor for network in networks for tensor in _list_own(network)]


def _list_own(network: Any) -> list[Any]:
    return list(network.state_dict().values()) if hasattr(network, "state_dict") else list(network.variables)


def to_numpy(tensor: Any) -> Any:
    return tensor.detach().float().numpy().copy() if hasattr(tensor, "detach") else np.array(tensor)


def read_weights(workload: Any) -> list[Any]:
    return [to_numpy(tensor) for tensor in list_tensors(workload)]


def name_dtype(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.") if hasattr(tensor, "detach") else str(np.asarray(tensor).dtype)


def count_changes(before: Sequence[Any], after: Sequence[Any]) -> int:
    return sum(not np.array_equal(one, other) for one, other in zip(before, after, strict=True))


def infer(workload: Any) -> Any:
    """Run a step of inference and return its output."""
    workload.run_step()
    workload.synchronize()
    return workload._outputs[0]


def train(workload: Any) -> list[list[float]]:
    """Return the losses of NUM_STEPS steps, one row for each."""
    losses = []
    for _ in range(NUM_STEPS):
        workload.run_step()
        workload.synchronize()
        losses.append(read_losses(workload))
    return losses


def check_every_mode_trains_every_weight_in_float32_and_learns_the_same(examiner: Examiner) -> None:
    """Half precision changes the loss a little. Later losses part: Adam divides small gradients by their own size."""
    firsts = {}
    for (model, precision), modes in examiner.training.items():
        losses = {}
        for mode in modes:
            workload = examiner.build(model, mode=mode, precision=precision)
            before = read_weights(workload)
            losses[mode] = train(workload)
            assert workload.is_compiled() == (mode != "eager"), mode
            assert count_changes(before, read_weights(workload)) == len(before), (model, precision, mode)
            assert {"float32"} == {name_dtype(tensor) for tensor in list_tensors(workload)}, (model, precision, mode)
            assert workload.device_kind() == "cpu"
            first, later = examiner.loss_tolerances[precision]
            np.testing.assert_allclose(losses[mode][0], losses[modes[0]][0], rtol=first, err_msg=f"{model} {mode}")
            np.testing.assert_allclose(losses[mode][1:], losses[modes[0]][1:], rtol=later, err_msg=f"{model} {mode}")
            firsts[model, precision, mode] = losses[mode][: examiner.half_steps]
    for (model, precision, mode), rounded in firsts.items():
        if precision != "fp32":
            exact = firsts[model, "fp32", mode]
            assert exact != rounded, (precision, mode)
            np.testing.assert_allclose(rounded, exact, rtol=examiner.half_tolerance, err_msg=f"{precision} {mode}")


def check_every_mode_infers_the_same_in_the_precision_asked_for_and_changes_nothing(examiner: Examiner) -> None:
    for (model, precision), modes in examiner.inference.items():
        outputs = []
        for mode in modes:
            workload = examiner.build(model, mode=mode, precision=precision, phase="infer")
            before = read_weights(workload)
            infer(workload)
            output = infer(workload)
            tensors = (output,) if model == "text-classifier" else (output, workload.inputs[0])
            assert {DTYPES[precision]} == {name_dtype(tensor) for tensor in tensors}, (model, precision, mode)
            assert count_changes(before, read_weights(workload)) == 0, (model, precision, mode)
            assert workload.device_kind() == "cpu"
            outputs.append(to_numpy(output).astype(np.float32))
            if model == "matmul":
                left, right = (to_numpy(tensor).astype(np.float32) for tensor in workload.inputs)
                np.testing.assert_allclose(outputs[-1], left @ right, atol=1e-4 if precision == "fp32" else 0.1)
            else:
                num_samples, num_classes = (SIZES[model][name] for name in ("batch_size", "num_classes"))
                assert outputs[-1].shape == (num_samples, num_classes)
            if precision in examiner.output_tolerances:
                relative, beside = examiner.output_tolerances[precision]
                name = f"{model} {precision} {mode}"
                np.testing.assert_allclose(outputs[-1], outputs[0], rtol=relative, atol=beside, err_msg=name)
            distance = float(np.linalg.norm(outputs[-1] - outputs[0]) / np.linalg.norm(outputs[0]))
            assert distance < 0.01, (model, precision, mode, distance)


def check_equal_seeds_make_equal_weights_and_others_do_not(examiner: Examiner) -> None:
    first, same, other = (read_weights(examiner.build(draws=False, seed=seed))[0] for seed in (5, 5, 6))
    assert np.array_equal(first, same)
    assert not np.array_equal(first, other)


def check_the_image_pool_fills_first_and_then_swaps_half_of_the_newcomers_for_what_it_holds(examiner: Examiner) -> None:
    exchange = examiner.open_pool()
    shown = np.arange(1, 1051, dtype=np.float32)
    came = np.concatenate([exchange(batch) for batch in shown.reshape(-1, 3)])
    assert np.array_equal(came[:POOL_SIZE], shown[:POOL_SIZE])
    held = set(shown[:POOL_SIZE])
    swaps = [pair for pair in zip(shown[POOL_SIZE:], came[POOL_SIZE:], strict=True) if pair[0] != pair[1]]
    # 1,000 throws of a coin: the standard deviation of their number is 16.
    assert abs(len(swaps) - 500) <= 64
    for number, found in swaps:
        held.remove(found)
        held.add(number)
