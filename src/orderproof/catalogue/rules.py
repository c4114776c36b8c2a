"""The rules of the prover: the functions decorated with `@rule` in the files of `diagnosis/rules`."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from orderproof.catalogue.source import read_modules
from orderproof.diagnosis.lemma_summary import lemma_summaries

POINTWISE = "<pointwise>"  # stands, in a rule, for all operators that torch tags as pointwise


class RuleEntry(NamedTuple):
    """A lemma, the operators of one rule that applies it, and the docstring of its file."""

    lemma: str
    operators: tuple[str, ...]
    docstring: str


@cache
def rules() -> tuple[RuleEntry, ...]:
    """All rules, by the names of their files."""
    return tuple(
        RuleEntry(lemma, tuple(operators), module.docstring)
        for module in read_modules("orderproof.diagnosis.rules")
        for _, (lemma, *operators) in module.decorated("rule")
    )


def summaries() -> dict[str, str]:
    """Each lemma in one sentence."""
    return lemma_summaries((rule.lemma, rule.docstring) for rule in rules())


def rule_of(operator: str, *, pointwise: bool) -> RuleEntry | None:
    """The rule of an operator, such as aten.add.Tensor: by its full name, its packet or its tag."""
    packet = ".".join(operator.split(".")[:2]) if operator.startswith("aten.") else operator
    tag = _full_name(POINTWISE) if pointwise else operator
    return next((_by_operator()[name] for name in (operator, packet, tag) if name in _by_operator()), None)


@cache
def _by_operator() -> dict[str, RuleEntry]:
    return {_full_name(name): rule for rule in rules() for name in rule.operators}


def _full_name(name: str) -> str:
    return name if name.startswith("transformers.") else f"aten.{name}"
