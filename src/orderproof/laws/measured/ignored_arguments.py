"""OP306 ignored_arguments: every argument and setting that a model accepts changes its output.

    f(x; p) != f(x; p'),   f(x; m) != f(x; m'),   f_s(x) != f_s'(x)   for a setting s, with the same weights

for position ids p, a mask m, and the settings base, scaling and window. An argument that is accepted and dropped is
worse than one that is refused, because the caller relies on it. The two outputs must differ; equal outputs refute the
law only if replacing a token changes the output. An argument that a model does not name but accepts in its `**kwargs`
is tried and reported, and refutes nothing; nor do position ids, base and scaling of a model none of whose layers reads
an encoding of positions: it may name position ids for packed documents only. Position ids are spaced, and the call has
an all-ones mask: without one some libraries read gaps as packed documents.
Source: facebookresearch/fairseq#3726 (positions ignored), huggingface/diffusers#10111 (base never used),
unslothai/unsloth#6197 (scaling dropped).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from orderproof.adapter import ModelAdapter
from orderproof.errors import UnsupportedCallError
from orderproof.laws.measured.cached_calls import CachedCalls
from orderproof.laws.measured.controls import replace_first_token
from orderproof.laws.measured.dtype_reference import position_count
from orderproof.laws.measured.measured_law import INPUT_NAMES, Comparison, MeasuredLaw, OutputPair
from orderproof.tolerances import MAX_NOISE

NO_ENCODING = "no layer reads an encoding of positions, so it can change nothing"
MAX_POSITION = 108  # of the spaced position ids


class IgnoredArguments(MeasuredLaw):
    """The law of this module."""

    of_any_weights = True

    def inapplicable_reason(self, adapter: ModelAdapter) -> str | None:
        if _inputs(adapter) or any(True for _ in adapter.config_variants()):
            return None
        return "it takes no position ids and no mask, and states no base, scaling or window"

    def comparisons(self, calls: CachedCalls) -> Iterator[Comparison]:
        adapter = calls.adapter
        for argument, compare in (("positions", _positions), ("mask", _mask)):
            name = INPUT_NAMES[argument]
            if argument == "mask" and calls.base is not None and adapter.right_padding_only:
                continue  # strides leave one output of a few tokens, which no number of real tokens changes
            if argument in _inputs(adapter):
                yield Comparison(f"{name} must change the output", compare, expects_difference=True)
            elif argument in adapter.ignored_kwargs:
                run = partial(_compare_ignored_kwarg, name=name, compare=compare)
                yield Comparison(f"{name}, not named, must change the output", run, expects_difference=True)
        for setting, other in adapter.config_variants() if calls.base is None else ():
            remedy = f"Read {setting} where it is used, and not only where it is stored."
            run = partial(_compare_config_variant, other=other, setting=setting)
            yield Comparison(f"{setting} must change the output", run, expects_difference=True, remedy=remedy)

    def control(self, calls: CachedCalls) -> OutputPair:
        return replace_first_token(calls)


def _inputs(adapter: ModelAdapter) -> frozenset[str]:
    """The inputs that the model takes, besides its tokens: ids of pads are tokens."""
    return adapter.supported_inputs & {"positions", *({"mask"} if not adapter.marks_pads_by_id else ())}


def spaced_position_ids(calls: CachedCalls) -> Tensor:
    """Position ids [row, token] with growing distances, within the length that the model states.

    Raises `UnsupportedCallError` if that length leaves no room for a gap.
    """
    most = calls.adapter.max_positions or calls.adapter.config_max_positions or position_count(calls)
    fraction = torch.arange(calls.default_length, dtype=torch.float64) / max(calls.default_length - 1, 1)
    ids = (fraction**2 * (min(most - 1, MAX_POSITION))).round().long()
    default = torch.arange(calls.default_length)
    ids = torch.maximum(ids, default)
    if torch.equal(ids, default):
        raise UnsupportedCallError("its stated length leaves no room for a gap between position ids")
    return (calls.adapter.first_position_id + ids).expand(calls.adapter.batch_size, -1)


def _positions(calls: CachedCalls) -> OutputPair:
    near, far = (
        calls.forward_at(calls.default_tokens, calls.default_position_ids(calls.default_length)),
        calls.forward_at(calls.default_tokens, spaced_position_ids(calls)),
    )
    if torch.equal(near, far) and not calls.adapter.uses_position_encoding():
        raise UnsupportedCallError(NO_ENCODING)
    return near, far


def _mask(calls: CachedCalls) -> OutputPair:
    mask = torch.ones(calls.default_tokens.shape[:2], dtype=torch.bool)
    if calls.adapter.right_padding_only:
        mask[:, mask.shape[1] // 2 :] = False  # a stride may leave out the last token
    else:
        mask[:, 1] = False
    unmasked = calls.forward(calls.default_tokens, mask=torch.ones_like(mask))
    masked = calls.forward(calls.default_tokens, mask=mask)
    if calls.adapter.right_padding_only:
        return unmasked, masked
    return (unmasked[:, 2:], masked[:, 2:]) if unmasked.dim() == 3 else (unmasked, masked)


def _compare_ignored_kwarg(
    calls: CachedCalls, *, name: str, compare: Callable[[CachedCalls], OutputPair]
) -> OutputPair:
    first, second = compare(calls)
    if (first - second).abs().max() <= MAX_NOISE * first.abs().max():
        raise UnsupportedCallError(f"{name}: not named, and dropped in its **kwargs without an error")
    return first, second


def _compare_config_variant(calls: CachedCalls, *, other: ModelAdapter, setting: str) -> OutputPair:
    """The outputs of the model and of its variant, at default and at spaced positions."""
    if calls.wide is not None:
        other = other.in_float64() if calls.wide == torch.float64 else other.cast_to(calls.wide)
    own, changed = _default_and_spaced_outputs(calls), _default_and_spaced_outputs(calls.for_adapter(other))
    if setting.startswith("rope") and torch.equal(own, changed) and not calls.adapter.uses_position_encoding():
        raise UnsupportedCallError(NO_ENCODING)
    return own, changed


def _default_and_spaced_outputs(calls: CachedCalls) -> Tensor:
    if "positions" not in calls.adapter.supported_inputs:
        return calls.default_output
    try:
        positions = spaced_position_ids(calls)
    except UnsupportedCallError:
        return calls.default_output
    return torch.cat([calls.default_output, calls.forward_at(calls.default_tokens, positions)])


LAW = IgnoredArguments(
    code="OP306",
    name="ignored_arguments",
    statement="Every accepted argument changes the output: position ids, mask, base, scaling, window.",
    trait="uses every argument that it accepts",
    expectation={"causal_lm": "holds", "encoder": "holds"},
    remedy="Use the argument, or refuse it with an error; an argument that is accepted and dropped misleads.",
)
