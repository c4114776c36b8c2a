"""A model of Flax, Equinox, Haiku or Keras, or a function, as a pure function of its weights and its inputs.

This file runs in the process of JAX: it imports nothing of orderproof.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from orderproof_jax_sizes import admit_open_sizes

# Arguments that switch a call to inference, for a model whose `__call__` has no default for them.
INFERENCE = {"deterministic": True, "train": False, "training": False, "is_training": False, "inference": True}


class Unusable(Exception):
    """The file gives no model that can be audited; the message says why."""


@dataclass(frozen=True)
class Callee:
    """A model as a pure function.

    Attributes:
        kind: What it is, for a report: "flax.nnx.Module".
        function: (weights, *inputs) -> outputs.
        weights: A tree of arrays that count as weights.
        arguments: The inputs of the call: arrays, trees of arrays, numbers and flags, by position or by name.

    """

    kind: str
    function: Callable[..., Any]
    weights: Any
    arguments: tuple[tuple[str, Any], ...]
    by_name: bool = False


def load(spec: str) -> Callee:
    """The model that `file.py:name` or `package.module:name` gives. Raises `Unusable` and errors of that code."""
    place, _, name = spec.rpartition(":")
    module = _of_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    value: Any = module
    for part in name.split("."):
        value = getattr(value, part)
    found = callee(value() if _makes_a_model(value) else value)
    admit_open_sizes()  # of what all of this imported
    return found


def _of_file(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"orderproof_subject_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    sys.path.insert(0, str(path.resolve().parent))
    spec.loader.exec_module(module)
    return module


def _makes_a_model(value: Any) -> bool:
    """True of a function or class without required arguments, and not of a model that can be called."""
    if not (inspect.isfunction(value) or inspect.isclass(value)):
        return False
    parameters = inspect.signature(value).parameters.values()
    return all(p.default is not p.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)


def callee(value: Any) -> Callee:
    """The pure function of `(model, inputs)` or `(model, variables, inputs)`. Raises `Unusable`."""
    if not isinstance(value, tuple | list) or len(value) not in (2, 3):
        raise Unusable(
            f"expected (model, inputs) or (model, variables, inputs); got {type(value).__name__}; "
            "inputs are an array, a tuple of arguments or a dict of keyword arguments"
        )
    model, inputs = value[0], value[-1]
    variables = value[1] if len(value) == 3 else None
    for of_library in (_nnx, _linen, _equinox, _haiku, _keras):
        found = of_library(model, variables, inputs)
        if found is not None:
            return found
    if not callable(model):
        raise Unusable(f"expected a model of Flax, Equinox, Haiku or Keras, or a function; got {type(model).__name__}")
    names, by_name = _named(model, inputs, skip=0 if variables is None else 1)
    if variables is None:
        return Callee("function", lambda _, *args: _called(model, names, args, by_name), (), names, by_name)
    weights, whole = _weights(variables)
    return Callee(
        "function", lambda w, *args: _called(lambda *a, **k: model(whole(w), *a, **k), names, args, by_name),
        weights, names, by_name,
    )  # fmt: skip


def _weights(tree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The weights in the first argument of a function, and that argument with other weights.

    A module of Equinox is a tree whose leaves are also flags and functions.
    """
    equinox = _loaded("equinox")
    modules = equinox and jax.tree.leaves(tree, is_leaf=lambda x: isinstance(x, equinox.Module))
    if not any(isinstance(x, equinox.Module) for x in modules or ()):
        return tree, lambda weights: weights
    weights, rest = equinox.partition(equinox.nn.inference_mode(tree), equinox.is_inexact_array)
    return weights, lambda weights: equinox.combine(weights, rest)


def _called(function: Callable[..., Any], names: Any, args: Sequence[Any], by_name: Any) -> Any:
    if by_name:
        return function(**{name: x for (name, _), x in zip(names, args, strict=True)})
    return function(*args)


def _named(function: Any, inputs: Any, skip: int = 0) -> tuple[tuple[tuple[str, Any], ...], bool]:
    """The arguments of a call with their names, and whether they are given by name."""
    if isinstance(inputs, dict):
        return tuple(inputs.items()), True
    given = tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,)
    try:
        names = [p.name for p in inspect.signature(function).parameters.values() if p.kind in (0, 1)][skip:]
    except (TypeError, ValueError):
        names = []
    names += [f"input{k}" for k in range(len(names), len(given))]
    return tuple(zip(names, given, strict=False)), False


def _inference(call: Any, names: Any) -> dict[str, Any]:
    """Flags that the call needs and the inputs do not give."""
    given = {name for name, _ in names}
    parameters = inspect.signature(call).parameters
    return {
        key: value
        for key, value in INFERENCE.items()
        if key in parameters and key not in given and parameters[key].default in (inspect.Parameter.empty, None)
    }


def _loaded(name: str) -> Any:
    """A library that the code of the user imported; None without."""
    return sys.modules.get(name)


def _nnx(model: Any, variables: Any, inputs: Any) -> Callee | None:
    nnx = _loaded("flax.nnx")
    if nnx is None or not isinstance(model, nnx.Module):
        return None
    del variables
    names, by_name = _named(model.__call__, inputs)
    flags = _inference(model.__call__, names)
    model.eval()
    graph, weights, rest = nnx.split(model, nnx.Param, ...)

    def function(weights: Any, *args: Any) -> Any:
        module = nnx.merge(graph, weights, jax.tree.map(lambda a: a, rest))  # new variables for each call
        return _called(lambda *a, **k: module(*a, **k, **flags), names, args, by_name)

    return Callee("flax.nnx.Module", function, nnx.to_pure_dict(weights), names, by_name)


def _linen(model: Any, variables: Any, inputs: Any) -> Callee | None:
    linen = _loaded("flax.linen")
    if linen is None or not isinstance(model, linen.Module):
        return None
    if model.scope is not None:
        model, variables = model.unbind()
    names, by_name = _named(model.__call__, inputs)
    flags = _inference(model.__call__, names)
    if variables is None:
        variables = _called(
            lambda *a, **k: model.init(jax.random.key(0), *a, **k, **flags), names, [x for _, x in names], by_name
        )
    variables = dict(linen.meta.unbox(variables))
    weights = variables.pop("params", {})

    def function(weights: Any, *args: Any) -> Any:
        call = {"params": weights, **variables}
        return _called(lambda *a, **k: model.apply(call, *a, **k, **flags), names, args, by_name)

    return Callee("flax.linen.Module", function, weights, names, by_name)


def _equinox(model: Any, variables: Any, inputs: Any) -> Callee | None:
    equinox = _loaded("equinox")
    if equinox is None or not isinstance(model, equinox.Module) or variables is not None:
        return None  # with three values it is a function, which `filter_jit` makes a module
    model = equinox.nn.inference_mode(model)
    weights, rest = equinox.partition(model, equinox.is_inexact_array)
    names, by_name = _named(model, inputs)

    def function(weights: Any, *args: Any) -> Any:
        return _called(equinox.combine(weights, rest), names, args, by_name)

    return Callee("equinox.Module", function, weights, names, by_name)


def _haiku(model: Any, variables: Any, inputs: Any) -> Callee | None:
    haiku = _loaded("haiku")
    if haiku is None or not isinstance(model, haiku.Transformed | haiku.TransformedWithState):
        return None
    names, by_name = _named(None, inputs)
    with_state = isinstance(model, haiku.TransformedWithState)
    if variables is None:
        made = _called(lambda *a, **k: model.init(jax.random.key(0), *a, **k), names, [x for _, x in names], by_name)
    else:
        made = variables
    weights, state = made if with_state else (made, None)
    key = jax.random.key(0)

    def function(weights: Any, *args: Any) -> Any:
        first = (weights, state, key) if with_state else (weights, key)
        found = _called(lambda *a, **k: model.apply(*first, *a, **k), names, args, by_name)
        return found[0] if with_state else found

    return Callee("haiku.Transformed", function, weights, names, by_name)


def _keras(model: Any, variables: Any, inputs: Any) -> Callee | None:
    keras = _loaded("keras")
    if keras is None or not isinstance(model, keras.layers.Layer):
        return None
    del variables
    if keras.backend.backend() != "jax":
        raise Unusable(f"expected Keras with the backend jax (KERAS_BACKEND=jax); got {keras.backend.backend()}")
    whole = isinstance(inputs, dict)  # a functional model takes a dictionary as one argument
    names = (("", inputs),) if whole else _named(model.call, inputs)[0]
    flags = _inference(model.call, names) if "training" not in inspect.signature(model.call).parameters else {}
    if "training" in inspect.signature(model.call).parameters:
        flags["training"] = False
    if not model.built:
        model(*(x for _, x in names))
    kept = [v.value for v in model.non_trainable_variables]
    weights = {f"{k:05d}.{v.path}": v.value for k, v in enumerate(model.trainable_variables)}  # sorted as they are

    def function(weights: Any, *args: Any) -> Any:
        return model.stateless_call(list(weights.values()), kept, *args, **flags)[0]

    return Callee("keras.Model", function, weights, names)


def flat_inputs(found: Callee) -> tuple[list[tuple[str, Any]], Callable[..., Any]]:
    """The arrays among the arguments with their names, and the function of the weights and of these arrays."""
    leaves: list[tuple[str, Any]] = []
    trees = []
    for name, value in found.arguments:
        entries, tree = jax.tree_util.tree_flatten_with_path(value)
        places: list[Any] = []
        for path, leaf in entries:
            if isinstance(leaf, jax.Array | np.ndarray):
                places.append(len(leaves))
                leaves.append((f"{name}{path_name(path, first='.' if name else '')}", jnp.asarray(leaf)))
            else:
                places.append(_Static(leaf))
        trees.append((places, tree))
    if not leaves:
        raise Unusable("expected an array among the example inputs; got none")

    def function(weights: Any, *arrays: Any) -> Any:
        arguments = [
            tree.unflatten([p.value if isinstance(p, _Static) else arrays[p] for p in places]) for places, tree in trees
        ]
        return found.function(weights, *arguments)

    return leaves, function


@dataclass(frozen=True)
class _Static:
    value: Any


def path_name(path: Any, first: str = "") -> str:
    """`layers.0.kernel` of the path of a leaf."""
    parts = [str(getattr(p, "key", getattr(p, "name", getattr(p, "idx", p)))) for p in path]
    return (first if parts else "") + ".".join(part.strip("./").replace("/", ".") for part in parts)
