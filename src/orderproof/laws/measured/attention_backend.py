"""OP501 attention_backend: all attention backends, and train mode without dropout, give the same output.

    f_eager(x) = f_sdpa(x) = f_flex(x)      plain, padded on either side, and with positions that restart within a row
    f(x, 2-D mask) = f(x, 4-D mask)         for information: masks of booleans, integers and floats
    f_train(x) = f_eval(x)                  where every dropout is 0

Outputs at pad tokens are not compared: softmax over an empty row is NaN in one backend and zero in another. A model
with batch statistics, or with randomness other than dropout, is not compared in train mode.
Source: elementary; broken by a causal flag that one backend alone sets, by windows whose edge one backend includes
and another does not, and by masks that a fast path drops.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, nn

from orderproof.adapter import copy_sharing_parameters
from orderproof.errors import UnsupportedCallError
from orderproof.laws.measured.cached_calls import CachedCalls
from orderproof.laws.measured.controls import replace_every_token
from orderproof.laws.measured.measured_law import Comparison, MeasuredLaw, OutputPair

PADS = 2
OWN = "own backend"
RANDOMNESS_SETTINGS = ("drop", "jitter", "augment", "mask_time_prob", "mask_feature_prob")


class AttentionBackend(MeasuredLaw):
    """The law of this module."""

    of_any_weights = True
    inapplicable_if_unsupported = True

    def comparisons(self, calls: CachedCalls) -> Iterator[Comparison]:
        for name in calls.attention_backends:
            yield Comparison(name, partial(_compare_backend, name=name))
            if "mask" in calls.adapter.supported_inputs:
                yield Comparison(f"{name}, padded on the right", partial(_compare_backend, name=name, right=PADS))
                yield Comparison(f"{name}, padded on the left", partial(_compare_backend, name=name, left=PADS))
            if "positions" in calls.adapter.supported_inputs:
                yield Comparison(
                    f"{name}, with position ids that restart", partial(_compare_backend, name=name, restart=True)
                )
        yield from _square_masks(calls)
        yield Comparison(
            "train mode without dropout",
            _compare_train_mode,
            remedy="Let dropout be the only difference of train mode.",
        )

    def control(self, calls: CachedCalls) -> OutputPair:
        return replace_every_token(calls)


def _square_masks(calls: CachedCalls) -> Iterator[Comparison]:
    """Masks [row, 1, token, token] that say the same as a padding mask.

    A difference decides nothing: few models state which of them they take. The questions `boolean_mask` and
    `integer_mask` of `orderproof conventions` say how an attention function reads them.
    """
    kinds = calls.adapter.square_masks(torch.ones(1, calls.default_length, dtype=torch.bool))
    for name in (OWN, *calls.attention_backends) if kinds else ():
        for kind in kinds:
            what = f"{name}, a mask of {kind}s [row, 1, token, token]"
            yield Comparison(
                what, partial(_compare_square_mask, name=name, kind=kind), informational=True,
                note=f"{what}, hides other tokens than the same padding mask [row, token]",
            )  # fmt: skip


def _compare_square_mask(calls: CachedCalls, *, name: str, kind: str) -> OutputPair:
    """The last tokens are pads, which do not change the position of another one."""
    mask = torch.ones(calls.default_tokens.shape[:2], dtype=torch.bool)
    mask[0, calls.default_length - PADS :] = False
    square = calls.adapter.square_masks(mask)[kind]
    other = calls if name == OWN else calls.attention_backends[name]
    expected = calls.forward(calls.default_tokens, mask=mask)
    actual = other.forward(calls.default_tokens, mask=square)
    if expected.shape[:2] != mask.shape:
        raise UnsupportedCallError("it does not give one output per token")
    return expected[mask], actual[mask]


def _compare_backend(
    calls: CachedCalls, *, name: str, left: int = 0, right: int = 0, restart: bool = False
) -> OutputPair:
    other, end = calls.attention_backends[name], calls.default_length - right
    arguments: dict[str, Tensor] = {}
    mask = torch.ones(calls.default_tokens.shape[:2], dtype=torch.bool)
    mask[0, :left] = False
    mask[0, end:] = False
    if left or right:
        arguments["mask"] = mask
        if "positions" in calls.adapter.supported_inputs:
            arguments["positions"] = calls.adapter.first_position_id + (mask.long().cumsum(1) - 1).clamp(min=0)
    if restart:
        half = calls.default_length // 2
        first, second = calls.default_position_ids(half), calls.default_position_ids(calls.default_length - half)
        arguments["positions"] = torch.cat([first, second], dim=1)
    expected, actual = (
        calls.forward(calls.default_tokens, **arguments),
        other.forward(calls.default_tokens, **arguments),
    )
    if not (left or right) or expected.dim() != 3:
        return expected, actual
    if expected.shape[1] == calls.default_length:
        return expected[mask], actual[mask]
    unpadded = mask.all(dim=1)  # not one output per token: which outputs belong to pads is not known
    if not unpadded.any():
        raise UnsupportedCallError("it does not give one output per token, and it takes one row at a time")
    return expected[unpadded], actual[unpadded]


def _compare_train_mode(calls: CachedCalls) -> OutputPair:
    train = calls.for_adapter(calls.adapter.with_module(_train_mode_without_dropout(calls.adapter.module)))
    with torch.random.fork_rng(devices=[]):
        before = torch.random.get_rng_state()
        output = train.uncached_call(calls.default_tokens, keep=False).output
        drew = not torch.equal(before, torch.random.get_rng_state())
    if drew:
        raise UnsupportedCallError("in train mode it has randomness other than dropout")
    return calls.default_output, output


def _train_mode_without_dropout(module: nn.Module) -> nn.Module:
    """A copy in train mode with every dropout at 0."""
    module = copy_sharing_parameters(module).train()
    for part in module.modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm):
            raise UnsupportedCallError("in train mode its batch norms use the statistics of the batch")
        for holder in (part, getattr(part, "config", None)):
            for key, value in list(vars(holder).items()) if hasattr(holder, "__dict__") else ():
                if isinstance(value, float) and any(word in key for word in RANDOMNESS_SETTINGS):
                    setattr(holder, key, 0.0)
        if isinstance(part, nn.modules.dropout._DropoutNd):
            part.p = 0.0
    return module


LAW = AttentionBackend(
    code="OP501",
    name="attention_backend",
    statement="Eager, SDPA and flex attention, and train mode without dropout, give the same output.",
    trait="gives the same output on every attention backend",
    expectation={"causal_lm": "holds", "encoder": "holds", "vision": "holds"},
    remedy="Give every attention backend the same mask: the same padding, window edges and causal flag.",
)
