"""Altered copies of the steps of a certificate."""

from __future__ import annotations

import copy
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from orderproof.errors import CertificateError
from orderproof.recheck import recheck
from tests.recheck.certificates import example, sealed
from tests.recheck.step_runs import array, coded, contradicted, runs

LEMMAS = ("movement_equivariant", "pointwise_equivariant", "softmax_equivariant", "given", "no_such_lemma")

OPERATORS = (
    "aten.add.Tensor", "aten.mul.Tensor", "aten.sub.Tensor", "aten.matmul.default", "aten.softmax.int",
    "aten.cumsum.default", "aten.flip.default", "aten.relu.default", "aten.nonzero.default", "aten.rand_like.default",
    "aten.zero_.default", "os.system.default", "aten.empty_like.default", "prims.add.default", "parameter", "input",
    "getitem",
)  # fmt: skip

NEVER_RUN = OPERATORS[-8:-1]  # it draws, writes, or is no operator: never to be accepted, and not to be tried here


def alterations(  # noqa: C901
    steps: list[dict[str, Any]], k: int, chance: random.Random
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Altered copies of one step, each with its kind; some may happen to be true."""

    def copied() -> dict[str, Any]:
        return copy.deepcopy(steps[k])

    for name in OPERATORS:
        step = copied()
        step["operator"] = name
        yield "operator", step
    for name in LEMMAS:
        step = copied()
        step["lemma"] = name
        yield "lemma", step
    for place, value in literals(steps[k]["args"]):
        for new in {not value} if isinstance(value, bool) else {value + 1, value - 1, 0}:
            step = copied()
            put(step["args"], place, new)
            yield "literal", step
    for place, _ in nodes(steps[k]["args"]):
        for other in chance.sample(steps[:k], min(k, 4)):
            step = copied()
            put(step["args"], place, {"node": other["node"]})
            yield "operand", step
        step = copied()
        put(step["args"], place, None)
        yield "operand dropped", step
        step = copied()
        put(step["args"], place, {"node": steps[min(k + 1, len(steps) - 1)]["node"]})
        yield "operand from later", step
    single = not isinstance(steps[k]["fact"], list)
    for index in range(1 if single else len(steps[k]["fact"])):

        def part(step: dict[str, Any], index: int = index) -> Any:
            return step["fact"] if single else step["fact"][index]

        fact, shape = part(copied()), steps[k]["shape"] if single else steps[k]["shape"][index]
        level = np.broadcast_to(array(fact["dependence"]), shape)
        for place in chance.sample(list(np.ndindex(*shape)), min(level.size, 6)):
            for new in {-1, int(level[place]) - 1} - {-2}:
                step, lowered = copied(), level.copy()
                lowered[place] = new
                part(step)["dependence"] = coded(lowered)
                yield "dependence", step
            step = copied()
            low, high = np.full(shape, -1.0), np.full(shape, 1.0)
            low[place] = high[place] = 0.12345
            part(step)["values"] = {"low": coded(low), "high": coded(high)}
            yield "known", step
        size = [[*range(s)] for s in shape]
        groups = [m for m in fact["moves"] if isinstance(m, list)]
        for d, s in enumerate(shape):
            turned = [[*p[1:], p[0]] for p in [size[d]] * max(len(g) for g in groups)] if groups else []
            for move in ("uniform", "identity", *(g for g in groups if len(g[0]) == s), *([turned] if turned else [])):
                if move != fact["moves"][d]:
                    step = copied()
                    part(step)["moves"][d] = move
                    yield f"move {move if isinstance(move, str) else 'moved'}", step
            step = copied()
            target = step["shape"] if single else step["shape"][index]
            target[d] += 1
            yield "shape", step
        step = copied()
        step["dtype"] = "int16" if single else ["int16"] * len(steps[k]["fact"])
        yield "dtype", step


def literals(args: Any, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Any]]:
    for i, x in enumerate(args):
        if isinstance(x, list):
            yield from literals(x, (*path, i))
        elif isinstance(x, bool | int | float):
            yield (*path, i), x


def nodes(args: Any, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Any]]:
    for i, x in enumerate(args):
        if isinstance(x, list):
            yield from nodes(x, (*path, i))
        elif isinstance(x, dict) and "node" in x:
            yield (*path, i), x


def put(args: Any, path: tuple[int, ...], value: Any) -> None:
    for i in path[:-1]:
        args = args[i]
    args[path[-1]] = value


def lacks_an_operand(step: dict[str, Any]) -> bool:
    """True if a tensor is missing, or a number is in the place of a dtype: torch may crash on such a step."""
    _, name, *overload = step["operator"].split(".")
    if not overload or step["operator"] == "os.system.default":
        return True
    schema = getattr(getattr(torch.ops.aten, name), overload[0])._schema.arguments
    for x, a in zip(schema, step["args"], strict=False):
        missing = (a is None and str(x.type) == "Tensor") or (isinstance(a, list) and None in a)
        if missing or (isinstance(a, int) and "ScalarType" in str(x.real_type)):
            return True
    return False


def altered_steps(name: str, every: int) -> Counter[str]:
    """Alter each step in turn; every alteration that numbers contradict must be refused, at that step."""
    context, made = example(name)
    steps, chance, tried = made["steps"], random.Random(0), Counter[str]()
    both = runs(context, made)
    places = {step["node"]: k for k, step in enumerate(steps)}
    accepted = []
    for k in range(len(steps)):
        if steps[k]["operator"] in ("input", "parameter", "buffer") or steps[k]["fact"] is None:
            continue
        for number, (kind, step) in enumerate(alterations(steps, k, chance)):
            if number % every:
                continue
            later = any(places[x["node"]] >= k for _, x in nodes(step["args"]) if "node" in x)
            wrong = kind == "lemma" and step["lemma"] in ("given", "no_such_lemma")
            odd = step["operator"] in NEVER_RUN
            false = later or wrong or odd or (step["operator"] != "getitem" and lacks_an_operand(step))
            if not (false or contradicted(step, both)):
                continue
            tried[kind] += 1
            new = {**made, "steps": [*steps[:k], step, *steps[k + 1 :]]}
            try:
                recheck(sealed(new))
            except CertificateError as error:
                here = f"step {k + 1} " in str(error) or step["operator"] in ("parameter", "input")  # refused later
                if not here:
                    accepted.append((kind, step["node"], "refused elsewhere", str(error)))
            else:
                accepted.append((kind, step["node"], step["operator"], step["lemma"]))
    assert not accepted, accepted
    return tried
