"""Random corruptions of certificates."""

from __future__ import annotations

import copy
import math
import random
from collections import Counter
from typing import Any

import numpy as np
import torch

from orderproof.auditing.record.context import AuditContext
from orderproof.diagnosis.rule import find_rule, lemma_summaries
from orderproof.errors import CertificateError
from orderproof.recheck import recheck
from tests.recheck.alterations import lacks_an_operand, literals, nodes, put
from tests.recheck.certificates import PROVED, Certificate, by_node, example, sealed
from tests.recheck.step_runs import Runs, array, coded, contradicted, interval, runs


def corrupted(made: Certificate, chance: random.Random) -> tuple[str, int]:
    """Corrupt a step at random; the kind of the corruption, and the step."""
    steps, kind = made["steps"], chance.choice(KINDS)
    places = [k for k, s in enumerate(steps) if s["fact"] is not None and s["operator"] not in ORIGINS]
    if kind == "values" and made["values"]:
        data = made["values"][chance.choice(sorted(made["values"]))]
        values = array(data)
        place = chance.choice(list(np.ndindex(*values.shape)))
        values = values.copy()
        values[place] = not values[place] if values.dtype == bool else values[place] + 1
        data["runs"] = coded(values)["runs"]
        return kind, -1
    if kind == "argument":
        places = [k for k in places if [*literals(steps[k]["args"]), *nodes(steps[k]["args"])]] or places
    k = chance.choice(places)
    step = steps[k]
    single = not isinstance(step["fact"], list)
    index = 0 if single else chance.randrange(len(step["fact"]))
    fact, shape = (step["fact"], step["shape"]) if single else (step["fact"][index], step["shape"][index])
    if kind == "lemma":
        step["lemma"] = chance.choice([x for x in SENTENCES if x != step["lemma"]])
    elif kind == "argument" and (chance.random() < 0.5 or not [*literals(step["args"])]) and [*nodes(step["args"])]:
        place, _ = chance.choice(list(nodes(step["args"])))
        like = [s for s in steps[:k] if s["shape"] == by_node(made)[nodes_at(step["args"], place)]["shape"]]
        put(step["args"], place, {"node": chance.choice(like if chance.random() < 0.7 else steps[:k])["node"]})
    elif kind == "argument" and [*literals(step["args"])]:
        place, value = chance.choice(list(literals(step["args"])))
        put(
            step["args"],
            place,
            not value if isinstance(value, bool) else chance.choice([value + 1, value - 1, -value, 0]),
        )
    elif kind == "operator":
        step["operator"] = chance.choice([s["operator"] for s in steps if s["operator"].startswith("aten.")])
    elif kind == "shape" and shape:
        shape[chance.randrange(len(shape))] += chance.choice([-1, 1])
    elif kind == "move" and shape:
        groups = [m for s in steps if isinstance(s["fact"], dict) for m in s["fact"]["moves"] if isinstance(m, list)]
        d = chance.randrange(len(shape))
        fact["moves"][d] = chance.choice(["identity", "uniform", *(m for m in groups if len(m[0]) == shape[d])])
    elif kind == "known":
        low, high = (np.broadcast_to(x, shape).astype(float) for x in interval(fact, len(shape)))
        place = tuple(chance.randrange(s) for s in shape)
        low[place], high[place] = chance.choice(
            [(0, 0), (1, 1), (-math.inf, -math.inf), (-math.inf, -1e30), (-1.1e30, -1e30), (-1, 1), (-math.inf, 1)]
        )
        fact["values"] = {"low": coded(low), "high": coded(high)}
    else:
        level = np.broadcast_to(array(fact["dependence"]), shape).copy()
        place = tuple(chance.randrange(s) for s in shape)
        level[place if chance.random() < 0.5 else ...] = chance.choice([-1, max(-1, int(level[place]) - 1)])
        fact["dependence"] = coded(level)
    return kind, k


KINDS = ("dependence", "dependence", "known", "move", "argument", "argument", "operator", "lemma", "shape", "values")
ORIGINS = ("input", "parameter", "buffer")
SENTENCES = sorted(lemma_summaries())


def nodes_at(args: Any, path: tuple[int, ...]) -> str:
    for i in path:
        args = args[i]
    return str(args["node"])


def is_false(kind: str, k: int, made: Certificate, context: AuditContext, both: Runs) -> bool:
    """True if runs show that a corruption made a step false."""
    step = made["steps"][k]
    if kind == "values":
        again = runs(context, made)
        return any(
            s["fact"] is not None and s["operator"] not in ORIGINS and contradicted(s, again) for s in made["steps"]
        )
    if kind == "lemma":  # its fact is as true as before: the reason is wrong, unless it is the operator's own
        target = step["operator"].split(".")
        own = None if len(target) < 3 else find_rule(getattr(getattr(torch.ops.aten, target[1]), target[2]))
        return step["lemma"] not in (*PLAIN_LEMMAS, own and own.lemma)
    if kind == "operator" and step["operator"] != "getitem" and lacks_an_operand(step):
        return True
    return contradicted(step, both)


PLAIN_LEMMAS = ("same_in_both_runs", "pure_function_of_unmoved")
CORRUPTIBLE = (*PROVED, "causal:gpt2?n_layer=1:eager", "permutation:bert?num_hidden_layers=1:eager")


def corruptions(count: int, seed: int) -> Counter[str]:
    """Corrupt certificates at random; every corruption that makes a step false must be refused."""
    chance, found, accepted = random.Random(seed), Counter[str](), []
    known = {name: (example(name), runs(*example(name))) for name in CORRUPTIBLE}
    for number in range(count):
        (context, whole), both = known[CORRUPTIBLE[number % len(CORRUPTIBLE)]]
        made = copy.deepcopy(whole)
        kind, k = corrupted(made, chance)
        if made == whole:
            found["no corruption"] += 1
            continue
        false = is_false(kind, k, made, context, both)
        try:
            recheck(sealed(made))
        except CertificateError:
            found[f"{'false' if false else 'harmless'}, refused"] += 1
        else:
            found[f"{'false' if false else 'harmless'}, accepted"] += 1
            if false:
                accepted.append((CORRUPTIBLE[number % len(CORRUPTIBLE)], kind, made["steps"][k]["node"]))
    assert not accepted, accepted
    return found
