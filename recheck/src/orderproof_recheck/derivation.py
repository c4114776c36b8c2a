"""A certificate of a theorem as a derivation that a person can follow line by line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from orderproof_recheck.logic.notation import text
from orderproof_recheck.permuted.derivation import moved_lines
from orderproof_recheck.statements import find_statement, for_inputs
from orderproof_recheck.steps_text import fact_lines, need_text, step_line

_UNIFORM_WORDS = {"everything_real": "every token is real", "one_document": "each row is one document"}


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
                if statement.permuted:
                    yield from moved_lines(recording)
                    yield from _depth_lines(recording["depth"])
                    continue
                if not recording["steps"]:
                    yield "  cannot be: its answers contradict the derivation"
                    yield from _step_lines(recording["asked"])
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
