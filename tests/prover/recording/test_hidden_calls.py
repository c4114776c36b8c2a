"""Functions in C that a model hands to other code, which calls them where no comparison sees their results.

Each model is causal for fewer than 400 tokens, which are more than those that are compared.
"""

from __future__ import annotations

import functools
import itertools
import json
import operator
import re
from collections.abc import Callable
from types import MethodType
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from orderproof import prove
from orderproof.prover.recording.value_stack import is_readable

F = torch.FloatTensor
MANY = 400
IS_INSTANCE = functools.partial(isinstance)
OPTIONS = {"default": [].count}


class Program(nn.Module):
    def __init__(self, function: Callable[..., Tensor], *handed: Any) -> None:
        super().__init__()
        self.function, self.handed = function, handed

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x, x.shape[1], *self.handed)


def rolled(shift: Callable[..., int]) -> Callable[..., Tensor]:
    return lambda x, n, *handed: x.cumsum(1).roll(shift(x, n, *handed), 1)


def product(parts: Any) -> int:
    return int(sum(map(operator.mul, *parts)))


HIDDEN: dict[str, Program] = {
    "map": Program(rolled(lambda x, n: product([map(isinstance, [x], [F]), [n // MANY]]))),
    "unpacked arguments": Program(rolled(lambda x, n: product([map(*(isinstance, [x], [F])), [n // MANY]]))),
    "keywords": Program(rolled(lambda x, n: int(json.dumps(n // MANY, **OPTIONS)))),
    "an encoder of json": Program(rolled(lambda x, n: int(json.dumps(n // MANY, default=[].count)))),
    "a partial function": Program(
        rolled(lambda x, n: product([map(functools.partial(isinstance, x), [F]), [n // MANY]]))
    ),
    "a partial function that is called": Program(
        rolled(lambda x, n: product([functools.partial(map, isinstance)([x], [F]), [n // MANY]]))
    ),
    "a partial function of the module": Program(
        rolled(lambda x, n, both: product([both([x], [F]), [n // MANY]])), functools.partial(map, isinstance)
    ),
    "a bound function": Program(rolled(lambda x, n: product([map(MethodType(isinstance, x), [F]), [n // MANY]]))),
    "starmap": Program(rolled(lambda x, n: product([itertools.starmap(isinstance, [(x, F)]), [n // MANY]]))),
    "a function that calls": Program(
        rolled(lambda x, n: product([map(operator.call, [IS_INSTANCE], [x], [F]), [n // MANY]]))
    ),
    "attributes": Program(
        rolled(
            lambda x, n: product([map(len, map(operator.attrgetter("__class__.__name__"), [n // MANY])), [n // MANY]])
        )
    ),
    "a library": Program(rolled(lambda x, n: len(re.sub("a", "".format, "a" * (n // MANY))))),
}


def summed(x: Tensor) -> Tensor:
    return x.cumsum(1)


SEEN: dict[str, Program] = {
    "arithmetic": Program(lambda x, n: x.cumsum(1) * functools.reduce(operator.mul, [n, 1, 2])),
    "a partial operator": Program(
        lambda x, n, act: act(x).cumsum(1), functools.partial(nn.functional.gelu, approximate="tanh")
    ),
    "a function of the model": Program(lambda x, n: next(map(summed, [x]))),
    "a direct call": Program(lambda x, n: x.cumsum(1) * len([n])),
    "an operator that its own code gets": Program(lambda x, n: applied(torch.tanh, x).cumsum(1)),
}


def applied(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    return function(x)


@pytest.mark.skipif(not is_readable(), reason="arguments of calls are read in CPython 3.11 only")
@pytest.mark.parametrize("name", HIDDEN)
def test_a_function_in_c_that_other_code_calls_has_no_theorem(name: str) -> None:
    finding = prove(HIDDEN[name].eval(), "causal", inputs=torch.randn(2, 7, 6))
    assert finding.theorem is None or not finding.theorem.proved


@pytest.mark.parametrize("name", SEEN)
def test_results_that_are_compared_have_a_theorem(name: str) -> None:
    finding = prove(SEEN[name].eval(), "causal", inputs=torch.randn(2, 7, 6))
    assert finding.theorem is not None
    assert finding.theorem.proved


@pytest.mark.skipif(not is_readable(), reason="arguments of calls are read in CPython 3.11 only")
def test_the_reason_names_both_functions_and_the_line() -> None:
    finding = prove(HIDDEN["map"].eval(), "causal", inputs=torch.randn(2, 7, 6))
    assert finding.theorem is not None
    assert "`map` gets the function `isinstance`" in finding.theorem.reason
    assert "test_hidden_calls.py:" in finding.theorem.reason
