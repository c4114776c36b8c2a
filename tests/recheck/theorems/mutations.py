"""Random changes of certificates of theorems.

A change is *sealed*: only the digest is computed again; or *refilled*: the forger also computes the obligations and the
claim again, so that nothing but the rules and the decision procedure can refuse it.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections import Counter
from typing import Any

from orderproof_recheck.errors import CertificateError
from orderproof_recheck.theorem import check_theorem, digest_of
from tests.recheck.theorems.examples import Certificate
from tests.recheck.theorems.graph_mutations import (
    Mutation,
    altered,
    change_argument,
    change_claim,
    change_form,
    change_obligation,
    change_operator,
    drop_step,
    facts_of,
    is_stronger,
    recordings,
    steps_of,
)
from tests.recheck.theorems.runs import FALSE, contradiction

PREDICATES = ("same", "zero", "hidden", "ordinary")


def change_predicate(made: Certificate, chance: random.Random) -> bool:
    """Weaken or alter the condition under which something is claimed of a tensor."""
    facts = [f for s in steps_of(made) for f in facts_of(s) if "value" not in f and s["operator"] != "parameter"]
    fact = chance.choice(facts)
    name = chance.choice(["same", "same", *PREDICATES])
    before = fact.get(name, name in ("same", "ordinary"))
    names = [f"x{k}" for k in range(sum(map(len, fact["axes"])))] + ["cut", "row", "tokens", "batch"]
    choices = [True, altered(copy.deepcopy(before), chance, names), altered(copy.deepcopy(before), chance, names)]
    others = [f[n] for f in facts for n in PREDICATES if n in f]
    fact[name] = chance.choice([*choices, chance.choice(others)] if others else choices)
    return bool(fact[name] != before)


def change_value(made: Certificate, chance: random.Random) -> bool:
    """Alter the value of a tensor."""
    facts = [f for s in steps_of(made) for f in facts_of(s) if "value" in f and s["operator"] != "buffer"]
    if not facts:
        return False
    fact = chance.choice(facts)
    ((kind, content),) = fact["value"].items()
    before = copy.deepcopy(content)
    names = [f"x{k}" for k in range(sum(map(len, fact["axes"])))] + ["tokens", "batch"]
    if kind == "cases":
        pair = chance.choice(content)
        place = chance.randrange(2)
        pair[place] = altered(pair[0], chance, names) if place == 0 else chance.choice([0.0, 1.0, -1e30, -5.0])
    else:
        fact["value"][kind] = altered(content, chance, names)
    return bool(fact["value"][kind] != before)


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
            if _read_by(recording, halves[1]) & set(halves[0]) == {nodes[cut - 1]}:
                return  # two layers indeed: the induction is true
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


def _read_by(recording: dict[str, Any], nodes: list[str]) -> set[str]:
    """The nodes that some of the steps read."""
    text = json.dumps([s["args"] for s in recording["steps"] if s["node"] in nodes])
    return set(re.findall(r'{"node": "([^"]*)"}', text))


IN_STEPS = (change_predicate, change_predicate, change_predicate, change_value, change_argument, change_argument,
            change_operator, change_form, drop_step)  # fmt: skip
SEALED_ONLY = (change_obligation, change_claim)


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
