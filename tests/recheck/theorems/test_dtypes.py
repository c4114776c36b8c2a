"""The dtypes that the recheck expects are those that torch computes."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from orderproof_recheck.dtypes import expected_dtype
from orderproof_recheck.facts import Fact, Predicates
from orderproof_recheck.logic.terms import integer

DTYPES = (torch.bool, torch.uint8, torch.int8, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32,
          torch.float64, torch.complex64)  # fmt: skip
BINARY = ("add", "mul", "div", "maximum", "pow", "remainder", "bitwise_and")
UNARY = ("neg", "abs", "sqrt", "sigmoid", "relu", "bitwise_not", "cumsum", "softmax", "view_as_complex", "view_as_real")


def _fact(x: object) -> object:
    if not isinstance(x, Tensor):
        return x
    axes = tuple((integer(n),) if n != 1 else () for n in x.shape)
    return Fact(axes, str(x.dtype).removeprefix("torch."), Predicates())


def _compared(name: str, *operands: object) -> int:
    """1 if the expectation, which may be missing, is the dtype of torch; 0 if torch does not compute it."""
    try:
        result = getattr(torch, name)(*operands)
    except (RuntimeError, TypeError):
        return 0
    expected = expected_dtype(name, [_fact(x) for x in operands], {})
    assert expected in (None, str(result.dtype).removeprefix("torch.")), (name, operands)
    return int(expected is not None)


@pytest.mark.parametrize("name", BINARY)
def test_two_operands_are_promoted_as_torch_does(name: str) -> None:
    compared = 0
    for first, second in itertools.product(DTYPES, DTYPES):
        if torch.complex64 in (first, second) and {torch.float16, torch.bfloat16} & {first, second}:
            continue  # torch warns of the complex numbers of half precision
        vector, other, one = torch.ones(3, dtype=first), torch.ones(3, dtype=second), torch.ones((), dtype=second)
        compared += sum(_compared(name, *pair) for pair in ((vector, other), (vector, one), (one, vector)))
    vectors = [torch.ones(3, dtype=dtype) for dtype in DTYPES]
    compared += sum(_compared(name, vector, number) for vector in vectors for number in (2, 2.0))
    assert compared > 50


def test_two_real_numbers_give_the_complex_one_that_torch_does() -> None:
    pairs = itertools.product((torch.float32, torch.float64), repeat=2)
    assert sum(_compared("complex", torch.ones(3, dtype=a), torch.ones(3, dtype=b)) for a, b in pairs) == 2


@pytest.mark.parametrize("name", UNARY)
def test_one_operand_gives_the_dtype_that_torch_does(name: str) -> None:
    more = {"cumsum": (0,), "softmax": (0,)}.get(name, ())
    assert sum(_compared(name, torch.ones(3, 2, dtype=dtype), *more) for dtype in DTYPES) > 0
