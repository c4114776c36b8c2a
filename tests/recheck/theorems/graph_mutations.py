"""Random changes of certificates of theorems: of their graph, obligations and claim.

Certificates of laws of agreement and of permutation laws have these in common.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

from tests.recheck.theorems.examples import Certificate

Mutation = Callable[[Certificate, random.Random], bool]  # True if it changed something


def recordings(made: Certificate) -> Iterator[dict[str, Any]]:
    """The recordings of a certificate."""
    for call in made["calls"]:
        for one in call["ranges"]:
            yield from one["recordings"]


def steps_of(made: Certificate) -> list[dict[str, Any]]:
    """All steps of a certificate."""
    kinds = ("steps", "asked", "constants")
    return [step for recording in recordings(made) for kind in kinds for step in recording.get(kind, [])]


def _places(data: Any) -> Iterator[tuple[Any, Any]]:
    """Every place inside nested lists: the list, and an index."""
    if isinstance(data, list):
        for k, x in enumerate(data):
            yield data, k
            yield from _places(x)


def altered(formula: Any, chance: random.Random, names: list[str]) -> Any:
    """A term or formula with one change somewhere inside."""
    box = [formula]
    places = list(_places(box))
    chance.shuffle(places)
    for inside, k in places:
        new = _other(inside[k], chance, names, is_head=k == 0 and inside is not box)
        if new is not None:
            inside[k] = new
            return box[0]
    return formula


def _other(x: Any, chance: random.Random, names: list[str], *, is_head: bool) -> Any:
    if is_head:
        return {"<=": "=", "=": "<=", "and": "or", "or": "and"}.get(x)
    if isinstance(x, bool):
        return not x
    if isinstance(x, int):
        return x + chance.choice([-1, 1])
    if isinstance(x, str):
        others = [n for n in names if n != x]
        return chance.choice(others) if others else None
    if isinstance(x, list) and x:
        if x[0] == "not":
            return x[1]
        if x[0] in ("and", "or") and chance.random() < 0.7:
            kept = [y for y in x[1:] if y is not chance.choice(x[1:])] or x[1:2]
            return kept[0] if len(kept) == 1 else [x[0], *kept]
        if x[0] in ("<=", "="):
            return chance.choice([["not", x], [x[0], x[2], x[1]], True])
        if x[0] == "if":
            return chance.choice([["if", x[1], x[3], x[2]], x[2], x[3]])
        if x[0] == "holds":
            return chance.choice([["not", x], True])
    return None


def facts_of(step: dict[str, Any]) -> list[dict[str, Any]]:
    """The facts of a step."""
    return step["fact"] if isinstance(step["fact"], list) else [step["fact"]]


def change_argument(made: Certificate, chance: random.Random) -> bool:
    """Read another node, or another dimension, index or size."""
    steps = [s for s in steps_of(made) if s["operator"].startswith("aten.") or s["operator"] == "getitem"]
    step = chance.choice(steps)
    names = [s["node"] for s in steps_of(made)]
    places = [(inside, k) for inside, k in _places([step["args"]]) if not isinstance(inside[k], list)]
    chance.shuffle(places)
    for inside, k in places:
        x = inside[k]
        if isinstance(x, dict) and "node" in x:
            inside[k] = {"node": chance.choice(names)}
        elif isinstance(x, bool):
            inside[k] = not x
        elif isinstance(x, int):
            inside[k] = x + chance.choice([-1, 1, 2])
        elif isinstance(x, dict) and "size" in x:
            inside[k] = {"size": altered(copy.deepcopy(x["size"]), chance, ["tokens", "batch"])}
        else:
            continue
        return bool(inside[k] != x)
    return False


def change_operator(made: Certificate, chance: random.Random) -> bool:
    """Another operator of the certificate, or one of the same form."""
    step = chance.choice([s for s in steps_of(made) if s["operator"].startswith("aten.")])
    alike = {
        "aten.le.Tensor": ["aten.lt.Tensor", "aten.ge.Tensor"], "aten.gt.Tensor": ["aten.lt.Tensor"],
        "aten.softmax.int": ["aten.cumsum.default"], "aten.__and__.Tensor": ["aten.__or__.Tensor"],
        "aten.add.Tensor": ["aten.sub.Tensor"], "aten.bitwise_not.default": ["aten.clone.default"],
    }  # fmt: skip
    others = alike.get(step["operator"], [])
    others = others if others and chance.random() < 0.5 else [s["operator"] for s in steps_of(made)]
    before, step["operator"] = step["operator"], chance.choice(others)
    return bool(step["operator"] != before)


def change_form(made: Certificate, chance: random.Random) -> bool:
    """Another shape, dtype or other axes."""
    step = chance.choice(steps_of(made))
    kind = chance.choice(["shape", "dtype", "axes"])
    before = copy.deepcopy(step)
    if kind == "dtype":
        step["dtype"][0] = chance.choice(["float32", "float16", "bool", "int64", "int32"])
    elif kind == "shape" and step["shape"][0]:
        shape = step["shape"][0]
        k = chance.randrange(len(shape))
        shape[k] = altered(copy.deepcopy(shape[k]), chance, ["tokens", "batch"])
    elif facts_of(step)[0]["axes"]:
        axes = facts_of(step)[0]["axes"]
        axes[chance.randrange(len(axes))] = chance.choice([[], ["tokens"], ["batch"], [2, 3], [6]])
    return step != before


def drop_step(made: Certificate, chance: random.Random) -> bool:
    """Leave a step out, or exchange two."""
    steps = chance.choice([r["steps"] for r in recordings(made) if r["steps"]])
    k = chance.randrange(len(steps) - 1)
    if chance.random() < 0.5:
        del steps[k]
    else:
        steps[k], steps[k + 1] = steps[k + 1], steps[k]
    return True


def change_obligation(made: Certificate, chance: random.Random) -> bool:
    """Leave an obligation out, or weaken it."""
    steps = [s for s in steps_of(made) if s["needs"]]
    if not steps:
        return False
    needs = chance.choice(steps)["needs"]
    k = chance.randrange(len(needs))
    if chance.random() < 0.4:
        del needs[k]
        return True
    before = copy.deepcopy(needs[k])
    place = chance.choice([1, 2])
    needs[k][place] = altered(needs[k][place], chance, ["x0", "x1", "x2", "cut", "tokens"])
    return bool(needs[k] != before)


def change_claim(made: Certificate, chance: random.Random) -> bool:
    """Another claim than the one that is proved."""
    claim, key = made["claim"], chance.choice(sorted(made["claim"]))
    before = copy.deepcopy(claim[key])
    if key == "sentence":
        claim[key] = claim[key].replace("from 2", "from 1") if chance.random() < 0.5 else claim[key] + " and layout"
    elif isinstance(before, bool):
        claim[key] = not before
    elif isinstance(before, list):
        claim[key] = [*before, "every document"] if chance.random() < 0.5 else before[1:]
    else:
        claim[key] = chance.choice([1, 2, 5, 1000, None])
    return bool(claim[key] != before)


def is_stronger(claim: dict[str, Any], proved: dict[str, Any]) -> bool:
    """True unless a claim follows from a proved one of the same law."""
    ends = (claim["greatest_length"], proved["greatest_length"])
    longer = ends[1] is not None and (ends[0] is None or ends[0] > ends[1])
    shorter = claim["least_length"] < proved["least_length"]
    return bool(
        longer or shorter or (claim["every_depth"] and not proved["every_depth"])
        or set(claim["covers"]) - set(proved["covers"])
    )  # fmt: skip
