"""Greedy generation with `generate` of transformers, and by recomputing the whole sequence for every token.

The audited model gets a language-model head from the class that transformers has for it. No token ends the generation,
so that the requested number of tokens is generated.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor, nn

from orderproof.adapter import copy_sharing_parameters
from orderproof.cast_on_use import is_large
from orderproof.errors import UnsupportedCallError
from orderproof.library_messages import suppress_warnings
from orderproof.models.hf.shared_weights import parameters_without_memory
from orderproof.seeded_random import seeded_random


def greedy_tokens(
    module: Any,
    tokens: Tensor,
    count: int,
    mask: Tensor | None,
    *,
    pad_token_id: int | None,
    takes_positions: bool,
    cache: str = "",
) -> tuple[Tensor, Tensor]:
    """The next ``count`` token ids [batch, count]: by `generate`, and without a cache.

    With a ``mask`` [batch, token], True at real tokens, the second generates from the real tokens of each row alone if
    the model takes position ids, and passes the mask otherwise. ``cache`` names a cache
    implementation. Raises `UnsupportedCallError`.
    """
    with suppress_warnings(), torch.no_grad():
        model = _with_lm_head(module)
        model.generation_config = _greedy_config(count, pad_token_id, cache)
        masked = {} if mask is None else {"attention_mask": mask.long()}
        generated = model.generate(tokens, **(masked or _full_mask(model, tokens)))[:, tokens.shape[1] :]
        if mask is None or not takes_positions:
            return generated, _generate_without_cache(model, tokens, count, masked)
        rows = [
            _generate_without_cache(model, row[real].unsqueeze(0), count, {})
            for row, real in zip(tokens, mask, strict=True)
        ]
        return generated, torch.cat(rows)


def causal_lm_class(module: Any) -> Any:
    """The class of transformers that generates with such a model, or its own if that generates; else None."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

    if _generates(module):
        return type(module)

    known = type(module.config) in MODEL_FOR_CAUSAL_LM_MAPPING
    return MODEL_FOR_CAUSAL_LM_MAPPING[type(module.config)] if known else None


def _full_mask(model: Any, tokens: Tensor) -> dict[str, Tensor]:
    """An all-ones mask, if the model takes one: without it `generate` masks tokens that are the pad token."""
    takes_mask = "attention_mask" in inspect.signature(model.forward).parameters
    return {"attention_mask": torch.ones_like(tokens)} if takes_mask else {}


def _generates(module: Any) -> bool:
    """True if a model has a language-model head and generates itself."""
    return hasattr(module, "generate") and module.can_generate() and module.get_output_embeddings() is not None


def _with_lm_head(module: Any) -> Any:
    """The same model with a random head, unless it has one. Raises `UnsupportedCallError`."""
    if _generates(module):
        return copy_sharing_parameters(module)  # its generation configuration is replaced
    if is_large(module):
        return _with_own_head(module)
    with seeded_random(0):
        model = causal_lm_class(module)(module.config).to(module.dtype).eval()
    inner = getattr(model, model.base_model_prefix, None)
    if type(inner) is not type(module) or not model.can_generate():
        raise UnsupportedCallError("transformers has no class that generates with it")
    setattr(model, model.base_model_prefix, module)
    return model


def _with_own_head(module: Any) -> Any:
    """The same model, whose head is the table of its embeddings, so that the head takes no memory."""
    with parameters_without_memory():
        model = causal_lm_class(module)(module.config).eval()
    inner, head = getattr(model, model.base_model_prefix, None), model.get_output_embeddings()
    table = module.get_input_embeddings().weight
    fits = head is not None and head.weight.shape == table.shape
    if type(inner) is not type(module) or not model.can_generate() or not fits:
        raise UnsupportedCallError("transformers has no class that generates with it")
    setattr(model, model.base_model_prefix, module)
    head.weight = table
    if getattr(head, "bias", None) is not None:
        head.bias = nn.Parameter(torch.zeros(len(table), dtype=table.dtype))
    if any(x.is_meta for x in model.parameters()):
        raise UnsupportedCallError("the class that generates with it has more weights than its own and a head")
    return model


def _greedy_config(count: int, pad_token_id: int | None, cache: str) -> Any:
    from transformers import GenerationConfig

    return GenerationConfig(
        max_new_tokens=count,
        do_sample=False,
        num_beams=1,
        eos_token_id=None,
        pad_token_id=pad_token_id or 0,
        use_cache=True,
        cache_implementation=cache or None,
    )


def _generate_without_cache(model: Any, tokens: Tensor, count: int, masked: dict[str, Tensor]) -> Tensor:
    start = tokens.shape[1]
    for _ in range(count):
        scores = model(input_ids=tokens, use_cache=False, **masked).logits[:, -1]
        tokens = torch.cat([tokens, scores.argmax(-1, keepdim=True)], dim=1)
        masked = {name: torch.cat([x, x[:, -1:]], dim=1) for name, x in masked.items()}
    return tokens[:, start:]
