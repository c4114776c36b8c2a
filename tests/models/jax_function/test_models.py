"""What a file of JAX gives, with a library in the place of Equinox: the tests have no jax."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from orderproof.models.jax_function import jax_side


class Module:
    """A module whose leaves are an array and a function; it is called with ids."""

    def __init__(self, weight: Any = 2.0, rest: Any = "gelu", inference: bool = False) -> None:
        self.weight, self.rest, self.inference = weight, rest, inference

    def __call__(self, ids: Any) -> Any:
        return (self.weight, self.rest, self.inference, ids)


class Jitted(Module):
    """What `filter_jit` makes of a function."""

    def __call__(self, model: Any, ids: Any) -> Any:
        return model(ids)


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    equinox = SimpleNamespace(
        Module=Module,
        is_inexact_array=None,
        partition=lambda tree, _: ({"weight": tree.weight}, tree),
        combine=lambda weights, rest: Module(weights["weight"], rest.rest, rest.inference),
        nn=SimpleNamespace(inference_mode=lambda tree: Module(tree.weight, tree.rest, inference=True)),
    )
    jax = ModuleType("jax")
    jax.tree = SimpleNamespace(leaves=lambda tree, is_leaf: [tree])  # type: ignore[attr-defined]
    jax.numpy = ModuleType("jax.numpy")  # type: ignore[attr-defined]
    monkeypatch.syspath_prepend(jax_side.__path__[0])  # as its process does
    for name, fake in (("jax", jax), ("jax.numpy", jax.numpy), ("equinox", equinox)):  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, name, fake)
    name = "orderproof.models.jax_function.jax_side.orderproof_jax_models"
    yield importlib.import_module(name)
    del sys.modules[name]


@pytest.mark.parametrize("function", [lambda model, ids: model(ids), Jitted()])
def test_a_function_takes_a_module_of_equinox_in_the_place_of_weights(models: Any, function: Any) -> None:
    found = models.callee((function, Module(), (5,)))
    assert found.kind == "function"
    assert found.weights == {"weight": 2.0}
    assert found.function({"weight": 3.0}, 5) == (3.0, "gelu", True, 5)
    assert found.arguments == (("ids", 5),)


def test_other_weights_of_a_function_stay_as_they_are(models: Any) -> None:
    found = models.callee((lambda weights, ids: (weights, ids), {"scale": 2}, (5,)))
    assert found.weights == {"scale": 2}
    assert found.function({"scale": 3}, 5) == ({"scale": 3}, 5)


def test_a_module_of_equinox_with_inputs_is_called_itself(models: Any) -> None:
    found = models.callee((Module(), (5,)))
    assert found.kind == "equinox.Module"
    assert found.function({"weight": 3.0}, 5) == (3.0, "gelu", True, 5)
