"""The declaration of an operator, which a file of `rules/` makes.

A rule says which elements of the operands an element of the result is computed from, and under which conditions on
indices. For runs that differ by a permutation that is not enough: two elements that are computed from the same elements
may differ, because their own index counts. `Permuted` says along which dimensions it does; nothing may move along them.
An operator without it may only be applied to tensors that are the same in both runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from orderproof_recheck.steps import Derived, Step

Rule = Callable[[Step], list[Derived]]
Dims = Callable[[Step], Iterable[int]]


def no_dims(step: Step) -> Iterable[int]:
    """No dimension."""
    del step
    return ()


def always(step: Step) -> bool:
    """True of every step."""
    del step
    return True


@dataclass(frozen=True)
class Permuted:
    """An operator applied to tensors that move with the tokens.

    Attributes:
        in_any_order: Numbers of the results for which the elements at further indices may come in any order.
        by_index: Dimensions of the results along which the index counts: nothing may move.
        others_are_whole: All operands but the first are used as a whole, and have to be the same in both runs.
        rule: Which elements an element of the result is computed from, if not those of the operator's rule.
        is_in_any_order: True of the steps in which the order of these elements does not matter.

    """

    in_any_order: tuple[int, ...] = ()
    by_index: Dims = no_dims
    others_are_whole: bool = False
    rule: Rule | None = None
    is_in_any_order: Callable[[Step], bool] = always


@dataclass(frozen=True)
class Operator:
    """An operator and how it is checked.

    Attributes:
        rule: The elements that an element of the result is computed from, and what is known of it.
        permuted: How it is applied to tensors that move; None if it may not be.
        may_wrap: Its integers may be so large that what is computed from them wraps around.

    """

    rule: Rule
    permuted: Permuted | None = None
    may_wrap: bool = False


READS = Permuted()  # an element is computed from what the rule says, and its index does not count


def operators(
    names: Iterable[str], rule: Rule, permuted: Permuted | None = None, *, may_wrap: bool = False
) -> dict[str, Operator]:
    """Several operators with one rule."""
    return dict.fromkeys(names, Operator(rule, permuted, may_wrap))


def along(place: int, name: str, default: int | None = None) -> Dims:
    """The dimension that is an argument."""

    def dims(step: Step) -> Iterable[int]:
        rank = len(step.fact(0).axes)
        return [step.dim(step.argument(place, name, default), rank)] if rank else []

    return dims
