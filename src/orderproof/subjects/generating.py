"""Greedy generation by transformers itself, and by hand: the whole text read anew for every token.

A head for the words is put on the model that is measured, by the class that the library has for it. No token ends
the text, so that as many come as are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from orderproof.errors import Unsupported
from orderproof.subjects.quieting import silence

if TYPE_CHECKING:
    from orderproof.subjects.driven import PretrainedDriver


def generated(driver: PretrainedDriver, tokens: Tensor, count: int, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """The numbers of the tokens that come next [row, token]: by `generate`, and by hand."""
    with silence(), torch.no_grad():
        model = _with_head(driver.module)
        model.generation_config = _greedy(count, driver.pad)
        given = {} if mask is None else {"attention_mask": mask.long()}
        made = model.generate(tokens, **given)[:, tokens.shape[1] :]
        if mask is None:
            return made, _by_hand(model, tokens, count, {})
        if "positions" not in driver.takes:
            return made, _by_hand(model, tokens, count, given)
        rows = [_by_hand(model, row[real].unsqueeze(0), count, {}) for row, real in zip(tokens, mask, strict=True)]
        return made, torch.cat(rows)


def class_with_head(module: Any) -> Any:
    """The library's class that generates with such a model; None where it has none."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

    known = type(module.config) in MODEL_FOR_CAUSAL_LM_MAPPING
    return MODEL_FOR_CAUSAL_LM_MAPPING[type(module.config)] if known else None


def _with_head(module: Any) -> Any:
    """The same model with a head. Raises `Unsupported`."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made = class_with_head(module)(module.config).to(module.dtype).eval()
    inner = getattr(made, made.base_model_prefix, None)
    if type(inner) is not type(module) or not made.can_generate():
        raise Unsupported("the library has no class that generates with it")
    setattr(made, made.base_model_prefix, module)
    return made


def _greedy(count: int, pad: int | None) -> Any:
    from transformers import GenerationConfig

    return GenerationConfig(
        max_new_tokens=count, do_sample=False, num_beams=1, eos_token_id=None, pad_token_id=pad or 0, use_cache=True
    )


def _by_hand(model: Any, tokens: Tensor, count: int, given: dict[str, Tensor]) -> Tensor:
    start = tokens.shape[1]
    for _ in range(count):
        scores = model(input_ids=tokens, use_cache=False, **given).logits[:, -1]
        tokens = torch.cat([tokens, scores.argmax(-1, keepdim=True)], dim=1)
        given = {name: torch.cat([x, x[:, -1:]], dim=1) for name, x in given.items()}
    return tokens[:, start:]
