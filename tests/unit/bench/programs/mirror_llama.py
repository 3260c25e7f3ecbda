"""Runs llama-tiny with two layers in float64: a prompt, then 4 greedy steps. Arguments: `torch` or `jax`, and a file.

PyTorch leaves its weights and logits in the file, JAX takes the weights from it; each prints its errors as JSON:
PyTorch's steps against prefills of the longer prompts, JAX's prefill and steps against PyTorch's.
"""

import json
import os
import sys
from dataclasses import replace
from typing import Any

import numpy as np

from bench.registry import DECODERS

DIALECT, FILE = sys.argv[1:]
SHAPE = replace(DECODERS["llama-tiny"], num_layers=2)
BATCH_SIZE, NUM_TOKENS, NUM_STEPS = 2, 24, 4
MATRICES, NORMS = ("query_key_value", "projection", "gate_up", "down"), ("attention_norm", "mlp_norm")


def generate(model: Any, tokens: Any) -> tuple[list[Any], Any]:
    """Return the logits (batch, vocabulary) behind the prompt and each greedy step, and all tokens."""
    logits = [np.asarray(model(tokens, position=0))]
    for step in range(NUM_STEPS):
        chosen = make_tokens(logits[-1].argmax(-1)[:, None])
        logits.append(np.asarray(model(chosen, position=NUM_TOKENS + step)))
        tokens = np.concatenate([tokens, chosen], axis=1)
    return logits, tokens


def compare(found: list[Any], expected: Any) -> list[float]:
    return [float(abs(one - other).max()) for one, other in zip(found, expected, strict=True)]


if DIALECT == "torch":
    import torch

    from bench.models.torch import LanguageModel

    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    make_tokens: Any = torch.as_tensor
    model = LanguageModel(SHAPE, BATCH_SIZE, NUM_TOKENS + NUM_STEPS)
    prompt = torch.randint(SHAPE.vocabulary_size, (BATCH_SIZE, NUM_TOKENS))
    logits, tokens = generate(model, prompt)
    arrays = {"embedding": model.embedding.weight, "norm": model.norm.weight}
    for index, layer in enumerate(model.layers):
        arrays |= {f"{index}.{name}": getattr(layer, name).weight for name in (*MATRICES, *NORMS)}
    np.savez(FILE, tokens=prompt, logits=logits, **arrays)
    prefills = [np.asarray(model(make_tokens(tokens[:, : NUM_TOKENS + step]))) for step in range(NUM_STEPS + 1)]
    print(json.dumps(compare(logits, prefills)))
else:
    os.environ |= {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": "1"}
    import keras

    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")
    from bench.models.keras import LanguageModel

    make_tokens = np.asarray
    model = LanguageModel(SHAPE, BATCH_SIZE, NUM_TOKENS + NUM_STEPS)
    arrays = np.load(FILE)
    model.embedding.embeddings.assign(arrays["embedding"])
    model.norm.scale.assign(arrays["norm"])
    for index, block in enumerate(model.blocks):
        for name in MATRICES:
            getattr(block, name).kernel.assign(arrays[f"{index}.{name}"].T)
        for name in NORMS:
            getattr(block, name).scale.assign(arrays[f"{index}.{name}"])
    print(json.dumps(compare(generate(model, arrays["tokens"])[0], arrays["logits"])))
