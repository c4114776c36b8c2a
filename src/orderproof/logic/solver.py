"""Decide implications between formulas with Z3.

A query asks if premises imply a conclusion, for all integers and all functions. Z3 looks for a counterexample; that
there is none is the proof. *unknown* counts as no proof. Answers are kept by query, so that identical layers cost one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from orderproof.logic.terms import (
    FALSE,
    TRUE,
    And,
    Apply,
    AtMostZero,
    Conditional,
    EqualsZero,
    Expression,
    FloorDivision,
    Formula,
    Holds,
    Not,
    Or,
    Product,
    Term,
    Variable,
    as_term,
    at_most,
    conjunction,
    implication,
    negation,
)

TIME_LIMIT = 2000  # of one query [ms]


@dataclass(frozen=True)
class _Counterexample:
    """A model of Z3, and the products whose bounds it fulfils."""

    model: Any
    products: frozenset[Product]


class Solver:
    """Decides implications; counts the queries that reached Z3."""

    def __init__(self) -> None:
        self.queries = 0
        self._answers: dict[tuple[Formula, Formula], bool] = {}
        self._translated: dict[Expression, Any] = {}
        self._z3: Any = None

    def implies(self, premises: Iterable[Formula], conclusion: Formula) -> bool:
        """True if the premises imply the conclusion; False if they do not, or if it is not known."""
        return any(True for _ in self.sufficient([(TRUE, premises)], conclusion))

    def sufficient(
        self, candidates: Iterable[tuple[Formula, Iterable[Formula]]], conclusion: Formula
    ) -> Iterator[Formula]:
        """The formulas each of which is known to imply a conclusion together with its premises.

        A counterexample to one of them refutes all others that it fulfils.
        """
        counterexamples: list[_Counterexample] = []
        for candidate, premises in candidates:
            premise = conjunction(candidate, *premises)
            operands = premise.parts[0] if isinstance(premise, And) else (premise,)
            if conclusion is TRUE or conclusion in operands or premise is FALSE:
                yield candidate
                continue
            key = (premise, conclusion)
            if key not in self._answers:
                self._answers[key] = not self._is_refuted(premise, counterexamples) and self._ask(
                    conjunction(premise, negation(conclusion)), counterexamples
                )
            if self._answers[key]:
                yield candidate

    def _is_refuted(self, premise: Formula, counterexamples: Iterable[_Counterexample]) -> bool:
        import z3

        return any(
            known.products.issuperset(premise.products)
            and z3.is_true(known.model.eval(self._translate(premise), model_completion=True))
            for known in counterexamples
        )

    def _ask(self, formula: Formula, counterexamples: list[_Counterexample]) -> bool:
        """True if nothing fulfils a formula; otherwise an example is added, if there is one."""
        import z3

        # A query that is interrupted leaves its formula behind: the solver is kept only when it is empty again.
        solver, self._z3 = self._z3, None
        if solver is None:
            solver = z3.SolverFor("QF_UFLIA")
            solver.set("timeout", TIME_LIMIT)
        self.queries += 1
        solver.push()
        for one in (formula, *(bound for product in formula.products for bound in _product_bounds(product))):
            z3.Z3_solver_assert(solver.ctx.ref(), solver.solver, self._translate(one).as_ast())
        answer = solver.check()
        if answer == z3.sat:
            counterexamples.append(_Counterexample(solver.model(), frozenset(formula.products)))
        solver.pop()
        self._z3 = solver
        return bool(answer == z3.unsat)

    def _translate(self, e: Expression) -> Any:
        if e not in self._translated:
            self._translated[e] = self._translation(e)
        return self._translated[e]

    def _translation(self, e: Expression) -> Any:
        import z3

        to = self._translate
        match e:
            case Term():
                summands = [to(a) if f == 1 else _joined(z3.Z3_mk_mul, [_number(f), to(a)]) for a, f in e.summands]
                constant = [_number(e.constant)] if e.constant or not summands else []
                return _joined(z3.Z3_mk_add, [*constant, *summands])
            case Variable() | Product():
                return z3.Int(e.order[1])
            case Apply(parts=(name, arguments)):
                return _applied(_function(name, len(arguments), boolean=False), [*map(to, arguments)])
            case Holds(parts=(name, arguments)):
                return _applied(_function(name, len(arguments), boolean=True), [*map(to, arguments)])
            case Conditional(parts=(condition, first, second)):
                return _made(z3.Z3_mk_ite, to(condition), to(first), to(second))
            case FloorDivision(parts=(term, divisor)):
                return _made(z3.Z3_mk_div, to(term), _number(divisor))  # rounded down for a positive divisor
            case AtMostZero(parts=(term,)):
                return _made(z3.Z3_mk_le, to(term), _number(0))
            case EqualsZero(parts=(term,)):
                return _made(z3.Z3_mk_eq, to(term), _number(0))
            case Not(parts=(inner,)):
                return _made(z3.Z3_mk_not, to(inner))
            case And(parts=(operands,)):
                return _joined(z3.Z3_mk_and, [*map(to, operands)])
            case Or(parts=(operands,)):
                return _joined(z3.Z3_mk_or, [*map(to, operands)])
        return z3.BoolVal(e is TRUE)


# Expressions are made with Z3's C functions: the operators of its Python objects compare the sorts of their operands,
# which takes 5 to 25 times as long.
def _made(make: Callable[..., Any], *operands: Any) -> Any:
    """The result of a C function with a fixed number of operands."""
    context = operands[0].ctx
    return _expression(make(context.ref(), *(x.as_ast() for x in operands)), context)


def _joined(make: Callable[..., Any], operands: Sequence[Any]) -> Any:
    """The result of a C function with any number of operands; the operand if it is only one."""
    if len(operands) == 1:
        return operands[0]
    context = operands[0].ctx
    return _expression(make(context.ref(), len(operands), _array(operands)), context)


def _applied(function: Any, arguments: Sequence[Any]) -> Any:
    import z3

    context = function.ctx
    return _expression(z3.Z3_mk_app(context.ref(), function.ast, len(arguments), _array(arguments)), context)


def _array(expressions: Sequence[Any]) -> Any:
    import z3

    return (z3.Ast * len(expressions))(*(x.as_ast() for x in expressions))


def _expression(ast: Any, context: Any) -> Any:
    import z3

    return z3.ExprRef(ast, context)


@cache
def _number(value: int) -> Any:
    import z3

    return z3.IntVal(value)


@cache
def _product_bounds(product: Product) -> tuple[Formula, ...]:
    """The bounds of every product of integers, none of which is zero: it is at least as large as each factor."""
    factors = [as_term(factor) for factor in product.parts[0]]
    found: list[Formula] = []
    for signs in itertools.product((1, -1), repeat=len(factors)):
        sizes = [factor * sign for factor, sign in zip(factors, signs, strict=True)]
        size = as_term(product) * math.prod(signs)
        known = conjunction(*(at_most(1, one) for one in sizes))
        found += (implication(known, at_most(one, size)) for one in sizes)
    return tuple(found)


@cache
def _function(name: str, arity: int, *, boolean: bool) -> Any:
    import z3

    result = z3.BoolSort() if boolean else z3.IntSort()
    return z3.Function(name, *[z3.IntSort()] * arity, result)
