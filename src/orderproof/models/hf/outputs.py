"""The audited outputs of a transformers model, with a grid of patches flattened into a sequence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

PRIMARY_OUTPUTS = ("last_hidden_state", "pooler_output", "logits")
_EXCLUDED_SUFFIXES = ("loss", "hidden_states", "attentions", "past_key_values", "image_hidden_states")
MAX_UNTRIMMED_PREFIX = 2  # tokens before the patches that the audit recognises by their number
MAX_OUTPUTS = 3  # audited outputs of a model that has no primary output


def audited_outputs(outputs: Any, patch_count: int | None = None, *, prefix: int = 0) -> dict[str, Tensor]:
    """The primary outputs of a model, or the first `MAX_OUTPUTS` others if it has none; of a list the last tensor.

    With a ``patch_count`` (an image model), the outputs of the patches, after ``prefix`` tokens that are no patches.
    """
    selected = _select_outputs(outputs)
    if not patch_count:
        return selected
    return {name: flatten_patches(value, patch_count, prefix) for name, value in selected.items()}


def prefix_token_count(config: Any) -> int:
    """The number of tokens that an image model puts before its patches: queries, a class token and registers."""
    counts = (getattr(config, key, None) for key in ("num_queries", "num_register_tokens"))
    return 1 + sum(count for count in counts if isinstance(count, int))


def _select_outputs(outputs: Any) -> dict[str, Tensor]:
    if isinstance(outputs, Tensor):
        return {"last_hidden_state": outputs}
    if isinstance(outputs, tuple):
        first = _last_tensor(outputs[0])
        return {} if first is None else {"last_hidden_state": first}
    if not isinstance(outputs, Mapping):
        return {}
    primary = {name: value for name in PRIMARY_OUTPUTS if isinstance(value := outputs.get(name), Tensor)}
    if primary:
        return primary
    others = {name: _last_tensor(value) for name, value in outputs.items() if not name.endswith(_EXCLUDED_SUFFIXES)}
    tensors = {name: value for name, value in others.items() if value is not None and value.is_floating_point()}
    return dict(list(tensors.items())[:MAX_OUTPUTS])


def _last_tensor(value: Any) -> Tensor | None:
    """A tensor, or the last of several."""
    if isinstance(value, (tuple, list)):
        return _last_tensor(value[-1]) if value else None
    return value if isinstance(value, Tensor) else None


def flatten_patches(value: Tensor, patch_count: int, prefix: int) -> Tensor:
    """The output of the patches alone; a grid [batch, feature, height, width] becomes [batch, feature, patch].

    A prefix of one or two tokens (a class token) stays: the audit recognises it by the size.
    """
    if value.dim() == 4 and value.shape[2] * value.shape[3] == patch_count:
        return value.flatten(2)
    if value.dim() == 3 and prefix > MAX_UNTRIMMED_PREFIX and value.shape[1] == prefix + patch_count:
        return value[:, prefix:]
    return value
