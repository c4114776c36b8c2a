"""Random changes of certificates about permuted tokens, sealed or refilled as those of `theorems/mutations.py`."""

from __future__ import annotations

import copy
import random
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
)
from tests.recheck.theorems.permutations.runs import FALSE, contradiction

LAWS = (("position_ids", "OP104"), ("permutation", "OP101"), ("reversal", "OP103"), ("causal", "OP201"))


def _moved_facts(made: Certificate) -> list[dict[str, Any]]:
    return [fact for r in recordings(made) for step in r["steps"] for fact in facts_of(step)]


def change_motion(made: Certificate, chance: random.Random) -> bool:
    """Another axis along which a tensor moves, is the same, or stays."""
    fact = chance.choice([f for f in _moved_facts(made) if f["motions"]])
    k = chance.randrange(len(fact["motions"]))
    before, fact["motions"][k] = fact["motions"][k], chance.choice(["still", "free", ["moved", 0], ["moved", 1]])
    return bool(fact["motions"][k] != before)


def exchange_motions(made: Certificate, chance: random.Random) -> bool:
    """The motion of one axis given to another."""
    facts = [f for f in _moved_facts(made) if len({str(m) for m in f["motions"]}) > 1]
    if not facts:
        return False
    fact = chance.choice(facts)
    first, second = chance.sample(range(len(fact["motions"])), 2)
    motions = fact["motions"]
    motions[first], motions[second] = motions[second], motions[first]
    return bool(motions[first] != motions[second])


def change_where(made: Certificate, chance: random.Random) -> bool:
    """More or other elements about which something is claimed."""
    facts = [f for f in _moved_facts(made) if "where" in f]
    if facts and chance.random() < 0.7:
        fact = chance.choice(facts)
        before = copy.deepcopy(fact["where"])
        fact["where"] = chance.choice([True, altered(copy.deepcopy(before), chance, ["x0", "x1", "x2", "tokens"])])
        return bool(fact["where"] != before)
    fact = chance.choice(_moved_facts(made))
    fact["where"] = chance.choice([False, ["<=", "x0", 1], ["=", "x1", "tokens"]])
    return True


def change_constant(made: Certificate, chance: random.Random) -> bool:
    """Another value of a constant, or another step that is called constant, or at which order is taken out."""
    recording = chance.choice(list(recordings(made)))
    names = [s["node"] for s in recording["steps"]]
    before = copy.deepcopy(recording)
    match chance.randrange(5):
        case 0:
            recording["everywhere"] = [*recording["everywhere"], chance.choice(names)]
        case 1 if recording["constants"]:
            recording["constants"].pop(chance.randrange(len(recording["constants"])))
        case 2 if recording["entries"]:
            recording["entries"].pop(chance.randrange(len(recording["entries"])))
        case 3 if recording["entries"]:
            entry = chance.choice(recording["entries"])
            place = chance.randrange(3)
            entry[place] = [chance.choice(names), [chance.choice(names)], not entry[2]][place]
        case _:
            recording["entries"].append([chance.choice(names), [chance.choice(names)], chance.random() < 0.5])
    return recording != before


def change_statement(made: Certificate, chance: random.Random) -> bool:
    """Another law, role, answer, output, range of lengths, induction or assumption."""
    before = copy.deepcopy(made)
    recording = chance.choice(list(recordings(made)))
    one = made["calls"][0]["ranges"][0]
    match chance.randrange(10):
        case 0:
            made["law"], made["code"] = chance.choice(LAWS)
        case 1:
            chance.choice(recording["inputs"])[1] = chance.choice(["tokens", "fixed", "position_ids", "block_mask"])
        case 2:
            for question in recording["questions"][:1]:
                question[1] = not question[1]
        case 3:
            recording["output"]["moves"] = chance.choice([[], [0], [1], [2], [1, 2]])
        case 4:
            recording["output"]["node"] = chance.choice(recording["steps"])["node"]
        case 5:
            one[chance.choice(["least_length", "greatest_length"])] = chance.choice([0, 1, 2, 3, 17, 64, 99, None])
        case 6:
            one["recordings"].pop(chance.randrange(len(one["recordings"])))
        case 7:
            made["calls"][0]["shared"] = chance.choice([[], ["attention_mask"], ["position_ids", "block_mask"]])
        case 8:
            recording["questions"].append([chance.choice(recording["steps"])["node"], True])
        case 9:
            _change_depth(recording, chance)
    return made != before


def _change_depth(recording: dict[str, Any], chance: random.Random) -> None:
    depth, steps = recording["depth"], recording["steps"]
    if depth is None:
        nodes = [s["node"] for s in steps if s["operator"].startswith("aten.")]
        if len(nodes) > 3:
            cut = chance.randrange(1, len(nodes) - 1)
            halves = zip((nodes[:cut], nodes[cut:]), (recording["inputs"][0][0], nodes[cut - 1]), strict=True)
            layers = [{"nodes": own, "entry": entry, "result": own[-1], "steps": None} for own, entry in halves]
            recording["depth"] = {"layers": layers}
        return
    layer = chance.choice(depth["layers"])
    match chance.randrange(4):
        case 0:
            layer["nodes"].pop(chance.randrange(len(layer["nodes"])))
        case 1:
            layer[chance.choice(["entry", "result"])] = chance.choice(steps)["node"]
        case 2:
            depth["layers"].pop(chance.randrange(len(depth["layers"])))
        case 3:
            layer["steps"] = [{"node": n, "fact": {}, "needs": []} for n in layer["nodes"]]


IN_STEPS = (change_motion, change_motion, change_motion, exchange_motions, change_where, change_argument,
            change_argument, change_operator, change_form, drop_step, change_constant)  # fmt: skip
SEALED_ONLY = (change_obligation, change_claim)


def _claims_more(made: Certificate, whole: Certificate) -> bool:
    """A claim for more lengths or calls, or with fewer steps at which order is taken out.

    Layers are what a certificate says they are: if it calls the halves of a graph layers, and both keep one fact, then
    the claim for every number of such layers is true.
    """
    fewer = set(whole["claim"]["entries"]) - set(made["claim"]["entries"])
    return is_stronger({**made["claim"], "every_depth": False}, whole["claim"]) or bool(fewer)


def mutated(whole: Certificate, chance: random.Random, tried: Counter[str]) -> str:
    """Change a certificate, and check what becomes of it; the text says how a false one was accepted, if one was.

    A change that leaves the certificate true may be accepted; then runs of its graph agree with every fact in it.
    """
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
    if _claims_more(made, whole):
        return f"{name}: {made['claim']['sentence']}"
    return f"{name}: a fact that runs contradict" if contradiction(made) == FALSE else ""  # or an operator raises
