"""Run the graph of a certificate at small sizes, in pairs of runs, and look at every claimed fact.

Nothing of the prover or of the recheck's rules is used: the operators are those of torch.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from orderproof_recheck.errors import CertificateError
from orderproof_recheck.facts import read_number
from orderproof_recheck.logic.notation import read_formula, read_term
from tests.recheck.theorems.evaluation import value_of

SIZES = ((2, 5), (3, 2), (2, 3))  # batch, tokens
OTHER: dict[str, Any] = {
    "cpu": torch.device("cpu"), "torch.strided": torch.strided, "torch.contiguous_format": torch.contiguous_format,
    "torch.preserve_format": torch.preserve_format,
}  # fmt: skip


FALSE, RAISES = "a fact is false", "an operator raises an error"


class CannotRun(Exception):
    """An operator raises an error."""


class OtherForm(Exception):
    """A result has another shape or dtype than the certificate says."""


@dataclass
class Instance:
    """Numbers for the symbols of a statement."""

    batch: int
    tokens: int
    chance: random.Random
    everything_real: bool = False
    names: dict[str, int] = field(default_factory=dict)
    mask: list[list[bool]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.names = {"batch": self.batch, "tokens": self.tokens, "cut": self.chance.randint(0, self.tokens),
                      "row": self.chance.randrange(self.batch)}  # fmt: skip
        self.mask = [
            [self.everything_real or self.chance.random() < 0.6 for _ in range(self.tokens)] for _ in range(self.batch)
        ]
        self.names["real token"] = self.chance.randrange(self.tokens)  # of the statement of pads: any token

    def is_real(self, row: int, token: int) -> bool:
        """The attention mask; outside of it anything."""
        return bool(0 <= row < self.batch and 0 <= token < self.tokens and self.mask[row][token])


def given(law: str, instance: Instance, row: int, token: int) -> bool:
    """The inputs of both runs agree, written by hand."""
    if law == "causal":
        return token < instance.names["cut"]
    return instance.is_real(row, token) if law == "padding" else row == instance.names["row"]


def contradiction(certificate: Mapping[str, Any], seed: int = 0) -> str:
    """FALSE if runs contradict a claimed fact, RAISES if the graph does not run, and empty otherwise."""
    for call in certificate["calls"]:
        for one in call["ranges"]:
            for recording in one["recordings"]:
                if not recording["steps"]:
                    continue
                try:
                    if _recording_contradicted(certificate["law"], recording, one, seed):
                        return FALSE
                except CannotRun:
                    return RAISES
                except (OtherForm, LookupError, TypeError, ValueError, RuntimeError, CertificateError):
                    return FALSE  # a fact that does not fit its tensor
    return ""


def _recording_contradicted(law: str, recording: Mapping[str, Any], one: Mapping[str, Any], seed: int) -> bool:
    least, greatest = one["least_length"], one["greatest_length"]
    for number, (batch, tokens) in enumerate(SIZES * 2):
        length = max(tokens, least)
        if greatest is not None and length > greatest:
            continue
        chance = random.Random(seed * 100 + number)
        instance = Instance(batch, length, chance, recording["uniform"] == "everything_real")
        generator = torch.Generator().manual_seed(seed * 100 + number)
        first, second = {}, {}
        for step in recording["steps"]:
            _run(step, law, recording, instance, generator, first, second)
        for step in recording["steps"]:
            if not _holds(step, first, second, instance):
                return True
        if recording["output"]["row"] is None:
            return True
    return False


def _run(
    step: Mapping[str, Any], law: str, recording: Mapping[str, Any], instance: Instance, generator: torch.Generator,
    first: dict[str, Any], second: dict[str, Any],
) -> None:  # fmt: skip
    node, operator = step["node"], step["operator"]
    shapes = [[int(value_of(read_term(t), instance.names, {})) for t in shape] for shape in step["shape"]]
    dtypes = [getattr(torch, d) for d in step["dtype"]]
    try:
        if operator == "input":
            role = dict(recording["inputs"])[node]
            first[node], second[node] = _inputs(role, law, shapes[0], dtypes[0], instance, generator)
        elif operator in ("parameter", "buffer"):
            value = _stored(step, shapes[0], dtypes[0], generator)
            first[node] = second[node] = value
        else:
            for values in (first, second):
                values[node] = _computed(step, values, instance)
    except Exception as error:
        raise CannotRun(str(error)) from error
    results = first[node] if isinstance(first[node], tuple | list) else [first[node]]
    if [list(r.shape) for r in results] != shapes or [r.dtype for r in results] != dtypes:
        raise OtherForm(node)


def _inputs(
    role: str, law: str, shape: list[int], dtype: torch.dtype, instance: Instance, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    if role == "attention_mask":
        mask = torch.tensor(instance.mask).to(dtype)
        return mask, mask
    x = torch.randn(shape, generator=generator)
    if role != "tokens":
        return x.to(dtype), x.to(dtype)
    kept = torch.tensor([[given(law, instance, r, t) for t in range(instance.tokens)] for r in range(instance.batch)])
    other = torch.randn(shape, generator=generator) * 3
    return x.to(dtype), torch.where(kept.reshape(*kept.shape, *[1] * (len(shape) - 2)), x, other).to(dtype)


def _stored(step: Mapping[str, Any], shape: list[int], dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    if "value" not in step["fact"]:
        return torch.randn(shape, generator=generator).to(dtype)
    flat = [_value(step["fact"]["value"], index, {}, {}) for index in _indices(step["fact"], {})]
    return torch.tensor(flat, dtype=dtype).reshape(shape)


def _computed(step: Mapping[str, Any], values: Mapping[str, Any], instance: Instance) -> Any:
    arguments = [_decoded(x, values, instance) for x in step["args"]]
    if step["operator"] == "getitem":
        return arguments[0][arguments[1]]
    _, name, overload = step["operator"].split(".")
    operator = getattr(getattr(torch.ops.aten, name), overload)
    with torch.no_grad():
        return operator(*arguments, **{k: _decoded(v, values, instance) for k, v in step["kwargs"].items()})


def _decoded(argument: Any, values: Mapping[str, Any], instance: Instance) -> Any:
    if isinstance(argument, list):
        return [_decoded(x, values, instance) for x in argument]
    if not isinstance(argument, dict):
        return argument
    ((kind, content),) = argument.items()
    if kind == "node":
        return values[content]
    if kind == "size":
        return int(value_of(read_term(content), instance.names, {}))
    return getattr(torch, content) if kind == "dtype" else float(content) if kind == "float" else OTHER[content]


def _indices(fact: Mapping[str, Any], names: Mapping[str, int]) -> list[dict[str, int]]:
    sizes = [int(value_of(read_term(t), names, {})) for axes in fact["axes"] for t in axes]
    return [{f"x{k}": i for k, i in enumerate(place)} for place in itertools.product(*map(range, sizes))]


def _holds(step: Mapping[str, Any], first: Mapping[str, Any], second: Mapping[str, Any], instance: Instance) -> bool:
    several = isinstance(step["fact"], list)
    facts = step["fact"] if several else [step["fact"]]
    pairs = zip(*((x[step["node"]] if several else [x[step["node"]]]) for x in (first, second)), strict=True)
    return all(_fact_holds(fact, a, b, first, instance) for fact, (a, b) in zip(facts, pairs, strict=True))


def _fact_holds(fact: Mapping[str, Any], a: Tensor, b: Tensor, values: Mapping[str, Any], instance: Instance) -> bool:
    if a.is_complex():
        a, b = torch.view_as_real(a).sum(-1), torch.view_as_real(b).sum(-1)
    functions = _Functions(values, instance)
    scale = max(1.0, float(a.double().nan_to_num(0.0, 0.0, 0.0).clamp(-1e6, 1e6).abs().max())) if a.numel() else 1.0
    for index, x, y in zip(_indices(fact, instance.names), a.flatten().tolist(), b.flatten().tolist(), strict=True):
        names = {**instance.names, **index}
        if "value" in fact:
            expected = _value(fact["value"], names, functions, instance.names)
            if not (_close(x, expected, 1.0) and _close(y, expected, 1.0)):
                return False
            continue
        where = {
            name: bool(value_of(read_formula(fact.get(name, default)), names, functions))
            for name, default in (("same", True), ("zero", False), ("hidden", False), ("ordinary", True))
        }
        bad = (
            (where["same"] and not _close(x, y, scale))
            or (where["zero"] and not (abs(x) < 1e-5 and abs(y) < 1e-5))
            or (where["hidden"] and not (x <= -9e7 and y <= -9e7))
            or (where["ordinary"] and not (abs(x) < 6e4 and abs(y) < 6e4))
        )
        if bad:
            return False
    return True


def _close(x: float, y: float, scale: float) -> bool:
    if x == y or (math.isnan(x) and math.isnan(y)):
        return True
    return abs(x - y) <= 1e-4 * scale or (abs(x) > 1e30 and abs(x / y - 1) < 1e-5)


def _value(data: Mapping[str, Any], names: Mapping[str, int], functions: Any, _sizes: Mapping[str, int]) -> float:
    ((kind, content),) = data.items()
    if kind == "integer":
        return value_of(read_term(content), names, functions)
    if kind == "boolean":
        return bool(value_of(read_formula(content), names, functions))
    (found,) = {read_number(n) for c, n in content if value_of(read_formula(c), names, functions)}
    return float(found)


class _Functions(dict[str, Any]):
    """The functions of a statement, and those that steps define by their values."""

    def __init__(self, values: Mapping[str, Any], instance: Instance) -> None:
        super().__init__(mask=instance.is_real)
        self.values = values

    def __missing__(self, name: str) -> Any:
        if name.startswith("all of "):
            return lambda: bool(self.values[name.removeprefix("all of ")].all())

        def element(*indices: int) -> int:
            tensor = self.values[name]
            squeezed = tensor.reshape([s for s in tensor.shape if s != 1])
            inside = len(indices) == squeezed.ndim and all(
                0 <= i < s for i, s in zip(indices, squeezed.shape, strict=True)
            )
            return int(squeezed[indices]) if inside else 0

        return element
