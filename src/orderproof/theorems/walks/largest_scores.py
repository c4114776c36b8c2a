"""The largest score of each row, which keys that are selected by their scores contain.

Lemma. Let S[i, j] be scores and t[i] one of the scores of row i, chosen by its rank.
  1. At the largest score of a row, S < t is false and S >= t is true. So they are for a smaller number than t.
  2. The indices of the k largest scores contain that of the largest: what is scattered to them is written there.
  3. If a score of the row is visible, the largest one is; where all that are visible satisfy a condition, it does.
So a row of S in which scores below t, or scores that are not among the k largest, are hidden keeps a visible one. And
an element that is gathered at the index of the largest score is one of those that the row sees, and an index that is
equal to it is that of one of these.

Machine-checked (proofs/rules/maximum_lemma.v): largest_is_not_below, largest_is_visible, selected_row_is_visible.
Machine-checked (proofs/rules/scan_lemma.v): top_contains_largest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.fx import Node

from orderproof.logic.terms import FALSE, Formula, conjunction, implication
from orderproof.theorems.facts.frame import frame
from orderproof.theorems.facts.numbers import INTEGERS
from orderproof.theorems.facts.open_fact import NotCovered, OpenFact, index
from orderproof.theorems.operators.movement.rearrangement import PLANS
from orderproof.theorems.operators.pointwise.operands import CONVERTS, KEEPS, is_lowered
from orderproof.theorems.operators.softmax.masked_rows import MaskedRows
from orderproof.theorems.walks.at_largest import (
    AT_LARGEST,
    Largest,
    Level,
    fact_level,
    is_ordinary,
    number_level,
    pointwise_level,
)
from orderproof.theorems.walks.context import Context
from orderproof.theorems.walks.open_operation import OpenOperation


def note_largest(call: OpenOperation, part: int = 0) -> None:
    """Keep what is known of a result, or of one of several, by the largest scores of rows."""
    table = call.context.largest
    table.pop(call.node, None)
    try:
        found = _found(call, part)
    except NotCovered:
        found = None
    if found is not None:
        table[call.node] = found


def note_part(call: OpenOperation, node: Node, part: int) -> None:
    """Keep what is known of one of several results, which has a node of its own."""
    note_largest(call, part)
    found = call.context.largest.pop(call.node, None)
    call.context.largest.pop(node, None)
    if found is not None:
        call.context.largest[node] = found


def _found(call: OpenOperation, part: int) -> Largest | None:
    if call.name in _RANKS:
        return _of_a_rank(call, part)
    known: dict[Node, Largest] = {
        x: call.context.largest[x] for x in call.node.all_input_nodes if x in call.context.largest
    }
    if not known:
        return None
    if call.name == "scatter":
        return _scattered(call, known)
    if call.name in ("lt", "le", "gt", "ge") and any(one.known in _NOT_ABOVE for one in known.values()):
        return _compared(call, known)
    ((first, one), *others) = known.items()
    if not others and call.node.args[0] is first:
        if call.name in KEEPS or (call.name in CONVERTS and call.dtype in INTEGERS and call.operand.dtype in INTEGERS):
            return one
        if one.known in _NOT_ABOVE and is_lowered(call.node):
            return replace(one, known=Level.BELOW)
        if call.name in PLANS:
            return replace(one, dims=tuple(None if d is None else one.dims[d] for d in PLANS[call.name](call)))
        if call.name in ("slice", "narrow", "select"):
            return _part(call, one)
    return pointwise_level(call, known) if call.name in AT_LARGEST else None


_RANKS: dict[str, tuple[int, int | None]] = {  # the place of `dim` among the arguments, and its default
    "topk": (2, -1), "kthvalue": (2, -1), "sort": (1, -1),
    **dict.fromkeys(("median", "max", "min", "amax", "amin", "argmax"), (1, None)),
}  # fmt: skip


def _of_a_rank(call: OpenOperation, part: int) -> Largest | None:
    """Scores that are chosen by their rank, or the index of the largest."""
    scores, name = call.node.args[0], call.name
    place, default = _RANKS[name]
    given: Any = call.argument(place, "dim", default)
    given = given[0] if isinstance(given, list | tuple) and len(given) == 1 else given
    is_number = not call.rank or not call.operand.dtype.is_floating_point
    if not isinstance(scores, Node) or not isinstance(given, int) or is_number:
        return None
    dim, shape = int(given) % call.rank, call.shapes[part]
    dims = tuple(d for d in range(call.rank) if len(shape) == call.rank or d != dim)
    if part == 0 and name != "argmax":
        before = call.context.largest.get(scores)
        if before is not None and before.known is Level.RANKED:
            own = before.dims[dim] in (before.dim, None)
            return replace(before, dims=tuple(before.dims[d] for d in dims)) if own else None
        return Largest(scores, dim, dims, Level.RANKED, call.node)
    if name in ("max", "argmax"):
        return Largest(scores, dim, dims, Level.CHOSEN, call.node)
    if name == "topk" and call.argument(3, "largest", True) is True:
        return Largest(scores, dim, dims, Level.CHOSEN if call.argument(1, "k") == 1 else Level.PLACES, call.node)
    return None


_NOT_ABOVE = (Level.RANKED, Level.BELOW)


def _part(call: OpenOperation, one: Largest) -> Largest | None:
    """Some of the scores of a rank."""
    dim = call.dim(1)
    if one.known not in (Level.RANKED, Level.CHOSEN) or one.dims[dim] not in (one.dim, None):
        return None
    return replace(one, dims=(*one.dims[:dim], *one.dims[dim + 1 :])) if call.name == "select" else one


def _compared(call: OpenOperation, known: Mapping[Node, Largest]) -> Largest | None:
    """Scores that are compared with one of their row."""
    first, second = call.node.args[:2]
    ranked = known.get(second) or known.get(first)  # type: ignore[arg-type]
    scores, other = (first, second) if isinstance(second, Node) and second in known else (second, first)
    if ranked is None or ranked.known not in _NOT_ABOVE or ranked.scores is not scores or not isinstance(other, Node):
        return None
    rank = call.rank_of(scores)
    if call.rank_of(other) != rank or any(ranked.dims[d] != d for d in range(rank) if d != ranked.dim):
        return None
    answers = {"gt": False, "le": True} if scores is second else {"lt": False, "ge": True}
    answer = answers.get(call.name)
    return None if answer is None else Largest(ranked.scores, ranked.dim, tuple(range(rank)), answer)


def _scattered(call: OpenOperation, known: Mapping[Node, Largest]) -> Largest | None:
    """Elements that are written to the places of the largest scores of a row."""
    if len(call.node.args) != 4 or call.node.kwargs:
        return None
    _base, _dim, places, source = call.node.args
    one = known.get(places)  # type: ignore[arg-type]
    if one is None or one.known not in (Level.PLACES, Level.CHOSEN) or not isinstance(places, Node):
        return None
    dim, fact, chosen = call.dim(1), call.operand, call.fact(places)
    equal = call.context.equal_sizes
    whole = all(equal(a, b) for d, (a, b) in enumerate(zip(fact.shape, chosen.shape, strict=True)) if d != dim)
    row = call.fact(one.scores).shape[one.dim]
    if not whole or one.dims[dim] not in (one.dim, None) or not equal(fact.shape[dim], row):
        return None
    dims = tuple(one.dim if d == dim else own for d, own in enumerate(one.dims))
    if values_at_places(call) is not None:
        return replace(one, dims=dims, known=Level.ORDINARY)
    written = number_level(source) if not isinstance(source, Node) else fact_level(call.fact(source))
    return None if written is None else replace(one, dims=dims, known=written)


def values_at_places(call: OpenOperation) -> Largest | None:
    """The knowledge of the places, if the largest scores of a row are written to them; None for other elements."""
    places, values = (call.context.largest.get(x) if isinstance(x, Node) else None for x in call.node.args[2:4])
    if places is None or values is None or places.known not in (Level.PLACES, Level.CHOSEN):
        return None
    same = (values.origin, values.dims) == (places.origin, places.dims)
    return places if same and values.known is Level.RANKED else None


def _rows_with_largest(context: Context, scores: OpenFact, one: Largest) -> tuple[OpenFact, list[Any]]:
    """Where a row of scores has a largest one that is visible, with the dimensions of the tensor as labels."""
    rows = MaskedRows.of(context, scores, one.dim)
    labels = [label for d, label in enumerate(one.labels) if d != one.dim]
    return OpenFact(rows.kept, torch.bool, value=conjunction(rows.visible, rows.bounded)), labels


def largest_is_kept(call: OpenOperation, node: Any, dim: int) -> Formula:
    """Rows of a tensor along a dimension in which the largest of the scores by which it selects is visible."""
    one = call.context.largest.get(node)
    if one is None or not is_ordinary(one.known) or one.dims[dim] != one.dim:
        return FALSE
    fact = call.fact(node)
    kept = [d for d in range(len(fact.dims)) if d != dim]
    try:
        rows, labels = _rows_with_largest(call.context, call.fact(one.scores), one)
        common = frame([(fact, range(len(fact.dims))), (rows, labels)], kept)
        placed = common.place(rows, labels)
    except NotCovered:
        return FALSE
    same_axes = all(common.axes[d] == fact.dims[d] for d in range(len(fact.dims)))
    return placed.value if same_axes and isinstance(placed.value, Formula) else FALSE


def largest_is_there(call: OpenOperation, node: Any, along: Any, labelled: Sequence[tuple[OpenFact, Any]]) -> Formula:
    """Where an element may be the one that is chosen, at the indices of a frame of facts with labels.

    Args:
        call: The operator.
        node: The indices.
        along: The label along which they choose.
        labelled: The facts of the frame, with their labels, of which the indices are the last.

    """
    one = call.context.largest.get(node)
    if one is None or one.known is not Level.CHOSEN:
        return ~FALSE
    scores = call.fact(one.scores)
    labels = [along if d == one.dim else label for d, label in enumerate(one.labels)]
    rows, of_rows = _rows_with_largest(call.context, scores, one)
    result = list(labelled[-1][1])
    alone, common = frame(labelled, result), frame([*labelled, (scores, labels), (rows, of_rows)], result)
    if alone.axes != common.axes:
        return ~FALSE
    has_largest = common.place(rows, of_rows).value
    visible = common.place(scores, labels).ranges().finite
    return implication(has_largest, visible) if isinstance(has_largest, Formula) else ~FALSE


def never_the_largest(call: OpenOperation) -> Formula:
    """Where an index along rows of scores is not that of the largest, with which `eq` compares it, as in `one_hot`."""
    arguments = call.node.args
    if call.name != "eq" or len(arguments) != 2 or not all(isinstance(x, Node) for x in arguments):
        return FALSE
    rank = len(call.shape)
    for places, other in (arguments, arguments[::-1]):
        one = call.context.largest.get(places)  # type: ignore[arg-type]
        if one is None or one.known is not Level.CHOSEN or len(one.dims) != rank:
            continue
        fact, row = call.fact(other), call.fact(one.scores).shape[one.dim]
        labels = range(rank - len(fact.dims), rank)
        for own, label in enumerate(labels):
            counted = len(fact.dims[own]) == 1 and fact.value is index(fact.first_axis(own))
            if counted and one.dims[label] in (None, one.dim) and call.context.equal_sizes(fact.shape[own], row):
                try:
                    return ~largest_is_there(call, places, label, [(fact, labels), (call.fact(places), range(rank))])
                except NotCovered:
                    return FALSE
    return FALSE
