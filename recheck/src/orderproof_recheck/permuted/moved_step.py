"""One step of a theorem about permuted tokens: its claim follows from the facts of the operands.

Let the element x of the result be computed from elements t(x, j) of the operands, for all further indices j. In run 2,
consider the element s(x) of the result, where s is what the claim says. It is computed from t(s(x), j). The claim
follows if for all x and j the fact of each operand says that its element t(x, j) of run 1 is its element t(s(x), j) of
run 2. This is an equation of terms. Of a sum over all tokens, j may be replaced by p(j). A condition on indices, such
as being one of the first three, must be as true of x as of s(x).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from orderproof_recheck.facts import Axes, Cases, Value, axis, index
from orderproof_recheck.logic.formulas import (
    FALSE,
    TRUE,
    Every,
    Formula,
    Holds,
    Not,
    Some,
    at_most,
    equal,
    every,
    implies,
    less,
    some,
)
from orderproof_recheck.logic.notation import require
from orderproof_recheck.logic.replacement import Replacement
from orderproof_recheck.logic.terms import Apply, Atom, Expression, Term, of_atom
from orderproof_recheck.operator import Permuted
from orderproof_recheck.permuted.moved_fact import (
    FREE,
    PERMUTATION,
    STILL,
    Motion,
    Moved,
    MovedFact,
    moved_index,
    second_index,
)
from orderproof_recheck.setting import Obligation
from orderproof_recheck.statements import TOKENS
from orderproof_recheck.steps import Derived, Step

Operands = Mapping[str, MovedFact]  # by the name that marks what is read of them


@dataclass(frozen=True)
class _Runs:
    """The indices of run 2 for those of run 1, in one result of a step."""

    step: Step
    sizes: Axes
    second: Replacement
    ranges: Formula  # of the new variables

    def meet(self, given: Formula, shown: Formula, why: str) -> None:
        """Discharge an obligation about all indices. Raises `CertificateError`."""
        if shown is not TRUE and given is not FALSE:
            used = every(given, self.ranges, *_permuted_tokens(given, shown))
            self.step.meet(Obligation(self.sizes, used, shown), why)


def check_claims(
    step: Step, derived: Sequence[Derived], claims: Sequence[MovedFact], operands: Operands, permuted: Permuted
) -> None:
    """Raise `CertificateError` unless the claims follow from the elements that the rule of the step reads."""
    require(len(derived) == len(claims) == len(step.shapes), "it has another number of results")
    for number, (one, claim) in enumerate(zip(derived, claims, strict=True)):
        if claim.where is not FALSE:
            _check_claim(step, one, claim, operands, permuted, number)


def _check_claim(
    step: Step, derived: Derived, claim: MovedFact, operands: Operands, permuted: Permuted, number: int
) -> None:
    first = 0
    for dim, axes in enumerate(claim.axes):
        own = claim.motions[first : first + len(axes)]
        first += len(axes)
        if dim in set(permuted.by_index(step)):
            require(all(motion is STILL for motion in own), "an axis moves along which the index counts")
    read = derived.predicates.same
    in_any_order = number in permuted.in_any_order and permuted.is_in_any_order(step)
    runs = _runs(step, number, claim, read, operands, in_any_order=in_any_order)
    for condition in dict.fromkeys(_conditions(read, operands)):
        _check_invariant(runs, claim.where, condition)
    runs.meet(claim.where, _agree(read, operands, runs.second), "it reads other elements in run 2")
    if derived.value is not None:
        _check_value(runs, claim.where, derived.value)


def _runs(step: Step, number: int, claim: MovedFact, read: Formula, operands: Operands, *, in_any_order: bool) -> _Runs:
    sizes = step.sizes(number)
    motions: list[Motion] = [*claim.motions, *[STILL] * (len(sizes) - len(claim.motions))]
    first = len(sizes) - len(step.bound)
    for k in range(first, len(sizes)) if in_any_order else ():
        motions[k] = _order_of(k, sizes[k], read, operands, step)
        if isinstance(motions[k], Moved) and sizes[k] not in step.reordered:
            step.reordered.append(sizes[k])
    second: dict[Atom, Term] = {axis(k): second_index(motion, size, index(k), k) for k, (motion, size) in
              enumerate(zip(motions, sizes, strict=True)) if motion is not STILL}  # fmt: skip
    free = [second_index(FREE, sizes[k], index(k), k) for k, motion in enumerate(motions) if motion is FREE]
    bounds = [sizes[k] for k, motion in enumerate(motions) if motion is FREE]
    ranges = every(*(f for y, n in zip(free, bounds, strict=True) for f in (at_most(0, y), less(y, n))))
    return _Runs(step, sizes, Replacement(second), ranges)


def _order_of(k: int, size: Term, read: Formula, operands: Operands, step: Step) -> Motion:
    """The order in which run 2 takes the elements of a row: that of the operand that is read at this very index."""
    for found in _reads(read, operands):
        fact = operands[found.fields[0]]
        kept = [i for i, motion in enumerate(fact.motions) if motion is not FREE]
        for i, term in zip(kept, found.fields[1], strict=True):
            motion = fact.motions[i]
            if term is index(k) and isinstance(motion, Moved) and step.equal(size, fact.sizes[i]):
                return motion
    return STILL


def _agree(read: Formula, operands: Operands, second: Replacement) -> Formula:
    """The formula with, for each element that is read, that it is the one of run 2 that is read."""
    if isinstance(read, Every | Some):
        join = every if isinstance(read, Every) else some
        return join(*(_agree(part, operands, second) for part in read.fields[0]))
    if not isinstance(read, Holds) or read.fields[0] not in operands:
        return read
    fact = operands[read.fields[0]]
    kept = [k for k, motion in enumerate(fact.motions) if motion is not FREE]
    return every(
        *(
            equal(second.term(term), moved_index(fact.motions[k], fact.sizes[k], term))
            for k, term in zip(kept, read.fields[1], strict=True)
        )
    )


def _reads(formula: Formula, operands: Operands) -> Iterator[Holds]:
    if isinstance(formula, Holds) and formula.fields[0] in operands:
        yield formula
    elif isinstance(formula, Every | Some):
        for part in formula.fields[0]:
            yield from _reads(part, operands)


def _conditions(formula: Formula, operands: Operands) -> Iterator[Formula]:
    """The conditions on indices among what a rule reads. Raises `CertificateError` if one asks what is read."""
    if isinstance(formula, Every | Some):
        for part in formula.fields[0]:
            yield from _conditions(part, operands)
    elif not (isinstance(formula, Holds) and formula.fields[0] in operands):
        plain = formula.fields[0] if isinstance(formula, Not) else formula
        require(not (isinstance(plain, Holds) and plain.fields[0] in operands), "a rule asks for what differs")
        require(not formula.functions & operands.keys(), "a rule asks for what is read")
        yield formula


def _check_invariant(runs: _Runs, where: Formula, condition: Formula) -> None:
    after = runs.second.formula(condition)
    if after is not condition:
        why = "the index of an element decides what it is"
        runs.meet(every(where, condition), after, why)
        runs.meet(every(where, after), condition, why)


def _check_value(runs: _Runs, where: Formula, value: Value) -> None:
    """A value is the same at the other index."""
    why = "its value is another one at the index in run 2"
    if isinstance(value, Term):
        runs.meet(where, equal(runs.second.term(value), value), why)
        return
    conditions = [c for c, _ in value.pairs] if isinstance(value, Cases) else [value]
    for condition in conditions:
        _check_invariant(runs, where, condition)


def check_value(step: Step, claim: MovedFact, value: Value) -> None:
    """Raise `CertificateError` unless a constant of this value is the same at the indices that the claim says.

    Distinct tokens are distinct after a permutation: the value of `x0 == x1` is that of `p(x0) == p(x1)`.
    """
    runs = _runs(step, 0, claim, TRUE, {}, in_any_order=False)
    moved = [(m, index(k), runs.second.term(index(k))) for k, m in enumerate(claim.motions) if isinstance(m, Moved)]
    pairs = [(one, other) for one, other in combinations(moved, 2) if one[0] == other[0]]  # after as many others
    distinct = every(*(implies(equal(p, q), equal(x, y)) for (_, x, p), (_, y, q) in pairs))
    _check_value(runs, every(claim.where, distinct), value)


def _permuted_tokens(*formulas: Formula) -> Iterator[Formula]:
    """A token that is permuted is a token."""
    for found in dict.fromkeys(a for f in formulas for a in _applied(f)):
        (token,) = found.fields[1]
        place = of_atom(found)
        is_token = every(at_most(0, token), less(token, TOKENS))
        yield implies(is_token, every(at_most(0, place), less(place, TOKENS)))


def _applied(expression: Expression) -> Iterator[Apply]:
    for part in expression.inner:
        yield from _applied(part)
    if isinstance(expression, Apply) and expression.fields[0] == PERMUTATION:
        yield expression
