"""Encodings as functions of their inputs and parameters, for derivatives and the transforms of torch.func."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

from orderproof import encodings, positions
from orderproof.encodings import PositionalEncoding, attention
from tests.encodings.examples import WIDTH, build, call, normal, operands, placed, qkv

TOKENS = 3
every_hook = pytest.mark.parametrize("name", [name for name in encodings.names() if name != "none"])
AttentionName = Literal["sdpa", "eager", "flex"]


def depends_on_positions_alone(name: str) -> bool:
    """True for a bias without parameters, such as ALiBi: its hook has no derivatives."""
    encoding = build(name)
    return isinstance(encoding, encodings.RelativeBias) and not list(encoding.parameters())


class Call(nn.Module):
    """A function of an encoding and tensors, as a module, so that torch.func can set the parameters."""

    def __init__(self, encoding: PositionalEncoding, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.encoding, self.function = encoding, function

    def forward(self, *given: Tensor) -> Tensor:
        return self.function(self.encoding, *given)


def of_inputs_and_parameters(
    encoding: PositionalEncoding, function: Callable[..., Tensor], given: tuple[Tensor, ...]
) -> tuple[Callable[..., Tensor], list[Tensor]]:
    """The function of inputs and parameters, and the tensors at which to evaluate it."""
    module, names = Call(encoding, function), [name for name, _ in encoding.named_parameters()]

    def evaluate(*tensors: Tensor) -> Tensor:
        inputs, parameters = tensors[: len(given)], tensors[len(given) :]
        values = {f"encoding.{name}": value for name, value in zip(names, parameters, strict=True)}
        return functional_call(module, values, inputs)

    return evaluate, [x.detach().clone() for x in (*given, *encoding.parameters())]


def hook_of(name: str, dtype: torch.dtype) -> tuple[Callable[..., Tensor], list[Tensor]]:
    """The encoding's hook as a function of its inputs and parameters."""
    encoding = build(name).to(dtype)
    p = placed(encoding, positions.arange(TOKENS))
    return of_inputs_and_parameters(
        encoding, lambda e, *given: call(e, given, p), operands(encoding, TOKENS, dtype=dtype)
    )


def attention_of(
    name: str, *, causal: bool, backend: AttentionName, dtype: torch.dtype = torch.float64
) -> tuple[Callable[..., Tensor], list[Tensor]]:
    """Attention as a function of queries, keys, values, the layer's input and the encoding's parameters."""
    encoding = build(name, causal=causal).to(dtype)
    p = placed(encoding, positions.arange(TOKENS))

    def attend(encoding: PositionalEncoding, q: Tensor, k: Tensor, v: Tensor, x: Tensor) -> Tensor:
        token_state = encoding.token_state(x)
        return attention(
            q, k, v, encoding=encoding, q_positions=p, causal=causal, token_state=token_state, backend=backend
        )

    given = (*qkv(TOKENS, TOKENS, dtype=dtype), normal(2, TOKENS, WIDTH, seed=7, dtype=dtype))
    return of_inputs_and_parameters(encoding, attend, given)
