"""The error of a precision: how far a language model's logits are from those of the same weights in float64."""

import copy
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from bench.models.quantized import quantize
from bench.models.sizes import make_rotation
from bench.registry import DECODERS
from bench.schema import Cell, PrecisionError
from bench.tasks.torch import build_task, make_tensors

MAX_TOKENS, MAX_STEPS = 2048, 128


def measure_precision_error(cell: Cell, device: torch.device, dtype: torch.dtype) -> PrecisionError:
    """Return the error over a prompt and the greedy steps after it, each of which gets the token that float64 chose.

    It is measured on one sequence, in eager mode, with weights drawn in `dtype` as the cell's are.
    """
    capacity = min(cell.input_size, MAX_TOKENS)
    num_steps = min(MAX_STEPS, capacity // 2)
    one = cell.model_copy(update={"batch_size": 1, "input_size": capacity})
    torch.manual_seed(cell.seed)
    with make_tensors(device, dtype), torch.no_grad():
        exact = build_task(one).networks["model"]
        model = copy.deepcopy(exact).to(dtype)
        quantize(model, cell.precision)
        widen(exact, make_rotation(DECODERS[cell.model], capacity))
        prompt = torch.randint(DECODERS[cell.model].vocabulary_size, (1, capacity - num_steps))
        return compare(list(generate(model, exact, prompt, num_steps)))


def generate(model: nn.Module, exact: nn.Module, tokens: Tensor, num_steps: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the logits (1, vocabulary) of both models after the prompt and after each token that `exact` chooses."""
    position = 0
    for _ in range(1 + num_steps):
        logits, expected = model(tokens, position=position), exact(tokens, position=position)
        yield logits.double(), expected
        position += tokens.shape[1]
        tokens = expected.argmax(-1, keepdim=True)


def compare(pairs: list[tuple[Tensor, Tensor]]) -> PrecisionError:
    logits, expected = (torch.cat(part) for part in zip(*pairs, strict=True))
    return PrecisionError(
        relative_error=float((logits - expected).norm() / expected.norm()),
        equal_token_share=float((logits.argmax(-1) == expected.argmax(-1)).double().mean()),
        num_tokens=len(logits),
    )


def widen(model: nn.Module, rotation: object) -> None:
    """Make `model` compute in float64; to save memory, only the layer that is at work has weights of that width."""

    def enter(module: nn.Module, _: object) -> None:
        module.double()

    def leave(module: nn.Module, _: object, __: object) -> None:
        module.to(torch.get_default_dtype())

    for module in model.modules():
        if isinstance(module, nn.Embedding | nn.Linear | nn.RMSNorm):
            module.register_forward_pre_hook(enter)
            module.register_forward_hook(leave)
        for name, buffer in list(module.named_buffers(recurse=False)):
            wide = torch.tensor(rotation, dtype=torch.float64) if name == "rotation" else buffer.double()
            module.register_buffer(name, wide, persistent=False)
