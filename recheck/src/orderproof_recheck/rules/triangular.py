"""Triangular systems: an unknown reads its own row, and those that are solved before it."""

from __future__ import annotations

from orderproof_recheck.facts import Predicates
from orderproof_recheck.index_maps import read
from orderproof_recheck.logic.formulas import FALSE, Formula, at_most, every, less, opposite, some
from orderproof_recheck.logic.notation import require
from orderproof_recheck.logic.terms import Term, integer
from orderproof_recheck.rules.movement import single, size_of
from orderproof_recheck.steps import Derived, Step


def solve_triangular(step: Step) -> list[Derived]:
    """A X = B, or X A = B."""
    system, right = step.fact(0), step.fact(1)
    upper, left = step.argument(2, "upper"), step.argument(3, "left", True)
    unit = step.argument(4, "unitriangular", False)
    rank = len(step.shape)
    require(all(type(x) is bool for x in (upper, left, unit)), "an option is no boolean")
    require(rank > 1 and len(system.axes) == len(right.axes) == rank, "its operands have other dimensions")
    solved, other = (rank - 2, rank - 1) if left else (rank - 1, rank - 2)
    size = size_of(right, solved)
    square = all(step.equal(size_of(system, d), size) for d in (rank - 2, rank - 1))
    require(square and step.equal(step.shape[solved], size), "its system has another size")
    before_row, (row, column) = single(step, solved), (_further(step, size) for _ in range(2))
    batch = [step.digits(d) for d in range(rank - 2)]
    pair = [(row,), (column,)] if left else [(column,), (row,)]
    of_right = [*batch, (), ()]
    of_right[solved], of_right[other] = (row,), step.digits(other)
    a, b = read(system, [*batch, *pair], step.equal), read(right, of_right, step.equal)
    first_to_last = upper != left
    at, own = row[1], column[1]
    earlier = at_most(at, before_row) if first_to_last else at_most(before_row, at)
    compare = less if unit else at_most
    within = every(earlier, compare(own, at) if first_to_last else compare(at, own))
    same = every(_if(within, a.same), _if(earlier, b.same))
    ordinary = every(_if(within, a.ordinary), _if(earlier, b.ordinary)) if unit else FALSE
    return [Derived(Predicates(same=same, ordinary=ordinary))]


def _further(step: Step, size: Term) -> tuple[Term, Term]:
    """A further index of this size, as a digit."""
    if size is integer(1):
        return size, integer(0)
    ((extent, place),) = step.further((size,))
    return extent, place


def _if(premise: Formula, conclusion: Formula) -> Formula:
    return some(opposite(premise), conclusion)


TRIANGULAR = {"linalg_solve_triangular": solve_triangular}
