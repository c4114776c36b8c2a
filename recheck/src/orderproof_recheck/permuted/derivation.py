"""The derivation of a theorem about permuted tokens, line by line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from orderproof_recheck.logic.notation import read_formula, read_term, term_text, text
from orderproof_recheck.steps_text import need_text, step_line


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
        yield "it is true everywhere, or false everywhere, by its value"
    for size in step["reordered"]:
        yield f"each row has {term_text(read_term(size))} elements, which run 2 takes in the order of p"
