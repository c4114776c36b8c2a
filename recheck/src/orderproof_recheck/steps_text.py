"""Steps, facts and obligations of a certificate as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from orderproof_recheck.facts import read_number
from orderproof_recheck.logic.notation import read_formula, read_term, term_text, text


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
