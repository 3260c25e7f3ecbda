"""Runs llama-tiny with two layers in float64: a prompt, then greedy steps.

Arguments: `torch`, `jax` or `transformers`, a file, and a folder with the package of the last.

PyTorch leaves its weights and logits in the file, the others take the weights from it. Each prints its errors, as
shares of the largest logit, as JSON: PyTorch's steps against prefills of the longer prompts, the others' against
PyTorch's.
"""

import json
import os
import sys
from dataclasses import replace
from typing import Any

import numpy as np

from bench.models.sizes import RMS_EPSILON, ROTARY_BASE
from bench.registry import DECODERS

DIALECT, FILE, *FOLDERS = sys.argv[1:]
sys.path += FOLDERS
SHAPE = replace(DECODERS["llama-tiny"], num_layers=2)
BATCH_SIZE, NUM_TOKENS, NUM_STEPS = 2, 24, 16
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
    return [float(abs(one - other).max() / abs(other).max()) for one, other in zip(found, expected, strict=True)]


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
elif DIALECT == "transformers":
    import torch
    from torch.nn.functional import rms_norm
    from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM
    from transformers.models.llama.modeling_llama import LlamaRMSNorm

    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    make_tokens = torch.as_tensor
    config = LlamaConfig(
        vocab_size=SHAPE.vocabulary_size,
        hidden_size=SHAPE.width,
        intermediate_size=SHAPE.mlp_width,
        num_hidden_layers=SHAPE.num_layers,
        num_attention_heads=SHAPE.num_heads,
        num_key_value_heads=SHAPE.num_kv_heads,
        rms_norm_eps=RMS_EPSILON,
        rope_parameters={"rope_theta": ROTARY_BASE, "rope_type": "default"},
        tie_word_embeddings=SHAPE.is_tied,
    )
    # transformers norms in float32, whatever the weights are.
    norms: Any = LlamaRMSNorm
    norms.forward = lambda norm, x: rms_norm(x, norm.weight.shape, norm.weight, norm.variance_epsilon)
    llama: Any = LlamaForCausalLM(config)
    cache = DynamicCache(config=config)
    arrays = np.load(FILE)
    weights = {"model.embed_tokens": arrays["embedding"], "lm_head": arrays["embedding"], "model.norm": arrays["norm"]}
    widths = np.cumsum([SHAPE.width, SHAPE.kv_width])
    for index in range(SHAPE.num_layers):
        query_key_value = np.split(arrays[f"{index}.query_key_value"], widths)
        parts = dict(zip(("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"), query_key_value, strict=True))
        parts |= zip(("mlp.gate_proj", "mlp.up_proj"), np.split(arrays[f"{index}.gate_up"], 2), strict=True)
        parts |= {"self_attn.o_proj": arrays[f"{index}.projection"], "mlp.down_proj": arrays[f"{index}.down"]}
        parts |= {"input_layernorm": arrays[f"{index}.attention_norm"]}
        parts |= {"post_attention_layernorm": arrays[f"{index}.mlp_norm"]}
        weights |= {f"model.layers.{index}.{name}": array for name, array in parts.items()}
    llama.load_state_dict({f"{name}.weight": torch.as_tensor(array) for name, array in weights.items()})

    def compute(tokens: Any, position: int) -> Any:
        return llama(torch.as_tensor(tokens), past_key_values=cache, use_cache=True).logits[:, -1]

    print(json.dumps(compare(generate(compute, arrays["tokens"])[0], arrays["logits"])))
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
