"""The sliding window: absent, off by one, in other layers, or counted in chunks of a prompt.

An engine that reads a prompt in chunks of the window and keeps the chunk before shows each token the whole of it. One
whose cache keeps a window of tokens, and that has no window in a chunk, shows each token of a chunk all that is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from orderproof.laws.ports import PortCall
from orderproof.laws.ports.port_law import CallKind
from orderproof.models.hf.context_spans import context_spans
from orderproof.ports.causes.attention_masks import replace_masks
from orderproof.ports.causes.cause import Candidate, Cause, Defaults, ropes, with_values
from orderproof.ports.reference import Change, Reference, window_of

NO_WINDOW = 1 << 20  # [tokens]; longer than any text, and the layers keep their type
FULL, LOCAL = "full_attention", "sliding_attention"
MAX_PERIOD = 6  # layers; models with a window have one full layer in 2 to 6


def _candidates(reference: Reference, defaults: Defaults) -> Iterator[Candidate]:
    del defaults
    if (window := window_of(reference.config)) is not None:
        yield from _other_windows(reference.config, window)
        yield from _chunks_of_a_prompt(reference.config, window)
    yield from _patterns(reference.config)


def _other_windows(config: Any, window: int) -> Iterator[Candidate]:
    """The layers with a window without it, with another one, and other layers."""
    sizes = {key: n for key, n in context_spans(config).items() if "window" in key or "attention_chunk" in key}
    setting = next(iter(sizes))
    yield Candidate(
        "window", setting, str(window), "no window", with_values(dict.fromkeys(sizes, NO_WINDOW)), likely=True
    )
    for step in (1, -1):
        values = {key: size + step for key, size in sizes.items() if size + step > 0}
        yield Candidate("window", setting, str(window), str(window + step), with_values(values))
    types = list(getattr(config, "layer_types", None) or ())
    local = next((kind for kind in types if kind != FULL), FULL)
    if len(set(types)) > 1 and len(ropes(config)) <= 1:
        shifted = [types[-1], *types[:-1]]
        yield Candidate(
            "window", "layer_types", "as stated", "all local", with_values({"layer_types": [local] * len(types)})
        )
        yield Candidate(
            "window", "layer_types", "as stated", "shifted by a layer", with_values({"layer_types": shifted})
        )


def _chunks_of_a_prompt(config: Any, window: int) -> Iterator[Candidate]:
    """The window from the start of a chunk, or of the chunk before it, for the tokens of a prompt."""
    types = list(getattr(config, "layer_types", None) or ())
    setting = next(iter(key for key in context_spans(config) if "window" in key or "attention_chunk" in key))
    texts: tuple[tuple[str, CallKind], ...] = (
        (f"in a prompt, from the start of the chunk of {window} before", "greedy"),
        (f"in a chunk, from {window} tokens before its start", "chunks"),
    )
    for text, kind in texts:
        for every_layer in (False, True) if FULL in types else (True,):
            layers = None if every_layer else {layer for layer, each in enumerate(types) if each != FULL}
            assumed = f"{text}, in every layer" if FULL in types and every_layer else text
            change = Change(prepare_for=partial(_show_chunks, window=window, layers=layers), positions=_in_one_call)
            yield Candidate("window", setting, str(window), assumed, change, kind)


def _in_one_call(call: PortCall) -> list[list[int]]:
    """The positions of a prompt, so that it is not read in chunks: the masks stand for them."""
    return [list(range(len(row))) for row in call.compared_rows]


def _first_visible(call: PortCall, count: int, window: int) -> Tensor:
    """The first key that each query sees in such an engine; the token after a prompt, and a chunk of one, as stated."""
    query = torch.arange(count)
    if call.kind == "greedy":
        return torch.where(query < call.length - 1, (query // window - 1) * window, query + 1 - window)
    sizes = torch.tensor(call.sizes)
    starts, of_query = (sizes.cumsum(0) - sizes).repeat_interleave(sizes), sizes.repeat_interleave(sizes)
    return torch.where(of_query > 1, starts - window, query + 1 - window)


def _show_chunks(model: Any, call: PortCall, *, window: int, layers: set[int] | None) -> None:
    """Give the attention modules of these layers the mask of such an engine."""

    def with_chunks(mask: Tensor) -> Tensor:
        count = mask.shape[-1]
        query, key = torch.arange(count)[:, None], torch.arange(count)
        visible = (key <= query) & (key >= _first_visible(call, count, window)[:, None])
        return torch.where(visible, 0.0, float("-inf")).to(mask.dtype)[None, None]

    replace_masks(model, with_chunks, layers)


def _patterns(config: Any) -> Iterator[Candidate]:
    """Patterns that an engine may have in its program: one full layer in each group of layers."""
    types = list(getattr(config, "layer_types", None) or ())
    if not isinstance(getattr(config, "sliding_window", None), int) or not {*types} <= {FULL, LOCAL} or not types:
        return
    patterns = {
        tuple(FULL if layer % period == full else LOCAL for layer in range(len(types))): None
        for period in range(2, MAX_PERIOD + 1)
        for full in (0, period - 1)
    }
    for pattern in patterns:
        if list(pattern) != types:
            places = [str(layer) for layer, kind in enumerate(pattern) if kind == FULL]
            assumed = f"full attention in layer{'s' * (len(places) > 1)} {', '.join(places) or 'none'}"
            yield Candidate("window", "layer_types", "as stated", assumed, with_values({"layer_types": list(pattern)}))


CAUSE = Cause("window", 10, _candidates)
