"""OP502 save_load: a model that was copied, saved and loaded, or built on meta and loaded, gives the same output.

    f(load(save(m)), x) = f(copy(m), x) = f(m, x)         and every buffer keeps its value

and the same for a model of transformers that is built on meta, gets memory from `to_empty`, its computed buffers from
`init_weights` and its weights from `load_state_dict`.

A buffer that is not saved must be computed again when loading. Otherwise it holds uninitialised memory: a table of
frequencies lost that way gives finite but wrong outputs.

For information only: a model cast to bfloat16, compared with the model loaded in bfloat16. `.to(dtype)` casts every
floating-point buffer, so frequencies that loading keeps in float32 are rounded; most libraries accept that.
Source: elementary.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

from orderproof.laws.measured.cached_calls import CachedCalls
from orderproof.laws.measured.controls import replace_every_token
from orderproof.laws.measured.measured_law import Comparison, MeasuredLaw, OutputPair


class SaveLoad(MeasuredLaw):
    """The law of this module."""

    def comparisons(self, calls: CachedCalls) -> Iterator[Comparison]:
        at_default_length = calls.base is None  # buffers do not depend on the length
        buffers = at_default_length and any(buffer.is_floating_point() for buffer in calls.adapter.module.buffers())
        for name in calls.adapter.reload_methods():
            yield Comparison(name, partial(_compare_reloaded, name=name))
            if buffers:
                yield Comparison(f"{name}: buffers", partial(_compare_buffers, name=name))
        if at_default_length:
            what = "cast to bfloat16 and loaded in bfloat16"
            yield Comparison(what, _compare_cast, informational=True, of_weights=True)

    def control(self, calls: CachedCalls) -> OutputPair:
        return replace_every_token(calls)


def _compare_reloaded(calls: CachedCalls, *, name: str) -> OutputPair:
    return calls.default_output, calls.reloaded(name).default_output


def _compare_buffers(calls: CachedCalls, *, name: str) -> OutputPair:
    """The first buffer that differs, else the first; after the default call of both models, which may set buffers."""
    other = calls.reloaded(name)
    calls.memoize(
        "called before its buffers are compared", lambda: calls.uncached_call(calls.default_tokens, keep=False)
    )
    _ = other.default_output  # it has no other user: its only call
    others = dict(other.adapter.module.named_buffers())
    pairs = [(b, others[n]) for n, b in calls.adapter.module.named_buffers() if n in others and b.is_floating_point()]
    return next((pair for pair in pairs if not torch.equal(*pair)), pairs[0])


def _compare_cast(calls: CachedCalls) -> OutputPair:
    dtype = torch.bfloat16
    loaded = calls.loaded_in(dtype)
    cast = CachedCalls(calls.adapter.cast_to(dtype), calls.seed, floats=dtype)
    return loaded.default_output, cast.default_output


LAW = SaveLoad(
    code="OP502",
    name="save_load",
    statement="A model that was copied, saved and loaded, or built on meta and loaded, gives the same output.",
    trait="gives the same output after saving and loading",
    expectation={"causal_lm": "holds", "encoder": "holds", "vision": "holds", "module": "holds"},
    remedy="Save every buffer that cannot be computed again, and compute the others when loading, not when building.",
    diff="-model.to(torch.bfloat16)\n+Model.from_pretrained(path, dtype=torch.bfloat16)",
)
