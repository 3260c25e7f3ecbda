"""Prefill and decoding of Llama's shape as one would write them in PyTorch without benchmatrix: see hand_written.py."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import embedding, linear, rms_norm, scaled_dot_product_attention, silu

from bench.registry import DECODERS
from bench.schema import Cell

TYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


def write_language_step(cell: Cell) -> Callable[[], Any]:
    """Return a function that starts one step; the shape alone is the package's."""
    shape = DECODERS[cell.model]
    device = torch.device("cuda" if cell.device == "gpu" else "cpu")
    batch, context, head = cell.batch_size, cell.input_size, shape.width // shape.num_heads
    parts = [shape.num_heads, shape.num_kv_heads, shape.num_kv_heads]
    number = context if cell.phase == "prefill" else 1
    start = context - number

    def draw(*sizes: int, scale: float = 0.02) -> Tensor:
        return torch.randn(*sizes, device=device, dtype=TYPES[cell.precision]) * scale

    words = draw(shape.vocabulary_size, shape.width)
    last = words if shape.is_tied else draw(shape.vocabulary_size, shape.width)
    norm = torch.ones(shape.width, device=device, dtype=TYPES[cell.precision])
    layers = [
        (
            draw(sum(parts) * head, shape.width),
            draw(shape.width, shape.width),
            draw(2 * shape.mlp_width, shape.width),
            draw(shape.width, shape.mlp_width),
            draw(batch, shape.num_kv_heads, context, head, scale=1.0),
            draw(batch, shape.num_kv_heads, context, head, scale=1.0),
        )
        for _ in range(shape.num_layers)
    ]
    angles = torch.arange(start, context)[:, None] / 500_000 ** (torch.arange(0, head, 2) / head)
    cosine, sine = (part.to(device, TYPES[cell.precision]) for part in (angles.cos(), angles.sin()))
    tokens = torch.randint(shape.vocabulary_size, (batch, number), device=device)

    def rotate(x: Tensor) -> Tensor:
        left, right = x.chunk(2, -1)
        return torch.cat((left * cosine - right * sine, right * cosine + left * sine), -1)

    def forward() -> Tensor:
        x = embedding(tokens, words)
        for first, output, gate_up, down, keys, values in layers:
            heads = linear(rms_norm(x, (shape.width,), norm, 1e-5), first)
            query, key, value = heads.view(batch, number, -1, head).transpose(1, 2).split(parts, 1)
            keys[:, :, start:] = rotate(key)
            values[:, :, start:] = value
            attended = scaled_dot_product_attention(rotate(query), keys, values, is_causal=number > 1, enable_gqa=True)
            x = x + linear(attended.transpose(1, 2).flatten(2), output)
            gate, up = linear(rms_norm(x, (shape.width,), norm, 1e-5), gate_up).chunk(2, -1)
            x = x + linear(silu(gate) * up, down)
        return linear(rms_norm(x[:, -1], (shape.width,), norm, 1e-5), last)

    return torch.inference_mode()(torch.compile(forward) if cell.mode == "compiled" else forward)
