"""Any other value of the configuration: at the engine's default, at the default of its class, or switched off.

So are biases, and tables of embeddings besides that of the tokens, that are not read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

from orderproof.models.tiny.fixed_sizes import SIZE_KEYS
from orderproof.ports.causes.cause import Candidate, Cause, Defaults, with_read_values, with_values
from orderproof.ports.reference import Change, Reference

ACTIVATIONS = ("gelu", "gelu_pytorch_tanh", "quick_gelu", "silu", "relu", "relu2")
ACTIVATION_KEY = re.compile(r"^(hidden_act|hidden_activation|activation_function|activation|mlp_hidden_act)$")
_IRRELEVANT = re.compile(
    r"^_|dropout|token_id|initializer|use_cache|^output_|^return_|dtype|vocab_size|transformers_version|attn_impl"
    r"|model_type|architectures|tie_|is_|chunk_size|aux_loss|jitter|pdrop|window|rope|eps|softcap|max_position|noise"
)


def _candidates(reference: Reference, defaults: Defaults) -> Iterator[Candidate]:
    config = reference.config
    values = {key: value for key, value in config.to_dict().items() if not _IRRELEVANT.search(key)}
    for key, value in values.items():
        for other in ACTIVATIONS if ACTIVATION_KEY.match(key) else ():
            if other != value:
                yield Candidate("other", key, str(value), other, with_values({key: other}))
    usual = _default_values(type(config))
    for key, value in values.items():
        if key not in SIZE_KEYS and isinstance(value, (bool, int, float)):
            for other in dict.fromkeys(_alternatives(key, value, usual, defaults)):
                if other != value and isinstance(other, (bool, int, float, type(None))):
                    flag = isinstance(value, bool)
                    change = with_read_values({key: other}) if flag else with_values({key: other})
                    assumed = "absent" if other is None else str(other)
                    yield Candidate("other", key, str(value), assumed, change, likely=flag or other is None)
    for what, of_kind in (("biases", _biases), ("embeddings", _more_embeddings)):
        for kind in sorted({_kind(name) for name, _ in of_kind(reference.model)}):
            change = Change(prepare=partial(_set_to_zero, of_kind=of_kind, kind=kind))
            yield Candidate("other", f"{what} of {kind}", "in the checkpoint", "not read", change)


def _alternatives(key: str, value: Any, usual: dict[str, Any], defaults: Defaults) -> Iterator[Any]:
    yield from (source[key] for source in (defaults, usual) if key in source)
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, float):
        yield 1.0


def _default_values(config_class: Any) -> dict[str, Any]:
    try:
        return dict(config_class().to_dict())
    except Exception:  # noqa: BLE001 - third-party code: a configuration may have no default
        return {}


def _kind(name: str) -> str:
    """The layer of a bias or a table: `q_proj` of `q_proj.bias`, `score_bias` of `gate.score_bias`."""
    path, _, last = name.rpartition(".")
    return path.rpartition(".")[2] if last in ("bias", "weight") else last


def _biases(model: Any) -> list[tuple[str, Any]]:
    """The biases of a model."""
    return [(name, value) for name, value in model.named_parameters() if name.endswith("bias")]


def _more_embeddings(model: Any) -> list[tuple[str, Any]]:
    """The tables of embeddings of a model besides that of its tokens."""
    own = model.get_input_embeddings() if hasattr(model, "get_input_embeddings") else None
    tables = [(name, part) for name, part in model.named_modules() if isinstance(part, torch.nn.Embedding)]
    return [(f"{name}.weight", part.weight) for name, part in tables if part is not own]


def _set_to_zero(model: Any, of_kind: Callable[[Any], list[tuple[str, Any]]], kind: str) -> None:
    with torch.no_grad():
        for name, parameter in of_kind(model):
            if _kind(name) == kind:
                parameter.zero_()


CAUSE = Cause("other", 120, _candidates)
