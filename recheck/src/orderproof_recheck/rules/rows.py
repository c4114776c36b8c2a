"""Numbers that are computed from whole rows: sums, statistics, extremes, sorting, Fourier transforms.

Such a number is the same in both runs if every element that it reads is; a sum also where those that differ are zero.
"""

from __future__ import annotations

from collections.abc import Sequence

from orderproof_recheck.facts import INTEGER_LIMITS, MAX_CASES, Fact, Predicates
from orderproof_recheck.index_maps import Digits, read
from orderproof_recheck.logic.formulas import (
    FALSE,
    TRUE,
    AtMostZero,
    Formula,
    at_most,
    equal,
    every,
    holds,
    if_else,
    opposite,
    some,
)
from orderproof_recheck.logic.notation import require
from orderproof_recheck.logic.terms import If, Term, floor_of, integer, variable
from orderproof_recheck.operator import READS, Operator, Permuted, along, operators
from orderproof_recheck.rules.extremes import extreme_values, sorted_rows
from orderproof_recheck.rules.movement import ONE, size_of
from orderproof_recheck.rules.pointwise import pointwise
from orderproof_recheck.rules.softmax import largest_score
from orderproof_recheck.setting import Count
from orderproof_recheck.steps import Derived, Step

FOURIER = (
    "fft_fft", "fft_ifft", "fft_rfft", "fft_irfft", "fft_fft2", "fft_ifft2", "fft_fftn", "fft_ifftn", "fft_rfftn",
    "fft_irfftn",
)  # fmt: skip


def row_dims(step: Step, given: object, rank: int) -> list[int]:
    """The dimensions of an argument that is missing, a number or a list."""
    if given is None or given == []:
        return list(range(rank))
    return [step.dim(d, rank) for d in (given if isinstance(given, list) else [given])]


def over_rows(step: Step, fact: Fact, dims: Sequence[int], result: int = 0) -> tuple[Fact, bool]:
    """An element of a row of the operand, at a further index along these dimensions; True if they are kept."""
    rank, shape = len(fact.axes), step.shapes[result]
    keep = len(shape) == rank
    require(keep or len(shape) == rank - len(dims), "the result has another number of dimensions")
    places: list[Digits] = []
    place = 0
    for d in range(rank):
        if d in dims:
            places.append(step.further(fact.axes[d]))
            place += keep
        else:
            places.append(step.digits(place, result))
            place += 1
    return read(fact, places, step.equal), keep


def reduce(step: Step) -> list[Derived]:
    """A number for each row along some dimensions."""
    fact = step.fact(0)
    place = 2 if step.name in ("linalg_vector_norm", "norm") else 1
    given = step.argument(place, "dim")
    dims = row_dims(step, None if isinstance(given, bool) else given, len(fact.axes))
    if step.name in ("sum", "all", "_is_all_true") and len(dims) == len(fact.axes) and not step.shape:
        counted = _counted(step, fact)
        if counted is not None:
            return [counted]
    if step.name in ("any", "all") and (value := _of_few(step, fact, dims)) is not None:
        return [Derived.of_value(value, "bool")]
    if step.name == "sum" and (number := _up_to_a_limit(step, fact, dims)) is not None:
        return [Derived.of_value(number, step.claims[0].dtype)]
    if step.name == "amin" and (known := extreme_values(step)) is not None:
        return known
    found = []
    for result in range(len(step.shapes)):
        element, keep = over_rows(step, fact, dims, result)
        one = all(step.shapes[result][d] is ONE for d in dims) if keep else True
        require(one, "the result of a reduction has another shape")
        sums = step.name in ("sum", "linalg_vector_norm", "norm")
        zero = element.zero if sums or step.name == "mean" else FALSE
        same = some(element.same, zero) if sums else element.same
        ordinary = element.ordinary
        found.append(Derived(Predicates(same=same, zero=zero, ordinary=ordinary)))
    return found


def _of_few(step: Step, fact: Fact, dims: Sequence[int]) -> Formula | None:
    """If any of a few booleans is true, or all are; None of those that are not known."""
    axes = fact.axes[dims[0]] if len(dims) == 1 else ()
    if not isinstance(fact.value, Formula | Term) or len(axes) != 1 or not axes[0].is_integer:
        return None
    keep = len(step.shape) == len(fact.axes)
    require(keep or len(step.shape) == len(fact.axes) - 1, "the result has another number of dimensions")
    require(not keep or step.shape[dims[0]] is ONE, "the result of a reduction has another shape")
    if not 0 < axes[0].constant <= MAX_CASES:
        return None
    others = [step.digits(d if keep or d < dims[0] else d - 1) for d in range(len(fact.axes))]
    few = []
    for k in range(axes[0].constant):
        places = [((axes[0], integer(k)),) if d == dims[0] else own for d, own in enumerate(others)]
        value = read(fact, places, step.equal).value
        if not isinstance(value, Formula | Term):
            return None
        few.append(opposite(equal(value, 0)) if isinstance(value, Term) else value)
    return some(*few) if step.name == "any" else every(*few)


def _up_to_a_limit(step: Step, fact: Fact, dims: Sequence[int]) -> Term | None:
    """How many indices along one dimension are at most a limit, or at least; None of other elements."""
    axes = fact.axes[dims[0]] if len(dims) == 1 else ()
    if not isinstance(fact.value, Formula | Term) or len(axes) != 1 or step.claims[0].dtype not in INTEGER_LIMITS:
        return None
    keep = len(step.shape) == len(fact.axes)
    require(keep or len(step.shape) == len(fact.axes) - 1, "the result has another number of dimensions")
    require(not keep or step.shape[dims[0]] is ONE, "the result of a reduction has another shape")
    counted = variable("counted")
    places = [
        ((axes[0], counted),) if d == dims[0] else step.digits(d if keep or d < dims[0] else d - 1)
        for d in range(len(fact.axes))
    ]
    value = read(fact, places, step.equal).value
    formula = value if isinstance(value, Formula) else _where_one(value) if isinstance(value, Term) else None
    if not isinstance(formula, AtMostZero):
        return None
    (term,) = formula.fields
    (atom,) = (atom for atom, _ in counted.summands)
    factor = dict(term.summands).get(atom, 0)
    rest = term - counted * factor
    if factor not in (1, -1) or not rest.variables.isdisjoint(counted.variables):
        return None
    limit = rest * -1 + 1 if factor == 1 else axes[0] - rest
    positive = if_else(at_most(limit, 0), integer(0), limit)
    return if_else(at_most(positive, axes[0]), positive, axes[0])


def _where_one(value: Term) -> Formula | None:
    """Where a number is one, if it is zero elsewhere."""
    if value is integer(0) or value is integer(1):
        return TRUE if value is integer(1) else FALSE
    atoms = value.summands
    if value.constant or len(atoms) != 1 or atoms[0][1] != 1 or not isinstance(atoms[0][0], If):
        return None
    condition, first, second = atoms[0][0].fields
    return condition if first is integer(1) and second is integer(0) else None


def _counted(step: Step, fact: Fact) -> Derived | None:
    """All elements of a tensor of booleans, or their number."""
    value = fact.value
    if isinstance(value, Term):
        value = _where_one(value) if step.name == "sum" else opposite(equal(value, 0))
    if not isinstance(value, Formula) or step.setting.loops.active is not None:
        return None
    name = f"all of {step.node}"
    require(name not in step.setting.functions, "its name is taken")
    step.setting.functions.add(name)
    step.setting.counts[step.node] = Count(value, fact.sizes)
    if step.name == "sum":
        return Derived(Predicates())
    return Derived.of_value(holds(name), "bool")


def whole_rows(step: Step, fact: Fact, dims: Sequence[int], *, others: Sequence[Fact] = ()) -> list[Derived]:
    """Results each of which is computed from a whole row: normalizations, sorting."""
    for other in others:
        require(other.same is TRUE and other.hidden is FALSE and other.ordinary is TRUE, "a parameter of it differs")
    found = []
    for result, shape in enumerate(step.shapes):
        require(len(shape) == len(fact.axes), "the result has another number of dimensions")
        places = [step.further(fact.axes[d]) if d in dims else step.digits(d, result) for d in range(len(fact.axes))]
        element = read(fact, places, step.equal)
        found.append(Derived(Predicates(same=element.same, ordinary=element.ordinary)))
    return found


def sort(step: Step) -> list[Derived]:
    """Elements of a row by size."""
    fact = step.fact(0)
    given = step.argument(1, "dim", -1) if step.name in ("sort", "argsort") else step.argument(2, "dim", -1)
    dim = step.dim(given, len(fact.axes))
    if (known := sorted_rows(step)) is not None:
        return known
    count = step.term(step.argument(1, "k")) if step.name == "topk" else size_of(fact, dim)
    if fact.axes:
        require(all(step.equal(shape[dim], count) for shape in step.shapes), "its result has another shape")
    return whole_rows(step, fact, [dim])


def fourier(step: Step) -> list[Derived]:
    """Fourier transforms along some dimensions. A real one has half the frequencies along the last of them."""
    fact, several = step.fact(0), step.name[-1] in "2n"
    sizes = step.argument(1, "s" if several else "n")
    given = step.argument(2, "dim", [-2, -1] if step.name.endswith("2") else -1)
    listed = [(x if isinstance(x, list) else [x]) for x in (given, sizes)]
    dims = [step.dim(d, len(fact.axes)) for d in listed[0]]
    wanted = [size_of(fact, d) for d in dims] if sizes is None else [step.term(n) for n in listed[1]]
    require(len(dims) == len(wanted) == len(set(dims)) > 0, "it has other dimensions")
    if "irfft" in step.name:
        wanted[-1] = wanted[-1] if sizes is not None else (wanted[-1] - 1) * 2
    elif "rfft" in step.name:
        wanted[-1] = floor_of(wanted[-1], 2) + 1
    same = all(step.equal(step.shape[d], size) for d, size in zip(dims, wanted, strict=True))
    require(same, "its result has another shape")
    return whole_rows(step, fact, dims)


def extreme(step: Step) -> list[Derived]:
    """The greatest or least element of a row, or that of a rank, and where it is."""
    fact = step.fact(0)
    given = step.argument(2, "dim", -1) if step.name == "kthvalue" else step.argument(1, "dim")
    dims = row_dims(step, given, len(fact.axes))
    found = []
    for result, claim in enumerate(step.claims):
        element, _ = over_rows(step, fact, dims, result)
        ordinary = TRUE if claim.dtype in INTEGER_LIMITS and claim.dtype != fact.dtype else element.ordinary
        ordinary = TRUE if step.name in ("argmax", "argmin") else ordinary
        found.append(Derived(Predicates(same=element.same, ordinary=ordinary)))
    return found


def largest(step: Step) -> list[Derived]:
    """`max` and `min` of two tensors, or along a dimension."""
    second = step.argument(1, "dim")
    if isinstance(second, Fact) or "other" in step.kwargs:
        return pointwise(step)
    if (known := extreme_values(step)) is not None:
        return known
    if step.name in ("max", "argmax") and type(second) is int and _may_hide(step):
        return largest_score(step)
    return extreme(step)


def nearly_largest(step: Step) -> list[Derived]:
    """The greatest element, or the logarithm of a sum of exponentials, which is nearly that."""
    if (known := extreme_values(step)) is not None:
        return known
    given = step.argument(1, "dim")
    single = type(given) is int or (isinstance(given, list) and len(given) == 1)
    return largest_score(step) if single and _may_hide(step) else reduce(step)


def _may_hide(step: Step) -> bool:
    known = step.fact(0).predicates
    return known.hidden is not FALSE or known.low is not FALSE


_REDUCED = (
    "sum", "mean", "amin", "all", "any", "var", "std", "linalg_vector_norm", "norm", "var_mean",
    "_is_all_true", "count_nonzero", "nansum",
)  # fmt: skip
_ANY_ORDER = Permuted(in_any_order=(0, 1))

ROWS: dict[str, Operator] = {
    **operators(_REDUCED, reduce, _ANY_ORDER),
    "prod": Operator(reduce, _ANY_ORDER, may_wrap=True),
    **operators(("logsumexp", "amax"), nearly_largest, _ANY_ORDER),
    **operators(("max", "min", "median", "nanmedian", "kthvalue"), largest, Permuted(in_any_order=(0,))),
    **operators(("argmax", "argmin"), largest, READS),
    "mode": Operator(largest),
    "sort": Operator(sort, Permuted((0,), along(1, "dim", -1))),
    "argsort": Operator(sort, Permuted(by_index=along(1, "dim", -1))),
    "topk": Operator(sort, Permuted((0,), along(2, "dim", -1))),
    **operators(FOURIER, fourier),
}
