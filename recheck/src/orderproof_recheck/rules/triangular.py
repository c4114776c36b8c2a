"""Triangular systems, in which an unknown reads those that are solved before it; inverses of triangular matrices."""

from __future__ import annotations

from orderproof_recheck.facts import Cases, Fact, Predicates
from orderproof_recheck.index_maps import read
from orderproof_recheck.logic.formulas import FALSE, Formula, at_most, equal, every, less, opposite, some
from orderproof_recheck.logic.notation import require
from orderproof_recheck.logic.terms import Term, integer
from orderproof_recheck.operator import Operator, Permuted, operators
from orderproof_recheck.rules.movement import broadcast_element, single, size_of
from orderproof_recheck.rules.numbers import COPIES
from orderproof_recheck.setting import Obligation
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
    ordinary = every(_if(within, a.ordinary), _if(earlier, b.ordinary)) if unit or system.unit_diagonal else FALSE
    return [Derived(Predicates(same=same, ordinary=ordinary))]


def _further(step: Step, size: Term) -> tuple[Term, Term]:
    """A further index of this size, as a digit."""
    if size is integer(1):
        return size, integer(0)
    ((extent, place),) = step.further((size,))
    return extent, place


def _if(premise: Formula, conclusion: Formula) -> Formula:
    return some(opposite(premise), conclusion)


def has_unit_diagonal(step: Step) -> bool:
    """True for the identity plus, or less, a matrix with zeros on the diagonal; and for a copy of such a matrix."""
    first, rank = (step.args[0] if step.args else None), len(step.shape)
    if step.name in COPIES and isinstance(first, Fact):
        return first.unit_diagonal
    if step.name not in ("add", "sub") or step.kwargs or len(step.args) != 2 or rank < 2:
        return False
    if not all(isinstance(x, Fact) for x in step.args) or any(len(step.digits(d)) > 1 for d in (rank - 2, rank - 1)):
        return False
    on_diagonal = equal(single(step, rank - 2), single(step, rank - 1))
    for one, other in [step.args, step.args[::-1]][: 1 if step.name == "sub" else 2]:
        if isinstance(one.value, Cases) and any(number == 1 for _, number in one.value.pairs):
            identity = broadcast_element(step, one)
            assert isinstance(identity.value, Cases)
            ones = every(identity.value.where(lambda v: v == 1), broadcast_element(step, other).zero)
            if step.setting.discharge(Obligation(step.sizes(0), on_diagonal, ones)):
                return True
    return False


def inverse(step: Step) -> list[Derived]:
    """The inverse of each matrix, and if there is one."""
    fact = step.fact(0)
    rank = len(fact.axes)
    size = size_of(fact, rank - 1)
    require(rank >= 2 and step.equal(size_of(fact, rank - 2), size), "a matrix that is not square")
    fits = len(step.shape) == rank and all(step.equal(step.shape[d], size_of(fact, d)) for d in range(rank))
    require(fits and len(step.shapes) == 2 and len(step.shapes[1]) == rank - 2, "its results have other shapes")
    row, column = (_further(step, size) for _ in range(2))
    both = [read(fact, [*(step.digits(d, k) for d in range(rank - 2)), (row,), (column,)], step.equal) for k in (0, 1)]
    info = Derived(Predicates(same=both[1].same))
    a, (p, j) = both[0], (row[1], column[1])
    i, k = single(step, rank - 2), single(step, rank - 1)
    for before, at, own, first, last in ((less, p, j, i, k), (_after, p, j, i, k)):
        triangular = step.setting.discharge(Obligation(step.sizes(0), before(at, own), a.zero))
        if fact.unit_diagonal and triangular:
            within = every(opposite(before(i, p)), opposite(before(p, j)))
            ordinary, outside = _if(within, a.ordinary), before(first, last)
            return [Derived(Predicates(_if(within, a.same), every(outside, ordinary), ordinary=ordinary)), info]
    return [Derived(Predicates(same=a.same, ordinary=FALSE)), info]


def matrix_function(step: Step) -> list[Derived]:
    """Numbers, vectors or matrices that are computed from whole square matrices."""
    fact = step.fact(0)
    batch, size = len(fact.axes) - 2, size_of(fact, len(fact.axes) - 1)
    require(batch >= 0 and step.equal(size_of(fact, batch), size), "a matrix that is not square")
    found = []
    for k, shape in enumerate(step.shapes):
        whole = [*(size_of(fact, d) for d in range(batch)), *[size] * (len(shape) - batch)]
        fits = batch <= len(shape) <= batch + 2 and all(map(step.equal, shape, whole))
        require(fits, "its results have other shapes")
        rows = [step.further(axes) for axes in fact.axes[batch:]]
        element = read(fact, [*(step.digits(d, k) for d in range(batch)), *rows], step.equal)
        found.append(Derived(Predicates(element.same, ordinary=FALSE)))
    return found


def _solved(step: Step) -> list[int]:
    """The dimension along which a triangular system is solved."""
    return [len(step.shape) - 2 if step.argument(3, "left", True) else len(step.shape) - 1]


def _after(first: Term, second: Term) -> Formula:
    return less(second, first)


TRIANGULAR: dict[str, Operator] = {
    "linalg_solve_triangular": Operator(solve_triangular, Permuted(by_index=_solved)),
    "linalg_inv_ex": Operator(inverse),
    **operators(
        ("linalg_cholesky_ex", "_linalg_slogdet", "_linalg_det", "linalg_matrix_exp"), matrix_function
    ),
}  # fmt: skip
