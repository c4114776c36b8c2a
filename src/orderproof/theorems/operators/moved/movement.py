"""Operators that reorder, merge, take apart or repeat dimensions, take parts of them, or join tensors along them.

Machine-checked (proofs/rules/movement_lemma.v): movement_equivariant, concatenation_fact.
Not machine-checked: the arithmetic of positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import Node

from orderproof.logic.terms import Term, as_term, at_most, conjunction
from orderproof.theorems.facts.frame import refined
from orderproof.theorems.facts.moved_fact import (
    Axis,
    Dim,
    Motion,
    MovedFact,
    size,
    sizes,
    split,
    still,
    uniform,
)
from orderproof.theorems.facts.open_fact import NotCovered, size_of
from orderproof.theorems.operators.movement.parts import require_adjoining_parts
from orderproof.theorems.statement import TOKENS
from orderproof.theorems.walks.moved_operation import MovedFacts, MovedOperation, moved_rule, tensors

_PART = "tokens are chosen by their index"


@moved_rule("numpy_T")
def numpy_transpose(call: MovedOperation) -> MovedFact:
    """All dimensions in reverse."""
    return MovedFact(tuple(reversed(call.operand.dims)))


@moved_rule("transpose", "swapaxes", "swapdims", "t", "mT", "adjoint")
def transpose(call: MovedOperation) -> MovedFact:
    """Two dimensions exchanged."""
    dims = list(call.operand.dims)
    if len(dims) > 1:
        a, b = int(call.argument(1, "dim0", -2)), int(call.argument(2, "dim1", -1))
        dims[a], dims[b] = dims[b], dims[a]
    return MovedFact(tuple(dims))


@moved_rule("permute")
def permute(call: MovedOperation) -> MovedFact:
    """Dimensions in another order."""
    return MovedFact(tuple(call.operand.dims[int(d)] for d in call.argument(1, "dims")))


@moved_rule("movedim", "moveaxis")
def movedim(call: MovedOperation) -> MovedFact:
    """Some dimensions at other places."""
    dims = call.operand.dims
    source, target = call.argument(1, "source"), call.argument(2, "destination")
    pairs = zip(*([x] if isinstance(x, int) else list(x) for x in (source, target)), strict=True)
    placed = {t % len(dims): s % len(dims) for s, t in pairs}
    rest = iter(d for d in range(len(dims)) if d not in placed.values())
    return MovedFact(tuple(dims[placed[d] if d in placed else next(rest)] for d in range(len(dims))))


@moved_rule("unsqueeze")
def unsqueeze(call: MovedOperation) -> MovedFact:
    """A new dimension of size one."""
    dims = call.operand.dims
    place = int(call.argument(1, "dim")) % (len(dims) + 1)
    return MovedFact((*dims[:place], (), *dims[place:]))


@moved_rule("squeeze")
def squeeze(call: MovedOperation) -> MovedFact:
    """Without dimensions of size one."""
    dims = call.operand.dims
    given = call.argument(1, "dim", list(range(len(dims))))
    chosen = {int(d) % len(dims) for d in ([given] if isinstance(given, int) else given)} if dims else set()
    return MovedFact(tuple(dim for d, dim in enumerate(dims) if dim or d not in chosen))


@moved_rule("expand", "broadcast_to", "expand_as")
def expand(call: MovedOperation) -> MovedFact:
    """Dimensions of size one repeated: the same for every index."""
    dims = call.operand.dims
    new = len(call.shape) - len(dims)
    repeated = uniform(call.shape, Motion.FREE).dims
    return MovedFact(tuple(dims[d - new] if d >= new and dims[d - new] else repeated[d] for d in range(len(repeated))))


@moved_rule(
    "view", "reshape", "_unsafe_view", "flatten", "unflatten", "view_as", "reshape_as", "ravel", "_reshape_alias"
)
def view(call: MovedOperation) -> MovedFact:
    """The same elements in the same order in another shape."""
    if isinstance(call.argument(1, "size"), torch.dtype):
        raise NotCovered("the bits of a tensor are read as another dtype")
    equal = call.context.equal_sizes
    whole: Dim = tuple(axis for dim in call.operand.dims for axis in dim)
    wanted = [n for n in call.shape if not (n.is_constant and n.constant == 1)]
    common = refined(sizes(whole), tuple(wanted), equal)
    rest = list(split(whole, common, equal))
    dims: list[Dim] = []
    for n in call.shape:
        own: list[Axis] = []
        while not equal(size_of(tuple(axis.size for axis in own)), n):
            if not rest:
                raise NotCovered("the axes of two shapes do not fit each other")
            own.append(rest.pop(0))
        dims.append(tuple(own))
    if rest:
        raise NotCovered("the axes of two shapes do not fit each other")
    return MovedFact(tuple(dims))


@moved_rule("repeat", "tile")
def repeat(call: MovedOperation) -> MovedFact:
    """The tensor several times along each dimension: the copies are an axis before its own."""
    dims = call.operand.dims
    times = list(call.argument(1, "repeats", call.argument(1, "dims")))
    times = [1] * (len(call.shape) - len(times)) + times
    dims = ((),) * (len(times) - len(dims)) + dims
    copies = uniform([n if isinstance(n, Term) else as_term(int(n)) for n in times], Motion.FREE).dims
    return MovedFact(tuple((*a, *b) for a, b in zip(copies, dims, strict=True)))


@moved_rule("repeat_interleave")
def repeat_interleave(call: MovedOperation) -> MovedFact:
    """Each element several times: the copies are an axis after its own."""
    count, dim = call.argument(1, "repeats"), call.argument(2, "dim")
    if not isinstance(count, int | Term) or not isinstance(dim, int):
        raise NotCovered("elements are repeated an unknown number of times")
    (copies,) = uniform([count if isinstance(count, Term) else as_term(count)], Motion.FREE).dims
    fact, place = call.operand, dim % call.rank
    return fact.with_dim(place, (*fact.dims[place], *copies))


@moved_rule("view_as_complex", "view_as_real")
def complex_view(call: MovedOperation) -> MovedFact:
    """Pairs of real numbers as complex ones, and back."""
    dims = call.operand.dims
    if call.name == "view_as_real":
        return MovedFact((*dims, (Axis(as_term(2), Motion.STILL),)))
    still(dims[-1], _PART)
    return MovedFact(dims[:-1])


@moved_rule("select")
def select(call: MovedOperation) -> MovedFact:
    """One index of a dimension."""
    place = call.dim(1)
    still(call.operand.dims[place], _PART)
    return call.operand.with_dim(place)


@moved_rule("slice", "narrow")
def slice_(call: MovedOperation) -> MovedFact:
    """A range of a dimension."""
    place = call.dim(1)
    start = call.argument(2, "start")
    step = 1 if call.name == "narrow" else call.argument(4, "step", 1)
    return _part(call, call.operand, place, 0 if start is None else start, call.shape[place], step)


def _part(call: MovedOperation, fact: MovedFact, place: int, start: Any, wanted: Term, step: Any = 1) -> MovedFact:
    """A range of a dimension: all of it, all tokens of it, or some of one in which no axis moves."""
    if step == 1 and call.context.equal_sizes(size(fact.dims[place]), wanted):
        return fact
    if step == 1 and len(fact.dims[place]) == 1 and fact.dims[place][0].motion is Motion.MOVED:
        return fact.with_dim(place, _part_with_tokens(fact.dims[place][0], start, wanted))
    motions = {axis.motion for axis in fact.dims[place]}
    still(fact.dims[place], _PART)
    motion = Motion.FREE if motions <= {Motion.FREE} else Motion.STILL
    return fact.with_dim(place, *uniform([wanted], motion).dims)


def _part_with_tokens(axis: Axis, start: Any, wanted: Term) -> Dim:
    """A range of an axis that moves, with all tokens or none. Raises `NotCovered`."""
    more = wanted + start - axis.before - TOKENS if isinstance(start, int) and start >= 0 else None
    if more is None or not more.is_constant:
        kept = as_term(start) + wanted if isinstance(start, int) and start >= 0 else None
        if kept is not None and kept.is_constant and kept.constant <= axis.before:
            return uniform([wanted], Motion.STILL).dims[0]
        raise NotCovered(_PART)
    if start > axis.before or more.constant < 0:
        raise NotCovered(_PART)
    return (Axis(wanted, Motion.MOVED, axis.before - start),)


@moved_rule("split", "split_with_sizes", "chunk", "unbind", "tensor_split", "unsafe_split", "unsafe_chunk")
def parts(call: MovedOperation) -> MovedFacts:
    """The parts of a dimension."""
    fact = call.operand
    unbind = call.name == "unbind"
    place = call.dim(1 if unbind else 2)
    require_adjoining_parts(call)
    if unbind:
        still(fact.dims[place], _PART)
        return (fact.with_dim(place),) * len(call.shapes)
    found, start = [], as_term(0)
    for shape in call.shapes:
        found.append(_part(call, fact, place, start.constant if start.is_constant else start, shape[place]))
        start = start + shape[place]
    return tuple(found)


@moved_rule("flip", "roll")
def by_index(call: MovedOperation) -> MovedFact:
    """Elements at other indices of some dimensions."""
    given = call.argument(1 if call.name == "flip" else 2, "dims", [])
    chosen = [given] if isinstance(given, int) else list(given) or range(call.rank)
    fact = call.operand
    for d in chosen:
        fact = fact.with_dim(int(d) % call.rank, still(fact.dims[int(d)], _PART))
    return fact


@moved_rule("tril", "triu")
def triangle(call: MovedOperation) -> MovedFact:
    """Zeros on one side of a diagonal."""
    dims = call.operand.dims
    what = "the indices of two tokens are compared"
    return MovedFact((*dims[:-2], still(dims[-2], what), still(dims[-1], what)))


@moved_rule("cat", "concat", "concatenate")
def cat(call: MovedOperation) -> MovedFact:
    """Tensors one after the other."""
    facts = [call.fact(x) for x in tensors(call.argument(0, "tensors"))]
    place = int(call.argument(1, "dim", 0)) % len(call.shape)
    return _joined(call, [fact for fact in facts if len(fact.dims) == len(call.shape)], place)


@moved_rule("stack")
def stack(call: MovedOperation) -> MovedFact:
    """Tensors along a new dimension."""
    place = int(call.argument(1, "dim", 0)) % len(call.shape)
    facts = [call.fact(x) for x in call.argument(0, "tensors")]
    return _joined(call, [MovedFact((*f.dims[:place], (), *f.dims[place:])) for f in facts], place)


def _joined(call: MovedOperation, facts: Sequence[MovedFact], place: int) -> MovedFact:
    if len(facts) == 1:
        return facts[0]
    whole = _one_after_the_other([fact.dims[place] for fact in facts], call.shape[place])
    return call.broadcast([fact.with_dim(place, ()) for fact in facts]).with_dim(place, whole)


def _one_after_the_other(dims: Sequence[Dim], total: Term) -> Dim:
    """A dimension of several, of which one may move. Raises `NotCovered`."""
    moving = [k for k, dim in enumerate(dims) if any(axis.motion is Motion.MOVED for axis in dim)]
    if not moving:
        return uniform([total], Motion.STILL).dims[0]
    before = as_term(0)
    for dim in dims[: moving[0]]:
        before = before + size(dim)
    if len(moving) > 1 or len(dims[moving[0]]) > 1 or not before.is_constant:
        raise NotCovered("tokens are joined with others")
    return (Axis(total, Motion.MOVED, before.constant + dims[moving[0]][0].before),)


@moved_rule("pad", "constant_pad_nd")
def pad(call: MovedOperation) -> MovedFact:
    """A tensor with other elements around it."""
    if call.name == "pad" and call.argument(2, "mode", "constant") not in ("constant", None):
        raise NotCovered("padding repeats elements")
    widths: list[Any] = list(call.argument(1, "pad"))
    fact = call.operand
    for k in range(len(widths) // 2):
        place = call.rank - 1 - k
        own_widths = [w if isinstance(w, Term) else as_term(w) for w in widths[2 * k : 2 * k + 2]]
        if not call.context.proves(conjunction(*(at_most(0, w) for w in own_widths)), ()):
            raise NotCovered("a tensor may be cut by padding")
        if widths[2 * k : 2 * k + 2] != [0, 0]:
            around = uniform(own_widths, Motion.FREE)
            own = _one_after_the_other([around.dims[0], fact.dims[place], around.dims[1]], call.shape[place])
            fact = fact.with_dim(place, own)
    return fact


@moved_rule("conv1d", "conv2d", "conv3d", "convolution")
def convolution(call: MovedOperation) -> MovedFact:
    """Windows of the last dimensions; the rows are those of the input."""
    fact, weight = call.operand, call.fact(call.argument(1, "weight"))
    if len(fact.dims) != len(weight.dims):
        raise NotCovered("a convolution of an input without rows")
    for dim in fact.dims[1:]:
        still(dim, "tokens are reached by their distance")
    if not all(call.fact(x).is_unmoved for x in call.node.args[1:] if isinstance(x, Node)):
        raise NotCovered("a convolution with weights that depend on tokens")
    return MovedFact((fact.dims[0], *uniform(call.shape[1:], Motion.STILL).dims))
