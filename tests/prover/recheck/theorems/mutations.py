"""Random changes of certificates of theorems.

A change is *sealed*: only the digest is computed again; or *refilled*: the forger also computes the obligations and the
claim again, so that nothing but the rules and the decision procedure can refuse it.
"""

from __future__ import annotations

import copy
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from orderproof.errors import CertificateError
from orderproof.prover.recheck.theorems.theorem import check_theorem, digest_of
from tests.prover.recheck.theorems.examples import Certificate
from tests.prover.recheck.theorems.runs import FALSE, contradiction

PREDICATES = ("same", "zero", "hidden", "ordinary")
Mutation = Callable[[Certificate, random.Random], bool]  # True if it changed something


def recordings(made: Certificate) -> Iterator[dict[str, Any]]:
    """The recordings of a certificate."""
    for call in made["calls"]:
        for one in call["ranges"]:
            yield from one["recordings"]


def _steps(made: Certificate) -> list[dict[str, Any]]:
    return [step for recording in recordings(made) for step in (*recording["steps"], *recording["asked"])]


def _places(data: Any) -> Iterator[tuple[Any, Any]]:
    """Every place inside nested lists: the list, and an index."""
    if isinstance(data, list):
        for k, x in enumerate(data):
            yield data, k
            yield from _places(x)


def _altered(formula: Any, chance: random.Random, names: list[str]) -> Any:
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


def change_predicate(made: Certificate, chance: random.Random) -> bool:
    """Weaken or alter the condition under which something is claimed of a tensor."""
    facts = [f for s in _steps(made) for f in _facts(s) if "value" not in f and s["operator"] != "parameter"]
    fact = chance.choice(facts)
    name = chance.choice(["same", "same", *PREDICATES])
    before = fact.get(name, name in ("same", "ordinary"))
    names = [f"x{k}" for k in range(sum(map(len, fact["axes"])))] + ["cut", "row", "tokens", "batch"]
    choices = [True, _altered(copy.deepcopy(before), chance, names), _altered(copy.deepcopy(before), chance, names)]
    others = [f[n] for f in facts for n in PREDICATES if n in f]
    fact[name] = chance.choice([*choices, chance.choice(others)] if others else choices)
    return bool(fact[name] != before)


def _facts(step: dict[str, Any]) -> list[dict[str, Any]]:
    return step["fact"] if isinstance(step["fact"], list) else [step["fact"]]


def change_value(made: Certificate, chance: random.Random) -> bool:
    """Alter the value of a tensor."""
    facts = [f for s in _steps(made) for f in _facts(s) if "value" in f and s["operator"] != "buffer"]
    if not facts:
        return False
    fact = chance.choice(facts)
    ((kind, content),) = fact["value"].items()
    before = copy.deepcopy(content)
    names = [f"x{k}" for k in range(sum(map(len, fact["axes"])))] + ["tokens", "batch"]
    if kind == "cases":
        pair = chance.choice(content)
        place = chance.randrange(2)
        pair[place] = _altered(pair[0], chance, names) if place == 0 else chance.choice([0.0, 1.0, -1e30, -5.0])
    else:
        fact["value"][kind] = _altered(content, chance, names)
    return bool(fact["value"][kind] != before)


def change_argument(made: Certificate, chance: random.Random) -> bool:
    """Read another node, or another dimension, index or size."""
    steps = [s for s in _steps(made) if s["operator"].startswith("aten.") or s["operator"] == "getitem"]
    step = chance.choice(steps)
    names = [s["node"] for s in _steps(made)]
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
            inside[k] = {"size": _altered(copy.deepcopy(x["size"]), chance, ["tokens", "batch"])}
        else:
            continue
        return bool(inside[k] != x)
    return False


def change_operator(made: Certificate, chance: random.Random) -> bool:
    """Another operator of the certificate, or one of the same form."""
    step = chance.choice([s for s in _steps(made) if s["operator"].startswith("aten.")])
    alike = {
        "aten.le.Tensor": ["aten.lt.Tensor", "aten.ge.Tensor"], "aten.gt.Tensor": ["aten.lt.Tensor"],
        "aten.softmax.int": ["aten.cumsum.default"], "aten.__and__.Tensor": ["aten.__or__.Tensor"],
        "aten.add.Tensor": ["aten.sub.Tensor"], "aten.bitwise_not.default": ["aten.clone.default"],
    }  # fmt: skip
    others = alike.get(step["operator"], [])
    others = others if others and chance.random() < 0.5 else [s["operator"] for s in _steps(made)]
    before, step["operator"] = step["operator"], chance.choice(others)
    return bool(step["operator"] != before)


def change_form(made: Certificate, chance: random.Random) -> bool:
    """Another shape, dtype or other axes."""
    step = chance.choice(_steps(made))
    kind = chance.choice(["shape", "dtype", "axes"])
    before = copy.deepcopy(step)
    if kind == "dtype":
        step["dtype"][0] = chance.choice(["float32", "float16", "bool", "int64", "int32"])
    elif kind == "shape" and step["shape"][0]:
        shape = step["shape"][0]
        k = chance.randrange(len(shape))
        shape[k] = _altered(copy.deepcopy(shape[k]), chance, ["tokens", "batch"])
    elif _facts(step)[0]["axes"]:
        axes = _facts(step)[0]["axes"]
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
    steps = [s for s in _steps(made) if s["needs"]]
    if not steps:
        return False
    needs = chance.choice(steps)["needs"]
    k = chance.randrange(len(needs))
    if chance.random() < 0.4:
        del needs[k]
        return True
    before = copy.deepcopy(needs[k])
    place = chance.choice([1, 2])
    needs[k][place] = _altered(needs[k][place], chance, ["x0", "x1", "x2", "cut", "tokens"])
    return bool(needs[k] != before)


def change_statement(made: Certificate, chance: random.Random) -> bool:  # noqa: C901
    """Another law, role, answer, output, range of lengths, induction or assumption."""
    before = copy.deepcopy(made)
    recording = chance.choice(list(recordings(made)))
    one = made["calls"][0]["ranges"][0]
    match chance.randrange(11):
        case 0:
            made["law"], made["code"] = chance.choice([("causal", "OP201"), ("padding", "OP202"), ("batch", "OP204")])
        case 1:
            pair = chance.choice(recording["inputs"])
            pair[1] = chance.choice(["tokens", "attention_mask", "fixed", "position_ids"])
        case 2:
            recording["uniform"] = chance.choice(
                list({None, "everything_real", "one_document"} - {recording["uniform"]})
            )
        case 3:
            for question in recording["questions"][:1]:
                question[1] = not question[1]
        case 4:
            if recording["output"]:
                recording["output"][chance.choice(["row", "token"])] = chance.choice([0, 1, 2, None])
        case 5:
            if recording["output"]:
                recording["output"]["node"] = chance.choice(recording["steps"])["node"]
        case 6:
            one[chance.choice(["least_length", "greatest_length"])] = chance.choice([0, 1, 2, 3, 17, 64, 99, None])
        case 7:
            one["recordings"].pop(chance.randrange(len(one["recordings"])))
        case 8:
            if made["assumptions"]:
                made["assumptions"].pop()
        case 9:
            made["calls"][0]["shared"] = chance.choice([[], ["attention_mask"], ["position_ids", "block_mask"]])
        case 10:
            _change_depth(recording, chance)
    return made != before


def _change_depth(recording: dict[str, Any], chance: random.Random) -> None:
    depth = recording["depth"]
    if depth is None:
        nodes = [s["node"] for s in recording["steps"] if s["operator"].startswith("aten.")]
        if len(nodes) > 3:
            cut = chance.randrange(1, len(nodes) - 1)
            halves = (nodes[:cut], nodes[cut:])
            entries = (recording["inputs"][0][0], nodes[cut - 1])
            recording["depth"] = {
                "layers": [
                    {"nodes": own, "entry": entry, "result": own[-1], "steps": None}
                    for own, entry in zip(halves, entries, strict=True)
                ]
            }
        return
    layer = chance.choice(depth["layers"])
    match chance.randrange(4):
        case 0:
            layer["nodes"].pop(chance.randrange(len(layer["nodes"])))
        case 1:
            layer[chance.choice(["entry", "result"])] = chance.choice(recording["steps"])["node"]
        case 2:
            depth["layers"].pop(chance.randrange(len(depth["layers"])))
        case 3:
            layer["steps"] = None if layer["steps"] else [{"node": n, "fact": {}, "needs": []} for n in layer["nodes"]]


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


IN_STEPS = (change_predicate, change_predicate, change_predicate, change_value, change_argument, change_argument,
            change_operator, change_form, drop_step)  # fmt: skip
SEALED_ONLY = (change_obligation, change_claim)


def is_stronger(claim: dict[str, Any], proved: dict[str, Any]) -> bool:
    """True unless a claim follows from a proved one of the same law."""
    ends = (claim["greatest_length"], proved["greatest_length"])
    longer = ends[1] is not None and (ends[0] is None or ends[0] > ends[1])
    shorter = claim["least_length"] < proved["least_length"]
    return bool(
        longer or shorter or (claim["every_depth"] and not proved["every_depth"])
        or set(claim["covers"]) - set(proved["covers"])
    )  # fmt: skip


def mutated(whole: Certificate, chance: random.Random, tried: Counter[str]) -> str:
    """Change a certificate, and check what becomes of it; the text says how a false one was accepted, if one was."""
    made = copy.deepcopy(whole)
    mutation: Mutation = chance.choice([*IN_STEPS, *IN_STEPS, *SEALED_ONLY, change_statement, change_statement])
    if not mutation(made, chance):
        return ""
    refilled = mutation not in SEALED_ONLY and chance.random() < 0.7
    if not refilled:
        made["digest"] = digest_of(made)
    name = f"{mutation.__name__}, {'refilled' if refilled else 'sealed'}"
    try:
        check_theorem(made, fill=refilled)
    except CertificateError:
        breaks = mutation in (*SEALED_ONLY, change_statement) or contradiction(made)
        tried["changes the claim or breaks a step" if breaks else "harmless"] += 1
        tried[name] += 1
        return ""
    tried["accepted"] += 1
    if mutation in SEALED_ONLY:
        return f"{name}: a changed obligation or claim"
    if made["law"] != whole["law"]:
        return f"{name}: another law" if contradiction(made) else ""
    if is_stronger(made["claim"], whole["claim"]):
        return f"{name}: {made['claim']['sentence']}"
    return f"{name}: a fact that runs contradict" if contradiction(made) == FALSE else ""  # or an operator raises
