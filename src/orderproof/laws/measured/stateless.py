"""OP406 stateless: a call gives the same output after any other call.

    f(a), f(b), f(a): the first and the last are equal for every b: longer, shorter, another batch size, decoding.
    f(b) as the first call, and as the second one after f(a), are equal: a mask may be built in the first call.
    b is longer or shorter, or has the shape of a and other content: what is kept by shape may depend on content.

Source: elementary; broken by tables, masks and offsets that are kept from an earlier call.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import inf

import torch
from torch import Tensor

from orderproof.adapter import ModelAdapter
from orderproof.errors import UnsupportedCallError
from orderproof.laws.measured.cached_calls import CachedCalls
from orderproof.laws.measured.compared_ids import texts_with_compared_ids
from orderproof.laws.measured.controls import replace_last_token
from orderproof.laws.measured.lengths import affordable_thresholds
from orderproof.laws.measured.measured_law import Comparison, MeasuredLaw, OutputPair
from orderproof.recording.execution import relative_difference

MAX_TOKENS = 600  # of a call between the two calls that are compared


class Stateless(MeasuredLaw):
    """The law of this module."""

    of_any_weights = True
    confirm_in_float64 = False  # both outputs are of the same call, so their rounding errors are equal
    refutation_changes_model = True

    def comparisons(self, calls: CachedCalls) -> Iterator[Comparison]:
        adapter = calls.adapter
        for tokens in _lengths(adapter, calls.default_length, at_default_length=calls.base is None):
            yield Comparison(
                f"after a call with {tokens} token{'s' * (tokens != 1)}",
                partial(_compare_after_call, tokens=tokens),
                group="after a longer call" if tokens > calls.default_length else "after a shorter call",
            )
        yield Comparison("after a call with one row", partial(_compare_after_call, tokens=calls.default_length, rows=1))
        if "cache" in adapter.supported_inputs:
            yield Comparison("after decoding", partial(_compare_after_call, tokens=calls.default_length, keep=True))
        if calls.remembers_first_state:
            yield Comparison("after the calls of all laws before", _compare_first_state)
        if calls.remembers_first_state and calls.base is None:
            yield Comparison("another call of the same shape as the second one, and as the first", _compare_same_shape)
            lengths = (("longer", 2 * calls.default_length + 1), ("shorter", calls.default_length // 2))
            for words, tokens in lengths if adapter.has_token_axis else ():
                run = partial(_compare_second_call, tokens=min(tokens, adapter.max_positions or tokens))
                yield Comparison(f"a {words} call as the second one, and as the first", run)

    def control(self, calls: CachedCalls) -> OutputPair:
        return replace_last_token(calls)


def _lengths(adapter: ModelAdapter, default: int, *, at_default_length: bool) -> list[int]:
    """The lengths of other calls: longer, beyond the length that the configuration states, and a single token.

    After the default call, also just past each threshold.
    """
    if not adapter.has_token_axis:
        return [default]
    if not at_default_length:
        return list(dict.fromkeys(min(n, adapter.max_positions or n) for n in (2 * default + 1, 1)))
    most = adapter.max_positions or MAX_TOKENS
    stated = adapter.config_max_positions
    past = [] if stated is None or stated >= min(MAX_TOKENS, most) else [stated + 1]
    past += [t.tokens + 1 for t in affordable_thresholds(adapter) if t.tokens > default]
    return list(dict.fromkeys(min(n, most) for n in (2 * default + 1, *past, 1)))


def _compare_after_call(calls: CachedCalls, *, tokens: int, rows: int = 2, keep: bool = False) -> OutputPair:
    first = calls.uncached_call(calls.default_tokens, keep=False).output.clone()
    between = calls.sample_tokens(tokens, rows=rows, other=2)
    if keep:
        calls.incremental_forward(between, [tokens - 2, 1, 1])
    else:
        calls.uncached_call(between, keep=False)
    return first, calls.uncached_call(calls.default_tokens, keep=False).output


def _compare_second_call(calls: CachedCalls, *, tokens: int) -> OutputPair:
    """The output of a call of a model that was not called before, and after its default call."""
    return _first_and_second(calls, calls.sample_tokens(tokens, rows=2, other=2))


def _compare_same_shape(calls: CachedCalls) -> OutputPair:
    """The same for calls of the default shape: a random one, one with other values of all inputs, and compared ids."""
    usual, adapter = calls.sample_tokens(other=2), calls.adapter
    pairs = [_first_and_second(calls, usual)]
    other = adapter.sample_other_call(adapter.batch_size, calls.default_length, calls.seed + 2)
    others = [other] if not usual.is_floating_point() and not torch.equal(other, usual) else []
    for text in (*others, *texts_with_compared_ids(calls)):
        try:
            pairs.append(_first_and_second(calls, text))
        except (RuntimeError, ValueError, IndexError):
            continue  # the model refuses these inputs
    return max(pairs, key=lambda pair: relative_difference(*pair) if pair[0].shape == pair[1].shape else inf)


def _first_and_second(calls: CachedCalls, text: Tensor) -> OutputPair:
    outputs = []
    for before in ((), (calls.default_tokens,)):
        fresh = calls.as_before_the_first_call(own=True)
        if fresh is None:
            raise UnsupportedCallError("the model before its first call is not known")
        calls.restore_shared_state()
        outputs.append([fresh.uncached_call(x, keep=False).output for x in (*before, text)][-1])
    return outputs[0], outputs[1]


def _compare_first_state(calls: CachedCalls) -> OutputPair:
    first = calls.as_before_the_first_call()
    if first is None:
        raise UnsupportedCallError("the model before its first call is not known")
    expected = first.at_length(calls.default_length).uncached_call(calls.default_tokens, keep=False).output
    return expected, calls.uncached_call(calls.default_tokens, keep=False).output


LAW = Stateless(
    code="OP406",
    name="stateless",
    statement="A call gives the same output after any other call.",
    trait="keeps no state between calls",
    expectation={"causal_lm": "holds", "encoder": "holds", "vision": "holds", "module": "holds"},
    remedy="Compute tables, masks and offsets in the call that uses them, or cache them by all values they depend on.",
)
