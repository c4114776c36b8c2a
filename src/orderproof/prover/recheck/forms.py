"""What follows for a result that is made of its operands by labels, as in einsum.

Along a label of the result operands move as it does; another is summed, and they move alike along it; along one read by
place nothing moves.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import torch

from orderproof.prover.recheck.fact import ALWAYS, DIMS, FREE, INF, LARGE, LARGEST, NEVER, STILL, Fact, compressed, need


class Forms:
    """Facts that follow from facts, under a group of permutations."""

    group: Any
    assumed: bool

    def _image(self, array: Any, moves: Sequence[Any], g: int) -> Any:
        """The array read at the place each element moves to."""
        for d, move in enumerate(moves):
            array = array if isinstance(move, str) or array.shape[d] == 1 else array.take(move[g], d)
        return array

    def _same(self, f: Fact, moves: Sequence[Any]) -> Any:
        """Elements whose value is known, and the same wherever they move to."""
        images = [self._image(a, moves, g) == a for g in range(len(self.group)) for a in (f.low, f.high)]
        return reduce(np.logical_and, images, f.low == f.high)

    def _settled(self, f: Fact, moves: Sequence[Any]) -> Any:
        """Levels of a fact that is said to move like this."""
        pairs = [(m, t) for s, m, t in zip(f.shape, f.moves, moves, strict=True) if s > 1]
        need(all(t != FREE or m == FREE for m, t in pairs), "it says to be free along a dimension that is not")
        return f.level if all(m in (t, FREE) for m, t in pairs) else np.where(self._same(f, moves), NEVER, ALWAYS)

    def _fact(self, said: Fact, level: Any, low: Any = -1, high: Any = 1) -> Fact:
        """A derived fact, moving as said; one of a known value, the same wherever it moves to, depends on nothing."""
        unsure, one = np.isnan(low) | np.isnan(high), (1,) * len(said.shape)
        low, high = np.where(unsure, -INF, low), np.where(unsure, INF, high)
        ends = (np.maximum(low, 0), np.minimum(high, 1)) if said.dtype == "bool" else (low, high)
        level, low, high = (x if np.ndim(x) else np.full(one, x) for x in (level, *ends))
        made = Fact(said.shape, said.dtype, said.moves, level, low, high)
        return replace(made, level=np.where(self._same(made, made.moves), NEVER, made.level))

    def _constant(self, shape: tuple[int, ...], dtype: str, tensor: Any = None) -> Fact:
        """The same in both runs; free along a dimension where its values show it."""
        made = replace(self._fact(Fact(shape, dtype, (STILL,) * len(shape), 0, 0, 0), NEVER), constant=True)
        if tensor is None:
            return made
        tensor = tensor.to(getattr(torch, dtype)).expand(shape)
        value = compressed((tensor.double() if tensor.dtype is torch.bfloat16 else tensor).numpy())
        moves = tuple(FREE if s == 1 < n else STILL for s, n in zip(value.shape, shape, strict=True))
        return replace(made, moves=moves, low=value, high=value, tensor=tensor)

    def _form(self, out: Fact, operands: Any, result: str, place: str = "", run: Any = None, how: str = "") -> Fact:
        """A labelled form of (operand, labels); `run` computes it, where it is `monotone` also at the ends."""
        names, rank = list(dict.fromkeys(result + "".join(labels for _, labels in operands))), len(out.shape)
        sizes, target = {x: s for x, s in zip(result, out.shape, strict=True) if s > 1}, dict[str, Any]()
        for f, labels in operands:
            for x, s, m in ((x, s, m) for x, s, m in zip(labels, f.shape, f.moves, strict=True) if s > 1):
                need(sizes.setdefault(x, s) == s, "its operands differ in size")
                target[x] = m if target.get(x, FREE) == FREE or not isinstance(m, str) else target[x]
        lost = NEVER if all(isinstance(target.get(x, STILL), str) for x in place) else ALWAYS
        target |= dict.fromkeys(place, STILL)

        def lay(a: Any, labels: str) -> Any:
            wide = a.reshape(a.shape + (1,) * (len(names) - a.ndim))
            return np.moveaxis(wide, range(a.ndim), [names.index(x) for x in labels])

        levels = [lay(self._settled(f, [target.get(x, STILL) for x in labels]), labels) for f, labels in operands]
        end = np.where(reduce(np.logical_and, [lay(f.ordinary, labels) for f, labels in operands]), 1, INF)
        low, ends = -end, [[lay(a, labels) if f.shape else a for a in (f.low, f.high)] for f, labels in operands]
        if run and math.prod(np.broadcast_shapes(*(a.shape for pair in ends for a in pair))) <= LARGEST:
            low, end = self._tried([f.dtype for f, _ in operands], out.dtype, ends, (low, end), run, how)
        if how == "choice":  # the first operand chooses
            levels[1:] = [np.where(ends[0][1] <= 0, NEVER, levels[1]), np.where(ends[0][0] > 0, NEVER, levels[2])]
        shape, moves = tuple(sizes.get(x, 1) for x in names), tuple(target.get(x, STILL) for x in names)
        made = self._fact(replace(out, shape=shape, moves=moves), reduce(np.maximum, levels, np.array(lost)), low, end)
        over = tuple(k for k in range(len(names)) if k >= rank or (out.shape[k] == 1 < shape[k]))
        level, low, end = made.level.max(axis=over, keepdims=True, initial=NEVER), made.low, made.high
        if any(shape[k] > 1 for k in over):  # known zeros add up to zero
            zero, sure = (a.all(axis=over, keepdims=True) for a in ((low == 0) & (end == 0), made.ordinary))
            end = np.where(zero, 0, np.where(sure, 1, INF))
            low = -end
        return self._fact(replace(out, moves=moves[:rank]), *(a.reshape(a.shape[:rank]) for a in (level, low, end)))

    def _tried(self, dtypes: Any, dtype: str, ends: Any, plain: Any, run: Any, how: str) -> Any:
        """Between what a result lies that is made elementwise, tried at the ends if it is monotone; known values."""
        (low, high), exact = plain, reduce(np.logical_and, [a == b for a, b in ends])
        truth = how == "choice" or (how == "boolean" and dtype == "bool") or {*dtypes, dtype} == {"bool"}
        if truth or (how in ("monotone", "quotient") and "float" in dtype):  # whole numbers wrap round
            corners = []
            for x, (a, b) in zip(dtypes, ends, strict=True):
                truths = np.where(a == b, a, 0) != 0, np.where(a == b, b, 1) != 0
                pair = truths if "bool" in (x, how[:4]) else (a.astype(float), b.astype(float))
                corners.append([torch.from_numpy(np.array(a)) for a in pair])
            tried = [run(*x).double().numpy() for x in itertools.product(*corners)]
            low, high = reduce(np.minimum, tried), reduce(np.maximum, tried)
            masked = reduce(np.logical_or, [(a < b) & (b <= -LARGE) for a, b in ends])
            sure = truth | (((low == 0) | np.isinf(low)) & (how == "monotone"))
            vague = (low == high) & ~(sure & (self.assumed | ~masked))  # 1e30 + x is 1e30 by rounding alone
            low, high = np.where(vague, np.nextafter(low, -INF), low), np.where(vague, np.nextafter(high, INF), high)
        if exact.any():
            typed = [(torch.from_numpy(np.array(a)), getattr(torch, x)) for (a, _), x in zip(ends, dtypes, strict=True)]
            value = run(*(a.to(x) for a, x in typed))
            value = (value.double() if value.dtype is torch.bfloat16 else value).numpy()
            low, high = np.where(exact, value, low), np.where(exact, value, high)
        return low, high

    def _pointwise(self, out: Fact, run: Any, how: str, *operands: Any) -> Fact:
        """A form in which every dimension stands for itself, of facts and numbers."""
        numbers = [f if isinstance(f, Fact) else torch.tensor(f, dtype=getattr(torch, out.dtype)) for f in operands]
        facts = [f if isinstance(f, Fact) else self._constant((), out.dtype, f) for f in numbers]
        own = DIMS[: len(out.shape)]
        sizes = [zip(reversed(f.shape), reversed(out.shape), strict=False) for f in facts]
        need(all(s in (1, t) for pairs in sizes for s, t in pairs), "an operand is larger than the result")
        return self._form(out, [(f, own[len(own) - len(f.shape) :]) for f in facts], own, "", run, how)
