"""The rotation of one layer of a model."""

from __future__ import annotations

from collections.abc import Mapping

from orderproof.encodings._encoding import PositionalEncoding
from orderproof.encodings._pairs import Layout
from orderproof.encodings.axial import Axial
from orderproof.encodings.configs._models import ATTENTION_LAYERS, OTHER_LAYERS, Model
from orderproof.encodings.configs._read import Values, attribute, entry, head_width, number, refusal
from orderproof.encodings.configs._schedules import schedule_of
from orderproof.encodings.mrope import MRope
from orderproof.encodings.none import NoEncoding
from orderproof.encodings.rotary import Rotary

_GRID_KEYS = frozenset({"rope_type", "type", "rope_theta"})
_STREAM_KEYS = frozenset({"mrope_section", "mrope_interleaved"})


def rotary_of(config: object, layer: int, model: Model) -> PositionalEncoding:
    """How a layer turns its queries and keys; `NoEncoding` where the model lets it see no positions."""
    _check_attends(config, layer)
    if not _turns(config, layer, model):
        return NoEncoding()
    rope = _parameters(config, layer, model)
    if rope is None:
        return NoEncoding()
    kind = rope.get("rope_type", rope.get("type"))
    if kind is None:
        raise refusal(config, "expected rope_parameters to have a rope_type")
    if rope.get("type", kind) != kind:
        raise refusal(
            config, f"rope_parameters has rope_type {kind!r} and type {rope['type']!r}; expected one of the two"
        )
    if model.only_default and kind != "default":
        raise refusal(config, f"it has rules of its own for rope_type {kind!r}, which are not in any schedule")
    if model.grid is not None:
        return _axial(config, rope, kind, model, model.grid)
    also = _STREAM_KEYS if model.streams else frozenset[str]()
    schedule = schedule_of(config, rope, kind=kind, sharpens=model.sharpens, also=also)
    whole, turned = _widths(_of_layer(config, layer), rope, kind, model)
    base = number(config, rope, "rope_theta")
    if model.turns == "layer_rope_theta":
        base = float(entry(config, layer, "layer_rope_theta"))
    layout = _layout(config, model)
    if model.streams is None:
        return Rotary(whole, base=base, layout=layout, rotary_width=turned, schedule=schedule)
    sections = _sections(config, rope, model)
    return MRope(
        whole,
        sections=sections,
        order=model.streams,
        base=base,
        layout=layout,
        rotary_width=turned,
        schedule=schedule,
    )


def _check_attends(config: object, layer: int) -> None:
    """Refuse a layer that has no self-attention."""
    kinds = getattr(config, "layer_types", None)
    if kinds is not None:
        kind = entry(config, layer, "layer_types")
        if kind in OTHER_LAYERS:
            raise refusal(config, f"layer {layer} is of type {kind!r} and has no attention")
        if kind not in ATTENTION_LAYERS:
            raise refusal(config, f"layer {layer} is of type {kind!r}, which is not known here")
    elif layer >= attribute(config, "num_hidden_layers"):
        raise refusal(
            config,
            f"expected layer to be under num_hidden_layers={attribute(config, 'num_hidden_layers')}, got {layer}",
        )
    if layer in (getattr(config, "cross_attention_layers", None) or ()):
        raise refusal(config, f"layer {layer} attends to another sequence, not to its own")


def _turns(config: object, layer: int, model: Model) -> bool:
    """Whether this layer turns at all."""
    if model.needs is not None:
        name, wanted = model.needs
        if not hasattr(config, name):
            raise refusal(config, f"expected an attribute {name}")
        if getattr(config, name) != wanted:
            return False
    if model.may_lack:
        return (getattr(config, "rope_parameters", None) or {}).get("rope_theta") is not None
    if model.turns == "no_rope_layers":
        return bool(entry(config, layer, "no_rope_layers"))
    if model.turns == "layer_rope_theta":
        return bool(entry(config, layer, "layer_rope_theta"))
    if model.turns == "all":
        return True
    sliding = entry(config, layer, "layer_types") == "sliding_attention"
    window = getattr(config, "sliding_window", None)
    return (sliding and window is not None) if model.turns == "sliding" else (sliding or window is None)


def _parameters(config: object, layer: int, model: Model) -> Values | None:
    """The rope parameters of this layer; None where they say that it has none."""
    found = getattr(config, "rope_parameters", None)
    if not isinstance(found, Mapping) or not found:
        raise refusal(config, f"expected rope_parameters, got {found!r}")
    if not model.nested:
        nested = [key for key, value in found.items() if isinstance(value, Mapping)]
        if nested:
            raise refusal(config, f"expected rope_parameters of one kind, got some for each of {', '.join(nested)}")
        return found
    kind = entry(config, layer, "layer_types")
    if kind not in found:
        raise refusal(config, f"expected rope_parameters to have an entry for {kind!r}, the type of layer {layer}")
    inner = found[kind]
    if inner is not None and not isinstance(inner, Mapping):
        raise refusal(config, f"expected rope_parameters[{kind!r}] to be parameters, got {inner!r}")
    return inner


def _of_layer(config: object, layer: int) -> object:
    """The configuration as this layer sees it, where layers have sizes of their own."""
    if getattr(config, "is_heterogeneous", False):
        return config.per_layer_config[layer]  # type: ignore[attr-defined]
    return config


def _widths(config: object, rope: Values, kind: str, model: Model) -> tuple[int, int | None]:
    """The width of what is turned, and how many of its features are, where not all."""
    whole = head_width(config)
    share = 1.0 if rope.get("partial_rotary_factor") is None else number(config, rope, "partial_rotary_factor")
    if kind == "proportional":
        return whole, None
    turned = int(whole * share)
    if model.latent:
        part = int(attribute(config, "qk_rope_head_dim"))
        if turned != part:
            raise refusal(
                config, f"head_dim={whole} and partial_rotary_factor={share} disagree with qk_rope_head_dim={part}"
            )
        return part, None
    if turned == whole:
        return whole, None
    if not model.partial:
        raise refusal(config, f"partial_rotary_factor is {share}, which the model does not heed")
    if turned % 2 or turned < 2:
        raise refusal(
            config,
            f"expected an even number of features to turn, got {share} of {whole}, which is {turned}",
        )
    return whole, turned


def _layout(config: object, model: Model) -> Layout:
    if model.layout != "rope_interleave":
        return model.layout
    found = attribute(config, "rope_interleave")
    if not isinstance(found, bool):
        raise refusal(config, f"expected rope_interleave to be True or False, got {found!r}")
    return "interleaved" if found else "half"


def _axial(config: object, rope: Values, kind: str, model: Model, order: tuple[int, int]) -> PositionalEncoding:
    """Rows and columns of a picture, each in half of the pairs."""
    if kind != "axial":
        raise refusal(config, f"expected rope_type to be axial, got {kind!r}")
    for key in rope.keys() - _GRID_KEYS:
        raise refusal(config, f"rope_parameters has the key {key!r}, which rope_type 'axial' does not know")
    whole = head_width(config, model.width)
    return Axial(whole, base=number(config, rope, "rope_theta"), layout=_layout(config, model), order=order)


def _sections(config: object, rope: Values, model: Model) -> tuple[int, int, int]:
    """How many pairs time, row and column turn."""
    found = rope.get("mrope_section")
    if not isinstance(found, list | tuple) or len(found) != 3 or not all(type(n) is int for n in found):
        raise refusal(config, f"expected rope_parameters['mrope_section'] to be three whole numbers, got {found!r}")
    alternate = rope.get("mrope_interleaved")
    if alternate is not None and alternate != (model.streams == "interleaved"):
        raise refusal(config, f"mrope_interleaved is {alternate!r}, but the model's streams are {model.streams}")
    return found[0], found[1], found[2]
