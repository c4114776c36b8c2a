"""The rotary encoding of one layer of a model."""

from __future__ import annotations

from collections.abc import Mapping

from orderproof.encodings._encoding import PositionalEncoding
from orderproof.encodings._rotary_pairs import RotaryLayout
from orderproof.encodings.axial_rotary import AxialRotary
from orderproof.encodings.configs._config_values import (
    Values,
    config_error,
    head_width,
    per_layer_value,
    required_attribute,
    required_number,
)
from orderproof.encodings.configs._model_types import ATTENTION_LAYERS, NON_ATTENTION_LAYERS, RopeModelType
from orderproof.encodings.configs._rope_scaling import schedule_of
from orderproof.encodings.mrope import MRope
from orderproof.encodings.none import NoEncoding
from orderproof.encodings.rotary import Rotary

_GRID_KEYS = frozenset({"rope_type", "type", "rope_theta"})
_MROPE_KEYS = frozenset({"mrope_section", "mrope_interleaved"})


def rotary_of(config: object, layer: int, model: RopeModelType) -> PositionalEncoding:
    """The rotary encoding of a layer; `NoEncoding` if the layer does not use positions."""
    _check_self_attention(config, layer)
    if not _layer_uses_rope(config, layer, model):
        return NoEncoding()
    rope = _parameters(config, layer, model)
    if rope is None:
        return NoEncoding()
    kind = rope.get("rope_type", rope.get("type"))
    if kind is None:
        raise config_error(config, "expected rope_parameters to have a rope_type")
    if rope.get("type", kind) != kind:
        raise config_error(
            config, f"rope_parameters has rope_type {kind!r} and type {rope['type']!r}; expected one of the two"
        )
    if model.default_rope_type_only and kind != "default":
        raise config_error(config, f"its rules for rope_type {kind!r} differ from every schedule")
    if model.grid is not None:
        return _axial(config, rope, kind, model, model.grid)
    other_keys = _MROPE_KEYS if model.mrope_layout else frozenset[str]()
    schedule = schedule_of(config, rope, kind=kind, scales_scores=model.scales_scores_by_mscale, other_keys=other_keys)
    whole, rotated = _widths(_layer_config(config, layer), rope, kind, model)
    base = required_number(config, rope, "rope_theta")
    if model.rotary_layers == "layer_rope_theta":
        base = float(per_layer_value(config, layer, "layer_rope_theta"))
    layout = _layout(config, model)
    if model.mrope_layout is None:
        return Rotary(whole, base=base, layout=layout, rotary_width=rotated, schedule=schedule)
    sections = _sections(config, rope, model)
    return MRope(
        whole,
        sections=sections,
        section_layout=model.mrope_layout,
        base=base,
        layout=layout,
        rotary_width=rotated,
        schedule=schedule,
    )


def _check_self_attention(config: object, layer: int) -> None:
    """Reject a layer without self-attention."""
    kinds = getattr(config, "layer_types", None)
    if kinds is not None:
        kind = per_layer_value(config, layer, "layer_types")
        if kind in NON_ATTENTION_LAYERS:
            raise config_error(config, f"layer {layer} is of type {kind!r}, which has no attention")
        if kind not in ATTENTION_LAYERS:
            raise config_error(config, f"layer {layer} is of the unknown type {kind!r}")
    elif layer >= (layers := required_attribute(config, "num_hidden_layers")):
        raise config_error(config, f"expected layer to be under num_hidden_layers={layers}, got {layer}")
    if layer in (getattr(config, "cross_attention_layers", None) or ()):
        raise config_error(config, f"layer {layer} is cross-attention, expected self-attention")


def _layer_uses_rope(config: object, layer: int, model: RopeModelType) -> bool:
    """True if this layer is rotated."""
    if model.required_attribute is not None:
        name, wanted = model.required_attribute
        if not hasattr(config, name):
            raise config_error(config, f"expected an attribute {name}")
        if getattr(config, name) != wanted:
            return False
    if model.rope_optional:
        return (getattr(config, "rope_parameters", None) or {}).get("rope_theta") is not None
    if model.rotary_layers == "no_rope_layers":
        return bool(per_layer_value(config, layer, "no_rope_layers"))
    if model.rotary_layers == "layer_rope_theta":
        return bool(per_layer_value(config, layer, "layer_rope_theta"))
    if model.rotary_layers == "all":
        return True
    sliding = per_layer_value(config, layer, "layer_types") == "sliding_attention"
    window = getattr(config, "sliding_window", None)
    return (sliding and window is not None) if model.rotary_layers == "sliding" else (sliding or window is None)


def _parameters(config: object, layer: int, model: RopeModelType) -> Values | None:
    """The rope parameters of this layer; None if it has none."""
    parameters = getattr(config, "rope_parameters", None)
    if not isinstance(parameters, Mapping) or not parameters:
        raise config_error(config, f"expected rope_parameters, got {parameters!r}")
    if not model.nested:
        nested = [key for key, value in parameters.items() if isinstance(value, Mapping)]
        if nested:
            raise config_error(
                config, f"expected rope_parameters without layer types, got entries for {', '.join(nested)}"
            )
        return parameters
    kind = per_layer_value(config, layer, "layer_types")
    if kind not in parameters:
        raise config_error(config, f"expected rope_parameters to have an entry for {kind!r}, the type of layer {layer}")
    inner = parameters[kind]
    if inner is not None and not isinstance(inner, Mapping):
        raise config_error(config, f"expected rope_parameters[{kind!r}] to be parameters, got {inner!r}")
    return inner


def _layer_config(config: object, layer: int) -> object:
    """The configuration of this layer, if layers differ in size."""
    if getattr(config, "is_heterogeneous", False):
        return config.per_layer_config[layer]  # type: ignore[attr-defined]
    return config


def _widths(config: object, rope: Values, kind: str, model: RopeModelType) -> tuple[int, int | None]:
    """The head width, and the number of rotated features if not all are."""
    whole = head_width(config)
    share = 1.0 if rope.get("partial_rotary_factor") is None else required_number(config, rope, "partial_rotary_factor")
    if kind == "proportional":
        return whole, None
    rotated = int(whole * share)
    if model.mla:
        part = int(required_attribute(config, "qk_rope_head_dim"))
        if rotated != part:
            raise config_error(
                config, f"head_dim={whole} and partial_rotary_factor={share} disagree with qk_rope_head_dim={part}"
            )
        return part, None
    if rotated == whole:
        return whole, None
    if not model.partial:
        raise config_error(config, f"partial_rotary_factor is {share}, which the model does not support")
    if rotated % 2 or rotated < 2:
        raise config_error(
            config,
            f"expected an even number of rotated features, got {share} of {whole}, which is {rotated}",
        )
    return whole, rotated


def _layout(config: object, model: RopeModelType) -> RotaryLayout:
    if model.layout != "rope_interleave":
        return model.layout
    interleaved = required_attribute(config, "rope_interleave")
    if not isinstance(interleaved, bool):
        raise config_error(config, f"expected rope_interleave to be True or False, got {interleaved!r}")
    return "interleaved" if interleaved else "half"


def _axial(
    config: object, rope: Values, kind: str, model: RopeModelType, axis_order: tuple[int, int]
) -> PositionalEncoding:
    """Axial rotary encoding of image rows and columns."""
    if kind != "axial":
        raise config_error(config, f"expected rope_type to be axial, got {kind!r}")
    for key in rope.keys() - _GRID_KEYS:
        raise config_error(config, f"rope_parameters has the key {key!r}, which rope_type 'axial' does not support")
    whole = head_width(config, model.width)
    return AxialRotary(
        whole, base=required_number(config, rope, "rope_theta"), layout=_layout(config, model), axis_order=axis_order
    )


def _sections(config: object, rope: Values, model: RopeModelType) -> tuple[int, int, int]:
    """The numbers of pairs of time, row and column."""
    sections = rope.get("mrope_section")
    if not isinstance(sections, list | tuple) or len(sections) != 3 or not all(type(n) is int for n in sections):
        raise config_error(config, f"expected rope_parameters['mrope_section'] to be three integers, got {sections!r}")
    alternate = rope.get("mrope_interleaved")
    if alternate is not None and alternate != (model.mrope_layout == "interleaved"):
        raise config_error(
            config, f"mrope_interleaved is {alternate!r}, but the model's sections are {model.mrope_layout}"
        )
    return sections[0], sections[1], sections[2]
