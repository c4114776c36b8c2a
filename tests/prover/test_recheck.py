"""The rechecker accepts proofs and refuses every false step.

Which alterations are false is decided without it: an altered step is run on numbers, on the inputs of both runs,
and it must be refused wherever the numbers contradict what it says.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import json
import math
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orderproof.auditing.completion import certificate
from orderproof.auditing.examine import Examination
from orderproof.errors import CertificateError
from orderproof.laws import get, laws
from orderproof.prover import recheck as module
from orderproof.prover.certificate import digest, fingerprint, read
from orderproof.prover.recheck import recheck
from orderproof.prover.recheck.fact import Fact
from orderproof.prover.rule import find, sentences
from orderproof.subjects import from_module, load

Certificate = dict[str, Any]
PROVED = (
    "order_blind", "prompt_blind", "mirror_blind", "position_labelled",
    "causal", "padding", "packing", "packing#1", "batch", "batch#1",
)  # fmt: skip


def of_module(name: str) -> tuple[Examination, Certificate]:
    """The honest example of a law; "packing#1" is the second of its parts."""
    torch.manual_seed(0)
    law_name, _, part = name.partition("#")
    law = get(law_name)
    subject = from_module(law.honest(), (torch.randn(3 if law_name == "batch" else 2, 5, 8),))
    exam = Examination(subject, subject.length).called(law.settings[0])
    assert isinstance(exam, Examination), exam
    made = certificate(exam, law.relations(2)[int(part or 0)], next(iter(exam.output_dims)))
    assert made is not None
    return exam, made


def of_architecture(name: str, attention: str, law: str, **options: Any) -> tuple[Examination, Certificate]:
    subject = load(f"arch:{name}", tiny=True, attention=attention)
    exam = Examination(subject, subject.length).called(get(law).settings[0])
    assert isinstance(exam, Examination), exam
    made = certificate(exam, get(law).relations(2)[0], "last_hidden_state", **options)
    assert made is not None
    return exam, made


_made: dict[str, tuple[Examination, Certificate]] = {}


def example(name: str) -> tuple[Examination, Certificate]:
    """An example by name, made once: `causal` is an honest module, `causal:gpt2:sdpa` an architecture."""
    if name not in _made:
        law, _, rest = name.partition(":")
        if not rest:
            _made[name] = of_module(law)
        else:
            architecture, attention = rest.split(":")
            options: dict[str, Any] = {"completed": True} if law == "order_blind" else {}
            options |= {"uniform": ("wpe",)} if law == "prompt_blind" else {}
            _made[name] = of_architecture(architecture, attention, law, **options)
    exam, made = _made[name]
    return exam, copy.deepcopy(made)


def sealed(made: Certificate) -> Certificate:
    """The certificate with its fingerprint and digest computed anew."""
    made["graph"] = fingerprint(made["steps"])
    made["digest"] = digest(made)
    return made


# ---- what holds is accepted

QUICK = [
    *PROVED, "causal:llama:sdpa", "causal:gpt2:eager", "order_blind:bert:eager", "order_blind:gpt2:sdpa",
    "prompt_blind:gpt2?n_layer=1:eager",
]  # fmt: skip
SLOW = [
    *(
        f"causal:{a}:{k}"
        for a in ("llama", "gpt2", "mistral", "qwen3", "gemma3", "gpt_neox")
        for k in ("sdpa", "eager")
    ),
    *(
        f"order_blind:{a}:{k}"
        for a in ("bert", "roberta", "distilbert", "gpt2", "llama", "t5", "vit")
        for k in ("sdpa", "eager")
    ),
    "prompt_blind:gpt2?n_layer=1:sdpa",
]


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(n, marks=pytest.mark.slow) for n in SLOW if n not in QUICK)])
def test_a_proof_is_accepted(name: str) -> None:
    _, made = example(name)
    checked = recheck(json.loads(json.dumps(made)))
    assert checked.law == made["law"]
    assert checked.output == made["output"]["name"]
    assert checked.steps == len(made["steps"])
    assert checked.weights == "all"
    assert list(checked.assumptions) == made["assumptions"]


def test_every_law_that_is_proved_is_covered() -> None:
    assert {law.name for law in laws()} == {name.partition("#")[0] for name in PROVED}


# ---- what is altered is refused


@pytest.mark.parametrize("name", PROVED)
def test_an_alteration_without_new_sums_is_refused_by_its_digest(name: str) -> None:
    _, made = example(name)
    for k, step in enumerate(made["steps"]):
        for key in step:
            altered = copy.deepcopy(made)
            altered["steps"][k][key] = "altered"
            with pytest.raises(CertificateError, match="digest"):
                recheck(altered)
            if key not in ("lemma", "fact", "as"):
                altered["digest"] = digest(altered)
                with pytest.raises(CertificateError, match="fingerprint"):
                    recheck(altered)


def execute(exam: Examination, made: Certificate, tokens: tuple[torch.Tensor, ...]) -> dict[str, Any]:
    """Every step's value on these inputs in float64, from the certificate's own graph and its own stored values."""
    inputs = dict(zip(made["inputs"], tokens, strict=True))
    values: dict[str, Any] = {}
    for step in made["steps"]:
        if step["operator"] in ("parameter", "buffer"):
            name = step["args"][0]
            values[step["node"]] = wide(stored(made, name) if name in made["values"] else exam.captured.values[name])
        elif step["operator"] == "input":
            values[step["node"]] = wide(inputs[step["node"]])
        else:
            values[step["node"]] = run_step(step, values)
    return values


def stored(made: Certificate, name: str) -> torch.Tensor:
    data = made["values"][name]
    return torch.from_numpy(array(data)).to(getattr(torch, data["dtype"])).expand(data["shape"])


def wide(x: Any) -> Any:
    """The same in float64."""
    if isinstance(x, torch.Tensor):
        return x.double() if x.is_floating_point() else x
    if isinstance(x, list | tuple):
        return [wide(y) for y in x]
    return torch.float64 if isinstance(x, torch.dtype) and x.is_floating_point else x


def run_step(step: dict[str, Any], values: dict[str, Any]) -> Any:
    def filled(x: Any) -> Any:
        if isinstance(x, list):
            return [filled(y) for y in x]
        if not isinstance(x, dict):
            return x
        kind, name = next(iter(x.items()))
        if kind == "float":
            return float(name)
        if kind == "device":
            return torch.device("cpu")
        return values[name] if kind == "node" else wide(getattr(torch, name.removeprefix("torch.")))

    args, kwargs = filled(step["args"]), {k: filled(v) for k, v in step["kwargs"].items()}
    if step["operator"] == "getitem":
        return args[0][args[1]]
    space, name, overload = step["operator"].split(".")
    assert space == "aten"
    if name == "_unsafe_view":  # a step speaks of values, not of how they lie in memory
        args[0] = args[0].contiguous()
    with torch.no_grad():
        return wide(getattr(getattr(torch.ops.aten, name), overload)(*args, **kwargs))


Runs = tuple[dict[str, Any], list[tuple[int, int, dict[str, Any]]]]


def runs(exam: Examination, made: Certificate) -> Runs:
    """The first run, and each second one with its generator and case."""
    first = exam.subject.sample(exam.length, 1).inputs
    second = exam.subject.sample(exam.length, 2).inputs
    axes, relation = list(made["inputs"].values()), made["relation"]
    changed: list[tuple[int, int, tuple[torch.Tensor, ...]]] = []
    for g, p in enumerate(relation["generators"]):
        back, moved = torch.tensor(np.argsort(p)), list(first)
        for k, axis in enumerate(axes):
            for a in axis if isinstance(axis, list) else [] if axis is None else [axis]:
                moved[k] = moved[k].index_select(a, back)
        changed.append((g, 0, tuple(moved)))
    slots = [(cut, torch.arange(relation["tokens"])[None] >= cut) for cut in range(relation["tokens"])]
    if "replaced" in relation:
        slots = [(0, torch.tensor(relation["replaced"]) == 1)]
    for case, new in slots if made["family"] == "influence" else []:
        pairs = zip(first, second, axes, strict=True)
        changed.append((0, case, tuple(x if a is None else replaced(x, y, new, a) for x, y, a in pairs)))
    found = [(g, case, execute(exam, made, inputs)) for g, case, inputs in changed]
    return execute(exam, made, first), found


def replaced(x: torch.Tensor, y: torch.Tensor, new: torch.Tensor, axis: int) -> torch.Tensor:
    """The first with the slots [row, token] of the second."""
    shape = [1] * x.dim()
    shape[0], shape[axis] = len(new), x.shape[axis]
    return torch.where(new.reshape(shape), y, x)


def array(data: Any) -> np.ndarray:
    number = lambda x: float(x["float"]) if isinstance(x, dict) else x  # noqa: E731
    return np.repeat([number(v) for v, _ in data["runs"]], [c for _, c in data["runs"]]).reshape(data["shape"])


def coded(values: np.ndarray) -> dict[str, Any]:
    number = lambda x: {"float": str(x)} if isinstance(x, float) and not math.isfinite(x) else x  # noqa: E731
    return {"shape": list(values.shape), "runs": [[number(v), 1] for v in values.reshape(-1).tolist()]}


def contradicted(step: dict[str, Any], both: Runs) -> bool:
    """Whether numbers show that what a step says of its operator's result is false."""
    first, seconds = both
    try:
        a = run_step(step, first)
        others = [(g, case, run_step(step, values)) for g, case, values in seconds]
    except (RuntimeError, TypeError, ValueError, IndexError, KeyError):
        return True  # it cannot even be run
    fact = step["fact"]
    if not isinstance(fact, list):
        return _one_contradicted(fact, step["shape"], step["dtype"], a, others)
    if isinstance(a, torch.Tensor) or len(a) != len(fact):
        return True
    parts = zip(fact, step["shape"], step["dtype"], strict=True)
    return any(
        _one_contradicted(f, s, d, a[k], [(g, c, b[k]) for g, c, b in others]) for k, (f, s, d) in enumerate(parts)
    )


def _one_contradicted(fact: Any, shape: list[int], dtype: str, a: Any, others: Any) -> bool:
    if not isinstance(a, torch.Tensor) or list(a.shape) != shape:
        return True
    if a.is_floating_point() != ("float" in dtype) or not (a.is_floating_point() or str(a.dtype) == f"torch.{dtype}"):
        return True
    x = a.double().numpy()
    for d, move in enumerate(fact["moves"]):
        if move == "free" and not close(x, np.broadcast_to(x.take([0], d), x.shape)).all():
            return True
    if fact["known"] is not None:
        exact = np.broadcast_to(array(fact["known"]["status"]) == 1, x.shape)
        value = np.broadcast_to(array(fact["known"]["value"]).astype(float), x.shape)
        if not close(x, value, 1e-5)[exact].all():
            return True
    level = np.broadcast_to(array(fact["level"]), x.shape)
    for g, case, b in others:
        image = b.double().numpy()
        for d, move in enumerate(fact["moves"]):
            if isinstance(move, list):
                image = image.take(move[g], d)
        if not close(x, image)[level < case].all():
            return True
    return False


def close(x: np.ndarray, y: np.ndarray, tolerance: float = 1e-8) -> np.ndarray:
    return np.isclose(x, y, rtol=tolerance, atol=tolerance, equal_nan=True)


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
        level = np.broadcast_to(array(fact["level"]), shape)
        for place in chance.sample(list(np.ndindex(*shape)), min(level.size, 6)):
            for new in {-1, int(level[place]) - 1} - {-2}:
                step, lowered = copied(), level.copy()
                lowered[place] = new
                part(step)["level"] = coded(lowered)
                yield "level", step
            step = copied()
            status, value = np.zeros(shape, int), np.zeros(shape)
            status[place], value[place] = 1, 0.12345
            part(step)["known"] = {"status": coded(status), "value": coded(value)}
            yield "known", step
        size = [[*range(s)] for s in shape]
        groups = [m for m in fact["moves"] if isinstance(m, list)]
        for d, s in enumerate(shape):
            turned = [[*p[1:], p[0]] for p in [size[d]] * max(len(g) for g in groups)] if groups else []
            for move in ("free", "still", *(g for g in groups if len(g[0]) == s), *([turned] if turned else [])):
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
    """Whether no tensor stands where one is needed, or a number for a dtype (torch may crash on it: never tried)."""
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
    exam, made = example(name)
    steps, chance, tried = made["steps"], random.Random(0), Counter[str]()
    both = runs(exam, made)
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


@pytest.mark.slow
@pytest.mark.parametrize("name", PROVED)
def test_every_false_alteration_of_every_step_is_refused(name: str) -> None:
    tried = altered_steps(name, 1)
    assert sum(tried.values()) > 300
    assert set(tried) >= {"operator", "lemma", "operand", "known", "move free", "shape", "dtype"}
    assert tried["level"] > 0 or name != "causal"


@pytest.mark.parametrize("name", PROVED)
def test_every_seventh_of_them_is_refused(name: str) -> None:
    tried = altered_steps(name, 7)
    assert sum(tried.values()) > 40


# ---- random corruptions


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
        fact["moves"][d] = chance.choice(["still", "free", *(m for m in groups if len(m[0]) == shape[d])])
    elif kind == "known":
        known = fact["known"] or {
            "status": coded(np.zeros([1] * len(shape), int)),
            "value": coded(np.zeros([1] * len(shape))),
        }
        status, value = (np.broadcast_to(array(known[x]), shape).copy() for x in ("status", "value"))
        place = tuple(chance.randrange(s) for s in shape)
        status[place], value[place] = chance.choice(
            [(1, 0.0), (1, 1.0), (1, -math.inf), (2, -1e30), (0, 0.0), (4, 0.0)]
        )
        fact["known"] = {"status": coded(status), "value": coded(value)}
    else:
        level = np.broadcast_to(array(fact["level"]), shape).copy()
        place = tuple(chance.randrange(s) for s in shape)
        level[place if chance.random() < 0.5 else ...] = chance.choice([-1, max(-1, int(level[place]) - 1)])
        fact["level"] = coded(level)
    return kind, k


KINDS = ("level", "level", "known", "move", "argument", "argument", "operator", "lemma", "shape", "values")
ORIGINS = ("input", "parameter", "buffer")
SENTENCES = sorted(sentences())


def by_node(made: Certificate) -> dict[str, dict[str, Any]]:
    return {s["node"]: s for s in made["steps"]}


def nodes_at(args: Any, path: tuple[int, ...]) -> str:
    for i in path:
        args = args[i]
    return str(args["node"])


def is_false(kind: str, k: int, made: Certificate, exam: Examination, both: Runs) -> bool:
    """Whether running it shows that a corruption made a step false."""
    step = made["steps"][k]
    if kind == "values":
        again = runs(exam, made)
        return any(
            s["fact"] is not None and s["operator"] not in ORIGINS and contradicted(s, again) for s in made["steps"]
        )
    if kind == "lemma":  # its fact is as true as before: the reason is wrong, unless it is the operator's own
        target = step["operator"].split(".")
        own = None if len(target) < 3 else find(getattr(getattr(torch.ops.aten, target[1]), target[2]))
        return step["lemma"] not in (*PLAIN_LEMMAS, own and own.lemma)
    if kind == "operator" and step["operator"] != "getitem" and lacks_an_operand(step):
        return True
    return contradicted(step, both)


PLAIN_LEMMAS = ("same_in_both_runs", "pure_function_of_unmoved")
CORRUPTIBLE = (*PROVED, "causal:gpt2?n_layer=1:eager", "order_blind:bert?num_hidden_layers=1:eager")


def corruptions(count: int, seed: int) -> Counter[str]:
    """Corrupt certificates at random; every corruption that makes a step false must be refused."""
    chance, found, accepted = random.Random(seed), Counter[str](), []
    known = {name: (example(name), runs(*example(name))) for name in CORRUPTIBLE}
    for number in range(count):
        (exam, whole), both = known[CORRUPTIBLE[number % len(CORRUPTIBLE)]]
        made = copy.deepcopy(whole)
        kind, k = corrupted(made, chance)
        if made == whole:
            found["no corruption"] += 1
            continue
        false = is_false(kind, k, made, exam, both)
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


def test_a_hundred_random_corruptions_are_refused_if_they_are_false() -> None:
    found = corruptions(100, 1)
    assert found["false, refused"] > 50


@pytest.mark.slow
def test_a_thousand_false_corruptions_are_refused() -> None:
    found = corruptions(2200, 0)
    assert found["false, refused"] >= 1000, found


# ---- a step may be as an earlier one


def twins(made: Certificate) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two steps with the same operator, arguments but for names, and fact, of operands with the same facts."""
    steps = by_node(made)

    def said(step: dict[str, Any]) -> str:
        named = {"args": step["args"], "kwargs": step["kwargs"]}
        text = json.dumps([step[k] for k in ("operator", "shape", "dtype", "lemma", "fact")] + [named])
        for _, x in nodes(step["args"]):
            other = steps[x["node"]]
            shown = [other["operator"] == "parameter", other["shape"], other["dtype"], other["fact"]]
            text = text.replace(json.dumps(x), json.dumps(shown))
        return text

    seen: dict[str, dict[str, Any]] = {}
    for step in made["steps"]:
        first = seen.setdefault(said(step), step)
        if step["operator"].startswith("aten.linear") and first["args"][0] != step["args"][0]:
            return first, step
    raise AssertionError("no twins")


def test_a_step_that_is_as_another_is_accepted() -> None:
    _, made = example("causal:llama:sdpa")
    first, second = twins(made)
    second["as"] = first["node"]
    made["digest"] = digest(made)
    graph = made["graph"]
    assert recheck(made).steps == len(made["steps"])
    assert made["graph"] == graph  # it is no part of the graph


@pytest.mark.parametrize(
    "change", ["another step", "a later step", "itself", "no step", "its fact", "its operand", "a literal"]
)
def test_a_step_that_is_not_as_another_is_refused(change: str) -> None:
    _, made = example("causal:llama:sdpa")
    first, second = twins(made)
    steps = made["steps"]
    k = steps.index(second)
    other = next(s for s in steps if s["operator"] == "aten.mul.Tensor")
    named = {
        "another step": other["node"],
        "a later step": steps[k + 1]["node"],
        "itself": second["node"],
        "no step": "",
    }
    second["as"] = named.get(change, first["node"])
    if change == "its fact":
        second["fact"]["level"] = coded(np.broadcast_to(array(second["fact"]["level"]), second["shape"]))
    elif change == "its operand":
        read = by_node(made)[second["args"][0]["node"]]
        read["fact"]["level"] = coded(np.full([1] * len(read["shape"]), 2**40))  # true, and less than before
    elif change == "a literal":
        second["kwargs"] = {"bias": None}
    with pytest.raises(CertificateError, match=f"step {k + 1} "):
        recheck({**(made := {**made, "graph": fingerprint_of(made)}), "digest": digest(made)})


def fingerprint_of(made: Certificate) -> str:
    """The fingerprint of a certificate's graph, whether or not the writer knows of "as"."""
    return fingerprint([{k: v for k, v in s.items() if k != "as"} for s in made["steps"]])


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["causal:gpt2?n_layer=1:sdpa", "order_blind:bert?num_hidden_layers=1:eager", "prompt_blind:gpt2?n_layer=1:eager"],
)
def test_every_false_alteration_of_an_architecture_is_refused(name: str) -> None:
    tried = altered_steps(name, 7)
    assert sum(tried.values()) > 250


# ---- whatever is malformed is refused


def test_a_relation_that_is_not_its_laws_is_refused() -> None:
    _, made = example("causal")
    for change in (
        {"law": "order_blind"}, {"code": "OP101"}, {"family": "permutation"}, {"inputs": {"x": None}}, {"inputs": {}},
        {"inputs": {"x": 0}}, {"inputs": {"x": 1, "matmul": None}}, {"weights": "some"}, {"certificate": 2},
        {"output": {**made["output"], "dims": []}}, {"output": {**made["output"], "dims": [[1, -1]]}},
        {"output": {**made["output"], "dims": [[2, 0]]}}, {"output": {**made["output"], "node": "x2"}},
        {"relation": {**made["relation"], "tokens": 4}}, {"steps": made["steps"][:-1]}, {"steps": made["steps"][1:]},
    ):  # fmt: skip
        with pytest.raises(CertificateError, match="expected a"):
            recheck(sealed({**copy.deepcopy(made), **change}))


@pytest.mark.parametrize("operator", ["parameter", "buffer"])
def test_a_stored_value_needs_a_name(operator: str) -> None:
    _, made = example("causal:gpt2:eager")
    for step in [s for s in made["steps"] if s["lemma"] == "same_in_both_runs" and s["operator"].startswith("aten.")]:
        altered = {**made, "steps": [{**s, "operator": operator} if s is step else s for s in made["steps"]]}
        with pytest.raises(CertificateError, match=step["node"]):
            recheck(sealed(altered))


def test_a_step_is_like_another_only_if_its_operands_move_alike() -> None:
    facts = [Fact((3,), "float32", (move,), -np.ones(1, int), -np.ones(1), np.ones(1)) for move in ("still", "free")]
    assert facts[0].content("said") != facts[1].content("said")


def test_generators_of_a_smaller_group_are_refused() -> None:
    _, made = example("order_blind")
    made["relation"]["generators"] = made["relation"]["generators"][:1]
    with pytest.raises(CertificateError, match="relation"):
        recheck(sealed(made))


def test_the_last_word_must_be_what_the_law_asks() -> None:
    _, made = example("causal")
    before = next(s for s in made["steps"] if s["operator"] == "aten.matmul.default")
    made["output"] = {**made["output"], "node": before["node"], "dims": [[2, 0]]}
    with pytest.raises(CertificateError, match="the output"):
        recheck(sealed(made))


def test_a_finite_mask_must_be_assumed() -> None:
    _, made = example("causal:gpt2:eager")
    assert made["assumptions"]
    made["assumptions"] = []
    with pytest.raises(CertificateError, match="softmax_equivariant"):
        recheck(sealed(made))


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=5),
    st.sampled_from(["still", "free", "x", "aten.add.Tensor", "getitem", 10**400, -1, 2**40, 2**62]),
)  # fmt: skip
KEYS = st.sampled_from(["node", "float", "dtype", "other", "device", "shape", "runs", "status", "moves", "level"])
JUNK = st.recursive(
    SCALARS, lambda x: st.one_of(st.lists(x, max_size=3), st.dictionaries(KEYS, x, max_size=3)), max_leaves=6
)


def paths(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    pairs = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in pairs:
        yield from paths(value, (*path, key))


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_only_a_certificate_error_escapes(data: st.DataObject) -> None:
    _, made = example(data.draw(st.sampled_from(PROVED)))
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from([p for p in paths(made) if p]))
        target: Any = made
        for key in path[:-1]:
            target = target[key]
        if isinstance(target, dict) and data.draw(st.booleans()):
            del target[path[-1]]
        else:
            target[path[-1]] = data.draw(JUNK)
    with contextlib.suppress(TypeError, ValueError, AttributeError, KeyError):
        sealed(made)
    with contextlib.suppress(CertificateError):
        assert recheck(made).law == made["law"]


@settings(max_examples=100, deadline=None)
@given(JUNK)
def test_what_is_no_certificate_is_refused(junk: Any) -> None:
    with pytest.raises(CertificateError):
        recheck(junk)


# ---- it stands alone


@pytest.mark.parametrize("file", sorted(Path(str(module.__file__)).parent.glob("*.py")), ids=lambda file: file.stem)
def test_it_imports_nothing_of_this_package_but_its_errors(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    imported = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add(str(node.module))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in ("eval", "exec", "__import__", "compile")
    others = {name for name in imported if name.startswith("orderproof")} - {"orderproof.errors"}
    assert all(name.startswith("orderproof.prover.recheck.") for name in others)
    assert "importlib" not in text


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"{", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[]", "expected a certificate of version 1; .* holds something else"),
        (b'{"certificate": 2}', "expected a certificate of version 1; .* holds something else"),
    ],
)
def test_a_file_without_certificates_is_refused_in_one_line(tmp_path: Path, content: bytes, told: str) -> None:
    file = tmp_path / "c.json"
    file.write_bytes(content)
    with pytest.raises(CertificateError, match=told) as caught:
        read(file)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_no_certificate(tmp_path: Path) -> None:
    with pytest.raises(CertificateError, match="expected a certificate file; .* cannot be read: No such file"):
        read(tmp_path / "c.json")
