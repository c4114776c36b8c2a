"""The description of a transformers model that builders and adapters read.

`describe` reads the configuration, the class, its signature and the buffers. It runs nothing, changes nothing and works
on the meta device. Facts stated by the configuration or the signature are taken as they are. A field that has to be
inferred otherwise (from class names, source text or lists of model types) leaves a note if it narrows the audit, and
the user can override every such field.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from orderproof.adapter import Threshold
from orderproof.errors import UsageError, first_line
from orderproof.models.audio import audio_argument
from orderproof.models.hf.assumptions import OPTIONAL_ARGUMENTS, TEXT_KINDS, Assumptions, check_assumptions
from orderproof.models.hf.attention_pattern import (
    FULL_ATTENTION,
    AttentionLayer,
    configured_layers,
    other_token_mixing,
    with_own_windows,
)
from orderproof.models.hf.config_changes import uses_rotary
from orderproof.models.hf.context_spans import context_spans
from orderproof.models.hf.mechanisms import mechanisms
from orderproof.models.hf.model_kind import infer_model_kind
from orderproof.models.hf.position_tables import first_position, position_table_size
from orderproof.models.hf.thresholds import thresholds
from orderproof.models.own_errors import raise_own_error
from orderproof.models.tiny.proportional_sizes import config_value

LAYER_COUNT_KEYS = ("num_hidden_layers", "encoder_layers", "num_layers", "n_layer", "n_layers")
_POSITION_NAME = re.compile("rotary|position|sinusoid", re.IGNORECASE)
_IGNORED_WARNINGS = ("`{}` was passed, but it is unused", "`{}` were provided but will be ignored")


@dataclass(frozen=True)
class ModelDescription:
    """A transformers model, as far as it can be described without running it.

    Attributes:
        class_name: The name of its class.
        model_kind: "encoder", "causal_lm", "vision" or "audio".
        layer_count: Number of layers in the configuration.
        forward_arguments: Names of the arguments of `forward`.
        accepts_kwargs: `forward` has **kwargs, so that an argument it does not name passes silently.
        ignored_arguments: Arguments that `forward` names and, by its own warning, ignores.
        audio_argument: The argument that takes audio, if that is the main input.
        vocab_size: Number of token ids.
        pad_token_id: The token id of pads.
        first_position_id: The position id of the first token.
        position_table_size: Most tokens that the position tables have rows for.
        config_max_positions: `max_position_embeddings` of the configuration.
        family_max_positions: `max_position_embeddings` of the default configuration of the same class.
        has_positions: The model has an encoding of positions.
        context_spans: Windows, chunks and blocks in the configuration [tokens], by key.
        mechanisms: Parts that mix tokens or encode positions, by the names of `orderproof.adapter.ModelAdapter`.
        thresholds: Numbers of tokens at which it may change its behaviour.
        attention_layers: The mask of each layer; None where the configuration does not determine the pattern.
        notes: One line for each inference that narrows the audit.

    """

    class_name: str
    forward_arguments: frozenset[str]
    model_kind: str = "encoder"
    layer_count: int | None = None
    accepts_kwargs: bool = False
    ignored_arguments: frozenset[str] = frozenset()
    audio_argument: str | None = None
    vocab_size: int | None = None
    pad_token_id: int | None = None
    first_position_id: int = 0
    position_table_size: int | None = None
    config_max_positions: int | None = None
    family_max_positions: int | None = None
    has_positions: bool = True
    context_spans: Mapping[str, int] = field(default_factory=dict)
    mechanisms: frozenset[str] = frozenset()
    thresholds: tuple[Threshold, ...] = ()
    attention_layers: tuple[AttentionLayer, ...] | None = None
    notes: tuple[str, ...] = ()

    @property
    def causal(self) -> bool:
        """A token sees only tokens up to itself."""
        return self.model_kind == "causal_lm"

    @property
    def has_full_attention(self) -> bool:
        """Every layer has full attention, and nothing else mixes tokens."""
        return {layer.layer_type for layer in self.attention_layers or ()} == {FULL_ATTENTION}


def describe(
    model: Any,
    *,
    config: Any = None,
    encoder: bool = False,
    model_kind: str | None = None,
    assume: Assumptions | None = None,
) -> ModelDescription:
    """Describe a transformers model.

    Args:
        model: The module that is audited.
        config: The configuration of the whole model, where ``model`` is a part; by default that of ``model``.
        encoder: ``model`` is the encoder taken out of an encoder-decoder.
        model_kind: The kind, where the caller knows it.
        assume: Values that replace inferred ones, by the names in `ASSUMABLE`.

    Raises:
        UsageError: A name in ``assume`` is unknown, or its value has the wrong type.

    """
    assumed = check_assumptions(assume)
    notes = [f"{name} is {value!r}, as stated" for name, value in assumed.items()]
    own_config = model.config
    config = own_config if config is None else config
    text_config = own_config.get_text_config()
    parameters = inspect.signature(model.forward).parameters
    audio_name = audio_argument(model)
    if audio_name is None and model_kind is None:
        model_kind, inferred_from = infer_model_kind(config, model, encoder=encoder)
        if inferred_from and "model_kind" not in assumed:
            notes.append(_note(f"model_kind {model_kind!r} inferred from {inferred_from}", "model_kind"))
    found = "audio" if audio_name else model_kind
    if found in ("vision", "audio") and assumed.get("model_kind"):
        raise UsageError(f"expected a model of tokens to be an encoder or a decoder; {type(model).__name__} is {found}")
    kind = assumed.get("model_kind") or found
    is_text = kind in TEXT_KINDS
    layers, unknown = _attention_layers(model, causal=kind == "causal_lm", layer_types=assumed.get("layer_types"))
    ignored = frozenset(assumed.get("ignored_arguments", _documented_as_ignored(model, parameters)))
    table = assumed.get("position_table_size", position_table_size(model))
    positions, evidence = (True, "") if table is not None else _find_positions(model)
    family, no_family = _family_max_positions(own_config)
    if is_text:
        if unknown:
            notes.append(_note(f"attention pattern not determined because of {unknown}", "layer_types"))
        notes += [
            _note(f"{name} counts as ignored by a warning in {type(model).__name__}.forward", "ignored_arguments")
            for name in sorted(ignored) if "ignored_arguments" not in assumed
        ]  # fmt: skip
        if not positions and "has_positions" not in assumed:
            notes.append(_note(f"no position encoding inferred from {evidence}", "has_positions"))
        if no_family and "family_max_positions" not in assumed:
            notes.append(_note(no_family, "family_max_positions"))
    return ModelDescription(
        class_name=type(model).__name__,
        forward_arguments=frozenset(parameters),
        model_kind=str(kind),
        layer_count=layer_count(config),
        accepts_kwargs=any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values()),
        ignored_arguments=ignored,
        audio_argument=audio_name,
        vocab_size=_positive(getattr(text_config, "vocab_size", None)),
        pad_token_id=assumed.get("pad_token_id", _natural(getattr(text_config, "pad_token_id", None))),
        first_position_id=assumed.get("first_position_id", first_position(model)),
        position_table_size=table,
        config_max_positions=assumed.get(
            "config_max_positions", _positive(config_value(own_config, "max_position_embeddings"))
        ),
        family_max_positions=assumed.get("family_max_positions", family),
        has_positions=assumed.get("has_positions", positions),
        context_spans=context_spans(own_config),
        mechanisms=mechanisms(model, own_config, table),
        thresholds=thresholds(model, text_config, table) if is_text else (),
        attention_layers=layers,
        notes=tuple(notes),
    )


def _note(text: str, name: str) -> str:
    return f"{text}; override with assume {name}"


def layer_count(config: Any) -> int | None:
    """The number of layers in a configuration."""
    text = config.get_text_config()
    return next((int(n) for key in LAYER_COUNT_KEYS if isinstance(n := getattr(text, key, None), int)), None)


def _attention_layers(
    model: nn.Module, *, causal: bool, layer_types: Any = None
) -> tuple[tuple[AttentionLayer, ...] | None, str]:
    """The mask of each layer, or None and the reason why it is unknown. Layer types from the user are final."""
    config: Any = model.config
    try:
        text_config = config.get_text_config()
        layers = configured_layers(text_config, layer_types)
        mixing = "" if layer_types is not None else other_token_mixing(model, text_config)
    except Exception as error:  # noqa: BLE001 - a configuration may refuse to be read as a whole
        raise_own_error(error)
        return None, f"a configuration that cannot be read ({first_line(error)})"
    if isinstance(layers, str):
        return None, layers
    if mixing:
        return None, mixing
    return layers if causal else with_own_windows(layers, model), ""


def _documented_as_ignored(model: Any, parameters: Mapping[str, Any]) -> frozenset[str]:
    """Arguments that `forward` names and warns that it ignores: the mask of RWKV, the position ids of CSM."""
    try:
        source = inspect.getsource(type(model).forward)
    except (OSError, TypeError):  # no source file
        return frozenset()
    return frozenset(
        name
        for name in OPTIONAL_ARGUMENTS
        if name in parameters and any(w.format(name) in source for w in _IGNORED_WARNINGS)
    )


def _find_positions(model: Any) -> tuple[bool, str]:
    """True if the model has rotary positions, or a module or buffer named after positions; else the evidence."""
    if config_value(model.config, "rope_parameters") is not None:
        return (True, "") if uses_rotary(model) else (False, "a configuration or class names without rotary attention")
    names = [type(part).__name__ for part in model.modules()] + [name for name, _ in model.named_buffers()]
    return (True, "") if any(map(_POSITION_NAME.search, names)) else (False, "the names of its modules and buffers")


def _family_max_positions(config: Any) -> tuple[int | None, str]:
    """The default `max_position_embeddings` of the configuration class; a tiny model states fewer."""
    try:
        return _positive(getattr(type(config)(), "max_position_embeddings", None)), ""
    except Exception as error:  # noqa: BLE001 - a configuration may have no default
        return None, f"no default configuration to take the maximal length from ({first_line(error)})"


def _positive(value: Any) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def _natural(value: Any) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None
