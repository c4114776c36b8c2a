"""The same weights under another setting that must show: the base of rotary angles, their scaling, a window.

A setting that is read and never used is a common defect: weights that were trained with it then run without. Only
settings that the configuration says are in use are changed.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

import torch

from orderproof.subjects.quieting import silence
from orderproof.subjects.scaling import read

TIMES = 8.0  # the base
FACTOR = 4.0  # of a scaling
SCALED = ("linear", "yarn", "llama3")  # rules in which the factor shows at every length
WINDOWS = {  # settings [tokens], and the kind of layer that they are for
    "sliding_window": "sliding_attention",
    "local_attention": "sliding_attention",
    "attention_chunk_size": "chunked_attention",
}
SHORT = 2  # [tokens]
_WORKED_OUT = re.compile(r"freq|cos|sin|position|bias|mask")  # buffers that follow from the configuration


def altered(model: Any) -> Iterator[tuple[str, Any]]:
    """Each setting by its name, and the model with it changed."""
    for words, config in _changed(model):
        try:
            made = _remade(model, config)
        except Exception:  # noqa: BLE001 - third-party code: a configuration may be refused in any way
            continue
        yield words, made


def _remade(model: Any, config: Any) -> Any:
    with silence(), torch.random.fork_rng(devices=[]):
        made = type(model)(config).to(model.dtype).eval()
    own = {**dict(model.named_parameters()), **_carried(model)}
    with torch.no_grad():
        for name, value in {**dict(made.named_parameters()), **_carried(made)}.items():
            value.copy_(own[name])
    return made


def _carried(model: Any) -> dict[str, Any]:
    """Buffers that are stored with the weights and do not follow from the configuration."""
    stored = model.state_dict()
    return {name: b for name, b in model.named_buffers() if name in stored and not _WORKED_OUT.search(name)}


def _changed(model: Any) -> Iterator[tuple[str, Any]]:
    config = model.config
    rope = read(config, "rope_parameters")
    if isinstance(rope, dict) and is_rotary(model):
        layers = read(config, "layer_types")
        each = {kind: part for kind, part in rope.items() if isinstance(part, dict) and kind in (layers or ())}
        for kind, part in each.items() if each else [("", rope)]:
            of = f" of {kind} layers" if kind else ""
            for words, values in _turned(part, several=_frequencies(model) > 1):
                given = {**rope, kind: {**part, **values}} if kind else {**rope, **values}
                made = _with(config, "rope_parameters", given)
                bases = read(config, "layer_rope_theta")
                if isinstance(bases, list) and "rope_theta" in values:  # stated for each layer, which goes before
                    made.layer_rope_theta = [TIMES * base for base in bases]
                yield words + of, made
    for name, kind in WINDOWS.items():
        size, layers = read(config, name), read(config, "layer_types")
        if name == "local_attention" and read(config, "sliding_window") is not None:
            continue  # worked out from it when the configuration was made
        if isinstance(size, int) and size > 0 and (layers is None or kind in layers):
            yield name, _with(config, name, SHORT if size > SHORT else size + 2)


def _frequencies(model: Any) -> int:
    """The most frequencies that a table of them has; the first is 1 whatever the base."""
    tables = [buffer.numel() for name, buffer in model.named_buffers() if "inv_freq" in name]
    return max(tables, default=2)


def _turned(rope: dict[str, Any], *, several: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    if several and isinstance(rope.get("rope_theta"), (int, float)):
        yield "rope_theta", {"rope_theta": TIMES * rope["rope_theta"]}
    if rope.get("rope_type") == "default":
        yield "rope_type", {"rope_type": "linear", "factor": FACTOR}
    elif rope.get("rope_type") in SCALED:
        yield "rope factor", {"factor": FACTOR * rope["factor"]}


def is_rotary(model: Any) -> bool:
    """Whether a model has attention, and its configuration, where it has a choice, turns positions in."""
    config = model.config
    if not any("Attention" in type(part).__name__ for part in model.modules()):
        return False
    chosen = read(config, "position_embedding_type")
    off = any(read(config, name) is False for name in ("use_mem_rope", "use_rope", "rotary"))
    return chosen in (None, "rope", "rotary") and not read(config, "alibi") and not off


def _with(config: Any, name: str, value: Any) -> Any:
    made = copy.deepcopy(config)
    setattr(made, name, value)
    return made
