"""The facts that follow from an operator's arguments, by the lemma that covers it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from orderproof.recheck.algebra import FactAlgebra
from orderproof.recheck.binding import Argument, BoundCall, bind
from orderproof.recheck.claim import claims_no_value
from orderproof.recheck.fact import IDENTITY, INDEPENDENT, INF, ORDINARY_LIMIT, UNIFORM, Fact
from orderproof.recheck.operator_table import find_check
from orderproof.recheck.reading import MAX_ARRAY_ELEMENTS, require

CONSTANT_LEMMA, PURE_FUNCTION_LEMMA = "same_in_both_runs", "pure_function_of_unmoved"

SLICE_END = 2**63 - 1

# Their result is determined by a shape.
FILL_OPERATORS = frozenset({"full_like", "new_full", "new_ones", "new_zeros", "ones_like", "zeros_like"})


# The shapes of their other results differ between devices; the form of the operator decides about those.
FIRST_RESULT_ONLY = frozenset({"native_batch_norm_legit_no_training", "embedding_bag", "embedding_bag_forward_only"})


def derive_operator(
    algebra: FactAlgebra,
    operator: str,
    lemma: str,
    outputs: Sequence[Fact],
    args: Sequence[Argument],
    kwargs: Mapping[str, Argument],
) -> list[Fact]:
    """The facts about the results of "aten.NAME.OVERLOAD" on these arguments, with facts in place of tensors.

    Raises `CertificateError` if the lemma does not cover the operator, or its condition does not hold.
    """
    call = bind(operator, args, kwargs)
    _check_types(call, outputs)
    check = find_check(call)
    is_constant = call.name in FILL_OPERATORS or all(f.is_constant for f in call.facts)
    own_lemma = check.lemma if check is not None else ""
    covered = lemma in (own_lemma, PURE_FUNCTION_LEMMA) or (lemma == CONSTANT_LEMMA and is_constant)
    require(covered, "its lemma does not cover the operator")

    if is_constant:
        values = _constant_values(call)
        nothing_claimed = all(UNIFORM not in out.moves and claims_no_value(out).all() for out in outputs)
        if values is not None or nothing_claimed or lemma == CONSTANT_LEMMA:
            unknown: list[Tensor | None] = [None] * len(outputs)
            return [
                algebra.constant(out.shape, out.dtype, value)
                for out, value in zip(outputs, values or unknown, strict=True)
            ]
    if lemma == PURE_FUNCTION_LEMMA:
        derived = _pure_function(algebra, call.facts, outputs)
    else:
        require(check is not None, "there is no check for this operator")
        assert check is not None
        derived = check.form.derive(algebra, call, outputs)
    includes_literals = lemma != PURE_FUNCTION_LEMMA and check is not None and check.form.bounds_include_literals
    if not includes_literals and makes_large_numbers(operator, call.numbers(), args, kwargs):
        derived = [_without_bounds(algebra, f) for f in derived]
    if is_constant:
        derived = [replace(f, dependence=np.full(f.dependence.shape, INDEPENDENT), is_constant=True) for f in derived]
    return derived


def _check_types(call: BoundCall, outputs: Sequence[Fact]) -> None:
    """The claimed shapes and dtypes are those that PyTorch infers."""
    types = [(tuple(t.shape), str(t.dtype).removeprefix("torch.")) for t in call.run_on_meta()]
    equal = [(out.shape, out.dtype) == t for out, t in zip(outputs, types, strict=True)]
    if call.name in FIRST_RESULT_ONLY:
        equal = equal[:1]
    require(all(equal), f"its result is {', '.join(f'{dtype} {list(shape)}' for shape, dtype in types)}")


def _constant_values(call: BoundCall) -> list[Tensor] | None:
    """The results of constant operands; None if the values are unknown, or too large to compute."""
    known = all(f.constant_value is not None for f in call.facts)
    if call.name not in FILL_OPERATORS and not (
        known and sum(t.numel() for t in call.run_on_meta()) <= MAX_ARRAY_ELEMENTS
    ):
        return None
    return call.run(lambda f: torch.zeros(f.shape) if f.constant_value is None else f.constant_value)


def _pure_function(algebra: FactAlgebra, operands: Sequence[Fact], outputs: Sequence[Fact]) -> list[Fact]:
    """A function of operands that do not move depends on what they depend on."""
    require(all(isinstance(m, str) for f in operands for m in f.moves), "an operand moves")
    dependence = max([INDEPENDENT, *(int(f.dependence.max(initial=INDEPENDENT)) for f in operands)])
    bound = 1 if all(f.is_ordinary.all() for f in operands) else INF
    return [
        algebra.derived(replace(out, moves=(IDENTITY,) * len(out.shape)), dependence, -bound, bound) for out in outputs
    ]


def _without_bounds(algebra: FactAlgebra, fact: Fact) -> Fact:
    """The fact about a result that a large literal enters: only exact values are known."""
    exact = fact.low == fact.high
    return algebra.derived(fact, fact.dependence, np.where(exact, fact.low, -INF), np.where(exact, fact.low, INF))


def makes_large_numbers(
    operator: str, literals: Iterable[float], args: Sequence[Argument], kwargs: Mapping[str, Argument]
) -> bool:
    """True if a large literal enters the results, a maximum over windows of padding (-inf), or a zero divisor."""
    if operator.startswith("aten.slice"):  # the end of an unbounded slice is no number that enters a result
        literals = [x for x in literals if x != SLICE_END]
    dilation = tree_leaves([args[4:5], kwargs.get("dilation", 1)])
    has_windows_of_padding = "max_pool" in operator and not set(dilation) <= {1}
    divides_by_diagonal = "solve_triangular" in operator and not kwargs.get("unitriangular", False)
    divides_by_diagonal |= any(name in operator for name in ("linalg_inv_ex", "solve_ex", "slogdet", "cholesky"))
    return has_windows_of_padding or divides_by_diagonal or any(not abs(x) < ORDINARY_LIMIT for x in literals)
