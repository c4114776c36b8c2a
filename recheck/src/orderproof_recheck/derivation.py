"""A certificate of a theorem as a derivation that a person can follow line by line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from orderproof_recheck.facts import read_number
from orderproof_recheck.logic.notation import read_formula, read_term, term_text, text
from orderproof_recheck.statements import find_statement, for_inputs

_UNIFORM_WORDS = {
    **dict.fromkeys(("everything_real", "everything_real_on_the_left"), "every token is real"),
    "one_document": "each row is one document",
}


def derivation_lines(certificate: Mapping[str, Any]) -> Iterator[str]:
    """The lines of the derivation of an accepted certificate."""
    for call in certificate["calls"]:
        shared = tuple(call["shared"])
        statement = find_statement(certificate["law"], certificate["code"], shared)
        for one in call["ranges"]:
            end = "on" if one["greatest_length"] is None else f"to {one['greatest_length']}"
            inputs = " and ".join(shared) or "tokens only"
            roles = {role for recording in one["recordings"] for _, role in recording["inputs"]}
            lengths = f"from {one['least_length']} tokens {end}"
            yield f"call with {inputs}, {'with inputs of the recorded size' if 'rows' in roles else lengths}"
            for recording in one["recordings"]:
                answers = ", ".join(f"{node} is {str(answer).lower()}" for node, answer in recording["questions"])
                yield f"recording in which {answers}" if answers else "the recording"
                if not recording["steps"]:
                    yield "  cannot be: its answers contradict the derivation"
                    yield from _step_lines(recording["asked"])
                    continue
                if statement.permuted:
                    yield from moved_lines(recording)
                    yield from _depth_lines(recording["depth"])
                    continue
                uniform = recording["uniform"]
                yield from ([f"  {_UNIFORM_WORDS[uniform]}, by an answer"] if uniform else [])
                given, shown = (for_inputs(f, uniform) for f in (statement.given, statement.shown))
                yield f"  given: the inputs of both runs agree in row x0 at token x1 where {text(given)}"
                yield f"  to show: the outputs agree where {text(shown)}"
                yield from _step_lines(recording["steps"])
                yield f"  so {recording['output']['node']} agrees where the law says"
                yield from _depth_lines(recording["depth"])


def _step_lines(steps: list[Mapping[str, Any]]) -> Iterator[str]:
    for number, step in enumerate(steps, start=1):
        if step["operator"] == "parameter":
            continue  # the same in both runs
        facts = step["fact"] if isinstance(step["fact"], list) else [step["fact"]]
        for fact in facts:
            yield step_line(number, step, fact)
            yield from (f"        {line}" for line in fact_lines(fact))
        indices = max(sum(map(len, fact["axes"])) for fact in facts)
        yield from (f"        because {need_text(need, indices)}" for need in step["needs"])


def _depth_lines(depth: Mapping[str, Any] | None) -> Iterator[str]:
    if depth is None:
        return
    layers = depth["layers"]
    yield f"  for every number of layers: {len(layers)} layers exchange one tensor each"
    yield f"    invariant: the fact about {layers[-1]['result']}"
    for number, layer in enumerate(layers, start=1):
        how = "as above" if layer["steps"] is None else f"{len(layer['steps'])} steps derived again"
        yield f"    layer {number}, from {layer['entry']} to {layer['result']}: keeps the invariant ({how})"


def moved_lines(recording: Mapping[str, Any]) -> Iterator[str]:
    """The lines of the derivation of one recording."""
    entries = {node: (constants, causal) for node, constants, causal in recording["entries"]}
    yield "  given: token i of run 1 is token p(i) of run 2, for any permutation p of the tokens"
    yield "  to show: the output of run 2 is that of run 1 with p applied to the indices of tokens"
    for number, step in enumerate(recording["steps"], start=1):
        if step["operator"] == "parameter":
            continue  # the same in both runs
        facts = step["fact"] if isinstance(step["fact"], list) else [step["fact"]]
        for fact in facts:
            yield step_line(number, step, fact)
            yield f"        {_fact_text(fact)}"
        yield from (f"        {line}" for line in _reasons(step, recording, entries))
        indices = max(sum(map(len, fact["axes"])) for fact in facts)
        yield from (f"        because {need_text(need, indices)}" for need in step["needs"])
    output = recording["output"]
    dims = ", ".join(map(str, output["moves"]))
    end = f"moves with the tokens along dimension {dims}" if dims else "is the same in both runs"
    yield f"  so {output['node']} {end}"


def _fact_text(fact: Mapping[str, Any]) -> str:
    if fact.get("where") is False:
        return "nothing is claimed"
    first = ", ".join(f"x{k}" for k in range(len(fact["motions"])))
    sizes = [size for axes in fact["axes"] for size in axes]
    second = ", ".join(_index(k, *pair) for k, pair in enumerate(zip(fact["motions"], sizes, strict=True)))
    where = f" where {text(read_formula(fact['where']))}" if "where" in fact else ""
    if not fact["motions"]:
        return f"is the same number in both runs{where}"
    return f"element [{first}] of run 1 is element [{second}] of run 2{where}"


def _index(k: int, motion: Any, size: Any) -> str:
    match motion:
        case "free":
            return "any"
        case ["moved", before]:
            moved = f"p(x{k} - {before}) + {before}" if before else f"p(x{k})"
            return moved if size == "tokens" else f"{moved} if that is a token, else x{k}"
    return f"x{k}"


def _reasons(step: Mapping[str, Any], recording: Mapping[str, Any], entries: Mapping[str, Any]) -> Iterator[str]:
    """The reasons for a step besides its obligations."""
    if step["node"] in entries:
        constants, causal = entries[step["node"]]
        yield f"order is taken out here: {', '.join([*constants, *['the causal mask'] * causal])}"
    if step["node"] in recording["everywhere"]:
        yield "by its value at each index"
    for size in step["reordered"]:
        yield f"each row has {term_text(read_term(size))} elements, which run 2 takes in the order of p"


def step_line(number: int, step: Mapping[str, Any], fact: Mapping[str, Any]) -> str:
    """A step with the axes of a result: `node [axes] = operator(arguments)`."""
    axes = ", ".join(" * ".join(term_text(read_term(t)) for t in dim) or "1" for dim in fact["axes"])
    return f"  {number:3} {step['node']} [{axes}] = {step['operator']}({', '.join(map(_argument, step['args']))})"


def _argument(argument: Any) -> str:
    match argument:
        case {"node": name}:
            return str(name)
        case {"size": term}:
            return term_text(read_term(term))
        case {"dtype": name} | {"other": name} | {"float": name}:
            return str(name)
        case list():
            return f"[{', '.join(map(_argument, argument))}]"
    return str(argument)


def fact_lines(fact: Mapping[str, Any]) -> Iterator[str]:
    """The content of a fact about an element, in lines."""
    if "value" not in fact:
        for name, default in (("same", True), ("zero", False), ("hidden", False), ("ordinary", True), ("low", False)):
            formula = fact.get(name, default)
            if name == "same" or formula != default:
                yield f"{name} {_where(formula)}"
        return
    ((kind, content),) = fact["value"].items()
    if kind == "integer":
        yield f"is {term_text(read_term(content))}"
    elif kind == "boolean":
        yield f"is true {_where(content)}"
    else:
        for condition, number in content:
            yield f"is {read_number(number):g} {_where(condition)}"


def _where(formula: Any) -> str:
    return (
        "everywhere" if formula is True else "nowhere" if formula is False else f"where {text(read_formula(formula))}"
    )


def need_text(need: Any, indices: int) -> str:
    """An obligation; the indices after those of the result are further ones."""
    sizes, given, shown = need
    formula = read_formula(shown)
    names = {str(v.fields[0]) for v in formula.variables}
    further = [f"x{k} < {term_text(read_term(s))}" for k, s in enumerate(sizes) if k >= indices and f"x{k}" in names]
    quantified = f"for all {', '.join(further)}: {text(formula)}" if further else text(formula)
    return quantified if given is True else f"{text(read_formula(given))} implies {quantified}"
