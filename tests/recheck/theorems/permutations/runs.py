"""Run the graph of a certificate about permuted tokens, in pairs of runs, and look at every claimed fact.

Nothing of the prover or of the recheck's rules is used: the operators are those of torch.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from orderproof_recheck.errors import CertificateError
from orderproof_recheck.logic.notation import read_formula, read_term
from tests.recheck.theorems.evaluation import value_of
from tests.recheck.theorems.runs import FALSE, OTHER, RAISES

SIZES = ((2, 5), (3, 2), (2, 3), (2, 7))  # batch, tokens


class CannotRun(Exception):
    """An operator raises an error."""


class Runs:
    """The tensors of two runs of one recording, of which the second has the tokens in another order."""

    def __init__(self, recording: Mapping[str, Any], batch: int, tokens: int, seed: int) -> None:
        self.recording = recording
        self.names = {"batch": batch, "tokens": tokens}
        self.generator = torch.Generator().manual_seed(seed)
        self.order = torch.randperm(tokens, generator=self.generator)
        self.first: dict[str, Any] = {}
        self.second: dict[str, Any] = {}
        self.entries = {node: (constants, causal) for node, constants, causal in recording["entries"]}
        for step in recording["steps"]:
            try:
                self._run(step)
            except CannotRun:
                raise
            except Exception as error:
                raise CannotRun(str(error)) from error

    def sizes(self, terms: list[Any]) -> list[int]:
        """The values of terms of open sizes."""
        return [int(value_of(read_term(term), self.names, {})) for term in terms]

    def _run(self, step: Mapping[str, Any]) -> None:
        node = step["node"]
        if step["operator"] == "input":
            self.first[node], self.second[node] = self._inputs(step)
        elif step["operator"] in ("parameter", "buffer"):
            self.first[node] = self.second[node] = self._stored(step)
        else:
            for values in (self.first, self.second):
                values[node] = self._computed(step, values)

    def _inputs(self, step: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
        shape, role = self.sizes(step["shape"][0]), dict(self.recording["inputs"])[step["node"]]
        if role == "position_ids":
            x = torch.stack([torch.randperm(shape[1], generator=self.generator) for _ in range(shape[0])])
        else:
            x = torch.randn(shape, generator=self.generator)
        x = x.to(getattr(torch, step["dtype"][0]))
        y = x
        for d, term in enumerate(step["shape"][0]):
            if term == "tokens" and role != "fixed":
                y = y.index_select(d, self.order.argsort())  # token i is token order[i] of the second run
        return x, y

    def _stored(self, step: Mapping[str, Any]) -> Tensor:
        shape = self.sizes(step["shape"][0])
        x = torch.randn(shape, generator=self.generator)
        known = [one["fact"]["value"] for one in self.recording["constants"] if one["node"] == step["node"]]
        if known:
            ((_, content),) = known[0].items()
            places = itertools.product(*(range(n) for n in shape if n != 1))
            flat = [value_of(read_formula(content), {f"x{k}": i for k, i in enumerate(p)}, {}) for p in places]
            return torch.tensor(flat, dtype=torch.bool).reshape(shape)
        dims = [d for d, axes in enumerate(step["fact"]["axes"]) for _ in axes]
        for d, motion in zip(dims, step["fact"]["motions"], strict=True):
            if motion == "free":
                x = x.narrow(d, 0, 1).expand(x.shape)
        dtype = getattr(torch, step["dtype"][0])
        return x > 0 if dtype is torch.bool else (x * 3).to(dtype)

    def _computed(self, step: Mapping[str, Any], values: Mapping[str, Any]) -> Any:
        constants, causal = self.entries.get(step["node"], ((), False))
        changed = {name: self._without_order(name, values[name]) for name in constants}
        arguments = [self._decoded(x, {**values, **changed}) for x in step["args"]]
        options = {k: self._decoded(v, {**values, **changed}) for k, v in step["kwargs"].items()}
        if step["operator"] == "getitem":
            return arguments[0][arguments[1]]
        if causal:
            arguments = [False if k == 5 else x for k, x in enumerate(arguments)]
            options |= {"is_causal": False} if "is_causal" in options else {}
        _, name, overload = step["operator"].split(".")
        operator = getattr(getattr(torch.ops.aten, name), overload)
        for parameter, value in zip(operator._schema.arguments, arguments, strict=False):
            if parameter.name in ("dtype", "layout", "memory_format") and isinstance(value, int):
                raise TypeError("an integer in place of a dtype, which torch does not survive")
        with torch.no_grad():
            return operator(*arguments, **options)

    def _without_order(self, name: str, constant: Tensor) -> Tensor:
        """A constant that is the same for every token."""
        (step,) = (s for s in self.recording["steps"] if s["node"] == name)
        for d, term in enumerate(step["shape"][0]):
            if "tokens" in str(term) and constant.shape[d]:
                constant = constant.narrow(d, constant.shape[d] // 2, 1).expand(constant.shape)
        return constant

    def _decoded(self, argument: Any, values: Mapping[str, Any]) -> Any:
        if isinstance(argument, list):
            return [self._decoded(x, values) for x in argument]
        if not isinstance(argument, dict):
            return argument
        ((kind, content),) = argument.items()
        if kind == "node":
            return values[content]
        if kind == "size":
            return self.sizes([content])[0]
        return getattr(torch, content) if kind == "dtype" else float(content) if kind == "float" else OTHER[content]

    # ------------------------------------------------------------------ facts

    def holds(self, step: Mapping[str, Any]) -> bool:
        """True if every fact of a step is true of both runs, and its shape and dtype are right."""
        several = isinstance(step["fact"], list)
        facts = step["fact"] if several else [step["fact"]]
        pairs = [x[step["node"]] if several else [x[step["node"]]] for x in (self.first, self.second)]
        for number, (fact, first, second) in enumerate(zip(facts, *pairs, strict=True)):
            form = self.sizes(step["shape"][number]), getattr(torch, step["dtype"][number])
            if (list(first.shape), first.dtype) != form or list(second.shape) != form[0]:
                return False
            if not self._fact_holds(fact, first, second):
                return False
        return True

    def _fact_holds(self, fact: Mapping[str, Any], first: Tensor, second: Tensor) -> bool:
        sizes = [self.sizes([size])[0] for axes in fact["axes"] for size in axes]
        dims = [self.sizes(axes) for axes in fact["axes"]]
        if [int(torch.tensor(own).prod()) for own in dims] != list(first.shape):
            return False
        first, second = (torch.view_as_real(x).sum(-1) if x.is_complex() else x for x in (first, second))
        first, second = first.reshape(sizes).double(), second.reshape(sizes).double()
        claimed = self._where(fact, sizes)
        for axis, motion in enumerate(fact["motions"]):
            if isinstance(motion, list):
                order = torch.arange(sizes[axis])
                tokens = slice(motion[1], motion[1] + len(self.order))
                order[tokens] = self.order + motion[1]
                second = second.index_select(axis, order)
            elif motion == "free":
                second = second.narrow(axis, 0, 1).expand(sizes)
                if not _close(first, first.narrow(axis, -1, 1).expand(sizes), claimed):
                    return False
        return _close(first, second, claimed)

    def _where(self, fact: Mapping[str, Any], sizes: list[int]) -> Tensor:
        claimed = torch.ones(sizes, dtype=torch.bool)
        where = read_formula(fact.get("where", True))
        if "where" in fact:
            for place in itertools.product(*map(range, sizes)):
                names = {**self.names, **{f"x{k}": i for k, i in enumerate(place)}}
                claimed[place] = bool(value_of(where, names, {}))
        return claimed


def _close(first: Tensor, second: Tensor, claimed: Tensor) -> bool:
    finite = first[claimed].nan_to_num(0.0, 0.0, 0.0).clamp(-1e6, 1e6).abs()
    scale = max(1.0, float(finite.max())) if finite.numel() else 1.0
    near = torch.isclose(first, second, rtol=1e-5, atol=1e-4 * scale, equal_nan=True)
    return bool(near[claimed].all())


def contradiction(certificate: Mapping[str, Any], seed: int = 0) -> str:
    """FALSE if runs contradict a claimed fact, RAISES if the graph does not run, and empty otherwise."""
    for call in certificate["calls"]:
        for one in call["ranges"]:
            for recording, (number, (batch, tokens)) in itertools.product(one["recordings"], enumerate(SIZES)):
                length = max(tokens, one["least_length"])
                if one["greatest_length"] is not None and length > one["greatest_length"]:
                    continue
                try:
                    runs = Runs(recording, batch, length, 100 * seed + number)
                    if not all(map(runs.holds, recording["steps"])):
                        return FALSE
                except CannotRun:
                    return RAISES
                except (LookupError, TypeError, ValueError, RuntimeError, CertificateError):
                    return FALSE  # a fact that does not fit its tensor
    return ""
