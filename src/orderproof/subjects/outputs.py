"""Which outputs of a transformers model are asked about, and a grid of tokens as a row of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

OUTPUTS = ("last_hidden_state", "pooler_output", "logits")
_ASIDE = ("loss", "hidden_states", "attentions", "past_key_values", "image_hidden_states")
FEW = 2  # tokens ahead of the patches that need no telling
MOST = 3  # so many of the outputs of a model that has none of the usual ones


def tensors_of(outputs: Any, patches: int | None = None, *, ahead: int = 0) -> dict[str, Tensor]:
    """The usual outputs of a model; where it has none, its first others, and of several stages the last.

    Of an image model with so many ``patches``, behind ``ahead`` tokens of its own, those of the patches.
    """
    found = _found(outputs)
    return {name: in_a_row(value, patches, ahead) for name, value in found.items()} if patches else found


def tokens_ahead(config: Any) -> int:
    """How many tokens of its own an image model puts before its patches: queries, a class and registers."""
    counts = (getattr(config, key, None) for key in ("num_queries", "num_register_tokens"))
    return 1 + sum(count for count in counts if isinstance(count, int))


def _found(outputs: Any) -> dict[str, Tensor]:
    if isinstance(outputs, Tensor):
        return {"last_hidden_state": outputs}
    if isinstance(outputs, tuple):
        first = _last(outputs[0])
        return {} if first is None else {"last_hidden_state": first}
    if not isinstance(outputs, Mapping):
        return {}
    usual = {name: value for name in OUTPUTS if isinstance(value := outputs.get(name), Tensor)}
    if usual:
        return usual
    others = {name: _last(value) for name, value in outputs.items() if not name.endswith(_ASIDE)}
    made = {name: value for name, value in others.items() if value is not None and value.is_floating_point()}
    return dict(list(made.items())[:MOST])


def _last(value: Any) -> Tensor | None:
    """A tensor, or the last of several."""
    if isinstance(value, (tuple, list)):
        return _last(value[-1]) if value else None
    return value if isinstance(value, Tensor) else None


def in_a_row(value: Tensor, patches: int, ahead: int) -> Tensor:
    """The rows of the patches alone; a grid with a place for each [batch, width, height, width of the grid] as a row.

    One or two tokens ahead of the patches, a class, are left where they are: they are told by their number.
    """
    if value.dim() == 4 and value.shape[2] * value.shape[3] == patches:
        return value.flatten(2)
    if value.dim() == 3 and ahead > FEW and value.shape[1] == ahead + patches:
        return value[:, ahead:]
    return value
