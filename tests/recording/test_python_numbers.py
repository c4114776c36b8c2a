"""Questions of a model about what a size is, and about the layout of a tensor, which an open recording must not miss.

Each model is causal at the recorded length, and takes another branch from 64 tokens on.
"""

from __future__ import annotations

import copy
import math
import numbers
import pickle
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.fx.experimental.symbolic_shapes import statically_known_true, sym_eq
from torch.nn.functional import dropout, logsigmoid, max_pool1d, one_hot, scaled_dot_product_attention

from orderproof import prove

SPECIAL = {64: True}


@dataclass
class Sizes:
    tokens: int


def looked_up(n: int) -> bool:
    try:
        return SPECIAL[n]
    except (KeyError, TypeError):
        return False


def formatted(n: int) -> bool:
    try:
        return f"{n:03d}" == "064"
    except TypeError:
        return False


def in_a_tensor(n: int) -> bool:
    try:
        return bool(torch.tensor([n > 63]).numel()) and n > 63
    except RuntimeError:
        return False


def written_in_a_loop(x: Tensor) -> bool:
    y = torch.zeros_like(x)
    for i in range(x.shape[1]):
        y[:, i] = x[:, i]
    return y._version == 64


def attention(x: Tensor) -> Tensor:
    q = x.unflatten(-1, (2, 3)).transpose(1, 2)
    return scaled_dot_product_attention(q, q, q)


def matches(n: int) -> bool:
    match n:
        case int():
            return n >= 64
    return False


OF_SIZES: dict[str, Callable[[int], bool]] = {
    "isinstance": lambda n: isinstance(n, int) and n >= 64,
    "isinstance of an abstract class": lambda n: isinstance(n, numbers.Integral) and n >= 64,
    "isinstance of a quotient": lambda n: isinstance(n / 64, float) and n >= 64,
    "isinstance of a comparison": lambda n: isinstance(n > 63, bool) and n > 63,
    "type": lambda n: type(n) is int and n >= 64,
    "name of the type": lambda n: type(n).__name__ == "int" and n >= 64,
    "match": matches,
    "key": looked_up,
    "set": lambda n: len({n, 64}) == 1,
    "deepcopy": lambda n: copy.deepcopy({"n": n})["n"] >= 64,
    "asdict": lambda n: asdict(Sizes(n))["tokens"] >= 64,
    "pickle": lambda n: pickle.loads(pickle.dumps(n)) >= 64,
    "text of a quotient": lambda n: f"{n / 64}" == "1.0",
    "text of a comparison": lambda n: str(n >= 64) == "True",
    "identity of a comparison": lambda n: (n >= 64) is True,
    "number of comparisons": lambda n: sum([n >= 64, n >= 2]) == 2,
    "format": formatted,
    "array": lambda n: np.array([n]).dtype == np.int64 and n >= 64,
    "bytes": lambda n: n.to_bytes(2, "big") == b"\0@",
    "real part": lambda n: n.real >= 64,
    "fraction": lambda n: Fraction(n, 64) == 1,
    "mean": lambda n: statistics.mean([n, 64]) == 64,
    "tensor": in_a_tensor,
}  # fmt: skip
NOT_ANSWERED: dict[str, Callable[[Tensor], bool]] = {  # of torch, and shown by outputs
    "isinstance of a symbol": lambda x: not isinstance(x.shape[1], torch.SymInt) and x.shape[1] >= 64,
    "the node of a symbol": lambda x: not hasattr(x.shape[1], "node") and x.shape[1] >= 64,
    "the class of a tensor": lambda x: isinstance(x, torch.FloatTensor) and x.shape[1] >= 64,
    "the dispatch keys of a tensor": lambda x: "CPU" in str(torch._C._dispatch_keys(x)) and x.shape[1] >= 64,
}
OF_TENSORS: dict[str, Callable[[Tensor], bool]] = {
    "attention": lambda x: not attention(x).is_contiguous(),
    "masked_fill": lambda x: x.mT.masked_fill(x.mT > 9, 0.0).is_contiguous(),
    "stride": lambda x: x.mT.masked_fill(x.mT > 9, 0.0).stride(1) == x.shape[1],
    "dropout": lambda x: not dropout(x[..., :4], 0.1, training=False).is_contiguous(),
    "identity of dropout": lambda x: dropout(x, 0.1, training=False) is x,
    "power": lambda x: (2**x.mT).is_contiguous(),
    "logsigmoid": lambda x: logsigmoid(x.mT).is_contiguous(),
    "one_hot": lambda x: one_hot((x.mT > 0).long(), 2).is_contiguous(),
    "fft": lambda x: not torch.fft.irfft(torch.fft.rfft(x, dim=1), n=x.shape[1], dim=1).is_contiguous(),
    "max_pool1d": lambda x: max_pool1d(x.mT.contiguous().mT, 1).is_contiguous(),
    "base": lambda x: x.reshape(-1)._base is not None,
    "type": lambda x: x.type() == "torch.FloatTensor",
}


class Branches(nn.Module):
    def __init__(self, is_special: Callable[[Tensor], bool]) -> None:
        super().__init__()
        self.is_special = is_special

    def forward(self, x: Tensor) -> Tensor:
        return x + x.mean(1, keepdim=True) if self.is_special(x) else x.cumsum(1)


def check(is_special: Callable[[Tensor], bool]) -> None:
    x = torch.randn(2, 64, 6)
    assert is_special(x)
    assert not is_special(x[:, :7])
    finding = prove(Branches(is_special).eval(), "causal", inputs=torch.randn(2, 7, 6))
    theorem = finding.theorem
    if theorem is not None and theorem.proved:
        assert theorem.greatest_length is not None
        assert theorem.greatest_length < 64
    else:
        assert finding.verdict != "proved"


@pytest.mark.parametrize("name", OF_SIZES)
def test_a_size_is_a_number_of_python(name: str) -> None:
    check(lambda x: OF_SIZES[name](x.shape[1]))


@pytest.mark.parametrize("name", OF_TENSORS)
def test_a_layout_is_not_taken_from_the_recording(name: str) -> None:
    check(lambda x: OF_TENSORS[name](x) and x.shape[1] >= 64)


@pytest.mark.parametrize("name", NOT_ANSWERED)
def test_a_question_that_is_not_answered_is_not_missed(name: str) -> None:
    finding = prove(Branches(NOT_ANSWERED[name]).eval(), "causal", inputs=torch.randn(2, 7, 6))
    assert finding.theorem is None or not finding.theorem.proved


def test_writes_of_a_loop_are_not_counted() -> None:
    check(written_in_a_loop)


def test_the_types_of_sizes_are_put_back() -> None:
    kinds = (torch.SymInt, torch.SymFloat, torch.SymBool)
    before = [dict(vars(kind)) for kind in kinds]
    assert prove(Branches(lambda x: len({x.shape[1]}) == 2), "causal", inputs=torch.randn(2, 7, 6)).verdict == "proved"
    assert [dict(vars(kind)) for kind in kinds] == before
    assert "type" not in globals()


OF_ARITHMETIC: dict[str, Callable[[int], bool]] = {  # which sympy computes otherwise than Python
    "bits": lambda n: ((63 - n) & -16) < 0,
    "bits of one number": lambda n: (n & 7) > (n & 7) or n >= 64,
    "division by a negative number": lambda n: (-n // 63) // -2 - (-n) // -126 == 1,
    "infinity": lambda n: n * 2.85e306 == math.inf,
    "not a number": lambda n: (n * 2.85e306) - (n * 2.85e306) != 0,
    "rounding": lambda n: ((n / 64) ** 9 * 2.0**52 + 1.5) - (n / 64) ** 9 * 2.0**52 != 1.5,
    "sign": lambda n: math.copysign(1.0, n - 63.5) > 0,
    "truncation": lambda n: int(n * 0.1 * 10 / 64) > 0,
    "an absent method": lambda n: getattr(n // 64, "__divmod__", (0).__divmod__)(1)[0] > 0,
    "torch's own question": lambda n: statically_known_true(sym_eq(n // 64, 1)),
}


@pytest.mark.parametrize("name", OF_ARITHMETIC)
def test_sizes_are_computed_as_in_python(name: str) -> None:
    check(lambda x: OF_ARITHMETIC[name](x.shape[1]))
