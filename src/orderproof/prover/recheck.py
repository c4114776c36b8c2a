"""Replay a certificate: every step must follow from the steps before it, and the last must be what the law asks.

No code is shared with the interpreter. A step says how its result moves; derived here, and compared with its fact, are
for each element the first case that can change it (`level`) and the ends between which it lies (`low`, `high`).

Almost every operator is a labelled form, as in einsum: along a label of the result operands move as it does; another is
summed, and they move alike along it; along one read by place nothing moves. A line of `_TABLE` holds a lemma,
and forms, each with the labels it reads by place and its operators. TO ADD AN OPERATOR, add its name there. In a form

    *  are the dimensions, from the right    -  those but `dim`    #  `dim`    <  >  all with `dim` renamed    x 1  one

and further operands are as the last written; what is read by place in later results only stands behind a +. Or a form
is a word: `moved`, elements are only moved, and it is run on their numbers; `each`, an element is made of those at its
place, `monotone`, and lies between what their ends give. Beside a form, `zero` says that known zeros make known zeros.
Constants are computed by the operator itself; like steps are checked once; what is not listed is refused.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_leaves, tree_map, tree_map_only

from orderproof.errors import CertificateError

STILL, FREE, NEVER, ALWAYS = "still", "free", -1, 2**40  # any other move: a permutation for each generator
INF, LARGE, LARGEST, DIMS = math.inf, 6e4, 1 << 26, "0123456789"  # no ordinary number is LARGE, no array LARGEST
END = 2**63 - 1  # what a slice ends at that has no end
LAWS = {"order_blind": "OP101", "prompt_blind": "OP102", "mirror_blind": "OP103", "position_labelled": "OP104"}
LAWS |= {"causal": "OP201", "padding": "OP202", "packing": "OP203", "batch": "OP204"}
MONOTONE = ("monotone", "quotient")
BOUNDED = "scores of visible tokens are finite and small beside the masking value (finite mask, not -inf)"
UNDEFINED = {"empty", "new_empty", "empty_like", "empty_strided", "empty_permuted", "new_empty_strided", "from_file"}
FILLS = {"zeros_like", "ones_like", "new_zeros", "new_ones", "full_like", "new_full"}  # determined by a shape alone
SAME, PURE, EVAL = "same_in_both_runs", "pure_function_of_unmoved", "_native_batch_norm_legit_no_training"
_TABLE = f"""
movement_equivariant | moved | | cat concat concatenate stack flip roll repeat tile repeat_interleave copy
movement_equivariant | moved | | slice_scatter select_scatter
movement_equivariant | moved | | pad constant_pad_nd unsafe_split unsafe_chunk _unsafe_view | each | | view.dtype
pointwise_equivariant | choice | | where masked_fill tril triu | each | | log_sigmoid _prelu_kernel __xor__ polar real
pointwise_equivariant | each | | complex imag conj _conj resolve_conj resolve_neg | quotient | | div true_divide
pointwise_equivariant | monotone | | max.other maximum
pointwise_equivariant | boolean | | logical_and logical_or logical_not bitwise_and bitwise_or __and__ __or__
pointwise_equivariant | monotone | | add sub rsub mul multiply neg exp exp2 expm1 relu elu sigmoid softplus hardtanh
pointwise_equivariant | monotone | | clamp.default clamp_min.default clamp_max.default clone _to_copy to type_as alias
pointwise_equivariant | monotone | | contiguous lift_fresh_copy positive detach dropout feature_dropout alpha_dropout
contraction_equivariant | *xy *yz -> *xz | zero | mm bmm mm_ | *xy y -> *x | zero | mv mv_ | y *yz -> *z | zero | vm_
contraction_equivariant | y y -> | zero | dot vv_ | equation | zero | einsum | *y zy z -> *z | zero | linear
contraction_equivariant | *xz *xy *yz -> *xz | | addmm baddbmm
softmax_equivariant | softmax | | softmax _softmax _safe_softmax log_softmax _log_softmax
attention_equivariant | attention | | scaled_dot_product_attention
normalisation_equivariant | * # -> * | | layer_norm native_layer_norm rms_norm _fused_rms_norm
normalisation_equivariant | * 1 -> * | 1 | group_norm
channelwise_equivariant | * 1 -> * | | batch_norm {EVAL}
reduction_invariant | * -> - | zero | sum mean nansum | * -> - | | prod amin any all var std norm
reduction_invariant | * -> - | | count_nonzero min.default max.default linalg_vector_norm | * -> - | # | argmax argmin
reduction_invariant | * -> - | +# | min.dim median.dim mode
extreme_of_visible | visible | | amax logsumexp | visible | +# | max.dim
lookup_equivariant | yz * -> *z | y | embedding | < * -> * | < | gather | indexed | | index _unsafe_index index_select
scan_dependence | * -> * | # | cumsum cumprod logcumsumexp cummax cummin | < -> > | >+< | sort topk msort
scan_dependence | < -> > | <> | argsort
scan_dependence | pooled | | avg_pool1d avg_pool2d
scan_dependence | convolution | | conv1d conv2d conv3d convolution
dense_dependence | * < > -> * | #<> | scatter scatter_add scatter_reduce | * y > -> * | #y> | index_add index_copy
dense_dependence | * y > -> * | #y> | index_fill | *y -> * | y | view_as_complex | * -> *y | y | view_as_real
dense_dependence | indexed | | index_put _index_put_impl _unsafe_index_put
dense_dependence | < -> > | <> | _fft_r2c _fft_c2c _fft_c2r fft_fft fft_ifft fft_rfft fft_irfft fft_hfft fft_ihfft
dense_dependence | < -> > | <> | fft_fft2 fft_ifft2 fft_rfft2 fft_irfft2 fft_fftn fft_ifftn fft_rfftn fft_irfftn
"""
TABLE: dict[str, tuple[str, str, str]] = {}
for _lemma, *_cells in ([x.strip() for x in line.split("|")] for line in _TABLE.strip().split("\n")):
    for _form, _place, _names in zip(_cells[::3], _cells[1::3], _cells[2::3], strict=True):
        TABLE |= dict.fromkeys(_names.split(), (_lemma, _form, _place))


@dataclass(frozen=True)
class Checked:
    """What a certificate that holds proves, and what it rests on."""

    law: str
    output: str
    subject: str
    steps: int
    assumptions: tuple[str, ...]
    weights: str


@dataclass(frozen=True)
class _Fact:
    shape: tuple[int, ...]
    dtype: str
    moves: tuple[Any, ...]
    level: Any  # this and the next two: every dimension full or 1
    low: Any  # -1 and 1 are the ends of any ordinary number, infinities those of anything
    high: Any
    status: Any = None  # in what a step says: 0 ordinary, 1 exact, 2 masked, 3 anything, 4 ordinary or as low as a mask
    constant: bool = False
    tensor: Any = None  # the value of a constant that can be computed

    @property
    def ordinary(self) -> Any:
        most = (
            LARGE / 10 if self.dtype == "float16" else LARGE if "float" in self.dtype or "comp" in self.dtype else INF
        )
        return (abs(self.low) < most) & (abs(self.high) < most)

    @property
    def mask(self) -> float:
        return -LARGE if self.dtype == "float16" else -1e8


def recheck(certificate: Mapping[str, Any]) -> Checked:
    """Check every step of a certificate. Raises `CertificateError`, naming the first that does not follow."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"), torch.no_grad():
            warnings.simplefilter("ignore")
            return _Checker(certificate).run()
    except Exception as error:
        raise CertificateError(f"expected a certificate whose proof holds: {str(error)[:600]}") from error


def _need(condition: object, message: str) -> None:
    if not condition:
        raise CertificateError(message)


def _is_node(x: object) -> bool:
    return isinstance(x, dict) and "node" in x


def _hash(data: object) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _array(data: Mapping[str, Any], shape: Sequence[int], kinds: str = "bif") -> Any:
    sizes, counts = data["shape"], [count for _, count in data["runs"]]
    fits = all(type(a) is int and a in (1, b) for a, b in zip(sizes, shape, strict=True))
    fits = fits and all(type(k) is int and k > 0 for k in counts) and sum(counts) == math.prod(sizes) <= LARGEST
    values = np.array([float(x["float"]) if isinstance(x, dict) else x for x, _ in data["runs"]] or np.zeros(0, int))
    _need(fits and values.dtype.kind in kinds, "an array that does not fit its tensor, or of another kind of number")
    return np.repeat(values, np.array(counts, int)).reshape(sizes)


def _compressed(array: Any) -> Any:
    for d in range(array.ndim):
        first = array.take([0], d) if array.shape[d] > 1 else array
        array = first if ((array == first) | ((array != array) & (first != first))).all() else array
    return array


class _Checker:
    def __init__(self, c: Mapping[str, Any]) -> None:
        self.c, law, self.inputs, said, n = c, c["law"], dict(c["inputs"]), c["relation"], c["relation"]["tokens"]
        bare = [{k: v for k, v in s.items() if k not in ("lemma", "fact", "as")} for s in c["steps"]]
        _need(c["digest"] == _hash({k: v for k, v in c.items() if k != "digest"}), "its digest is not that of its text")
        _need(c["graph"] == _hash(bare), "its graph fingerprint is not that of its steps")
        known = c["certificate"] == 1 and c["code"] == LAWS.get(law) and c["weights"] in ("all", "these")
        _need(known and type(n) is int and 1 <= n <= LARGEST, "its version, law, code, weights or tokens are none")
        self.law, self.tokens, self.last_only, self.assumed = law, n, law == "prompt_blind", BOUNDED in c["assumptions"]
        self.facts: dict[str, Any] = {}
        self.keys: dict[str, tuple[str, str]] = {}  # of each node: of what its step says, and of the fact that it gives
        self.done: dict[str, tuple[Any, str]] = {}
        movable, rows = n - self.last_only, len(said.get("replaced", [0]))
        cycle = (*range(1, movable), *range(min(1, movable)), *range(movable, n))
        group = ((1, 0, *range(2, n)), cycle) if movable > 2 else (cycle,)  # they generate every order of the movable
        row, place, pads = np.arange(rows)[:, None], np.arange(n), max(1, n // 3)
        left, sides = (pads + 1) // 2 if n > 2 else pads, np.where(row % 2 == 0, place < pads, place >= n - pads)
        padded = sides if rows > 1 else (place < left) | (place >= n - pads + left)
        slots = {
            "padding": [padded],
            "packing": [place < n // 2, place >= n // 2],
            "batch": [row == 0, row == rows - 1],
        }
        choices = [np.broadcast_to(x, (rows, n)) for x in slots.get(law, [])]  # which slots [row, token] are replaced
        self.group = () if choices or law == "causal" else (tuple(range(n))[::-1],) if law == "mirror_blind" else group
        relation = {"tokens": n, "generators": [list(p) for p in self.group], "last_only": self.last_only}
        options = [{**relation, "replaced": (x * 1).tolist(), "asked": (~x * 1).tolist()} for x in choices] or [
            relation
        ]
        _need(c["family"] == ("permutation" if self.group else "influence"), "its family is not its law's")
        _need(said in options, "its relation between the runs is not its law's")
        chosen = choices[options.index(said)] if choices else np.array(False)
        _need(not chosen.all(), "nothing is asked")
        self.replaced: Any = chosen if choices else None
        _need(any(a is not None for a in self.inputs.values()), "no input has a token axis")

    def run(self) -> Checked:
        for number, step in enumerate(self.c["steps"]):
            where = ", ".join(f"{k} {str(step[k])[:60]}" for k in ("node", "operator", "lemma"))
            try:
                _need(isinstance(step["node"], str) and step["node"] not in self.facts, "its name is taken, or is none")
                self.facts[step["node"]] = self._step(step)
            except Exception as error:
                raise CertificateError(f"step {number + 1} ({where}) does not follow: {str(error)[:300]}") from error
        output, texts = self.c["output"], (str(self.law), str(self.c["output"]["name"]), str(self.c["subject"]))
        _need(self.inputs.keys() <= self.facts.keys(), "an input is no step")
        _need(isinstance(self.facts.get(output["node"]), _Fact), "the output is no step with one tensor")
        self._last_word(self.facts[output["node"]], {int(d): offset for d, offset in output["dims"]})
        return Checked(*texts, len(self.facts), tuple(map(str, self.c["assumptions"])), str(self.c["weights"]))

    def _last_word(self, f: _Fact, dims: dict[int, Any]) -> None:
        one = self.group or len(dims) == 1 or (self.law == "batch" and not dims)
        _need(one, "the output has not one token dimension")
        moves, allowed, level = *self._related(f.shape, dims, ALWAYS), f.level
        for d, move in enumerate(f.moves):
            if d in dims and self.last_only:  # whatever becomes of the others, the last token stays, and is unchanged
                last = dims[d] + self.tokens - 1
                _need(isinstance(move, str) or all(p[last] == last for p in move), "the output moves its last token")
                level = level.take([last if level.shape[d] > 1 else 0], d)
            else:
                _need(move in (moves[d], FREE), f"the output does not move along {d} as the law asks")
        _need((level <= allowed).all(), "the output may depend, at some token, on one that it must not depend on")

    def _related(self, shape: Sequence[int], dims: Mapping[int, int], other: int) -> tuple[list[Any], Any]:
        """How a tensor with these token dimensions (and offsets) is to move, and its levels; `other` where replaced."""
        moves, n, level = list[Any]([STILL] * len(shape)), self.tokens, np.full((1,) * len(shape), NEVER)
        rows = self.replaced is not None and (len(dims) > 0 or other == ALWAYS)
        _need(not rows or shape[0] == len(self.replaced), "its first dimension does not hold the rows")
        for d, offset in dims.items():
            fits = type(d) is int and 0 <= d < len(shape) and type(offset) is int and 0 <= offset <= shape[d] - n
            _need(fits, f"there is no token dimension {str(d)[:9]}")
            wide = [[*range(offset), *(offset + i for i in p), *range(offset + n, shape[d])] for p in self.group]
            moves[d], line = self._move(wide, shape[d]), np.maximum(np.arange(shape[d]) - offset, NEVER)[None]
            if self.replaced is not None:  # what stands beside the tokens is not asked about
                line = np.full((shape[0], shape[d]), other)
                line[:, offset : offset + n] = np.where(self.replaced, other, NEVER)
            sizes = [len(line) if k == 0 else 1 for k in range(len(shape))]
            sizes[d] = shape[d]
            level = level if self.group else line.reshape(sizes)
        if self.law == "batch" and other == ALWAYS and not dims:
            level = np.where(self.replaced, other, NEVER)[:, 0].reshape([-1] + [1] * (len(shape) - 1))
        return moves, level

    def _move(self, data: Any, size: int) -> Any:
        if data in (STILL, FREE):
            return data
        rows = tuple(tuple(p) for p in data)
        good = all(all(type(i) is int for i in p) and sorted(p) == list(range(size)) for p in rows)
        _need(good and len(rows) == len(self.group), "a move that is not one permutation for each generator")
        return rows if any(p != tuple(range(size)) for p in rows) else STILL

    def _step(self, step: Mapping[str, Any]) -> Any:
        data, lemma, node, shape, dtype = (step[k] for k in ("fact", "lemma", "node", "shape", "dtype"))
        if data is None:
            return None  # no tensor; whoever reads it is refused
        _need(lemma == "given" or node not in self.inputs, "it is an input, and not given")
        arguments = [step["args"], [[k, v] for k, v in sorted(step["kwargs"].items())]]
        named = tree_map(lambda x: [self.keys[x["node"]][1]] if _is_node(x) else x, arguments, is_leaf=_is_node)
        key = _hash([step["operator"], lemma, data, shape, dtype, named, node if lemma == "given" else ""])
        _need("as" not in step or key == self.keys[step["as"]][0], "it is not as the step that it names")
        if key not in self.done:  # like steps are checked once
            parts = zip(data, shape, dtype, strict=True) if isinstance(data, list) else [(data, shape, dtype)]
            said = [self._read(*part) for part in parts]
            made = [self._compared(s, d) for s, d in zip(said, self._derived(step, said), strict=True)]
            ends = [[[a.shape, a.dtype.str, a.tobytes().hex()] for a in (f.low, f.high)] for f in made]
            values = [[f.constant, f.tensor is None, x] for f, x in zip(made, ends, strict=True)]
            self.done[key] = made if isinstance(data, list) else made[0], _hash([data, shape, dtype, values])
        self.keys[node] = key, self.done[key][1]
        return self.done[key][0]

    def _derived(self, step: Mapping[str, Any], said: list[_Fact]) -> Sequence[_Fact]:
        lemma, operator, node, first = step["lemma"], step["operator"], step["node"], said[0]
        if lemma == "nothing_follows":
            leaves = tree_leaves([step["args"], step["kwargs"]], is_leaf=lambda x: isinstance(x, dict))
            read = [f for f in tree_leaves([self.facts[x["node"]] for x in leaves if _is_node(x)]) if f is not None]
            numbers = [float(x["float"]) if isinstance(x, dict) and "float" in x else x for x in leaves]
            large = any(isinstance(x, int | float) and not abs(x) < LARGE and x != END for x in numbers)
            plain = operator.split(".")[1] not in UNDEFINED and all(f.ordinary.all() for f in read) and not large
            _need(all(FREE not in s.moves for s in said), "its fact says something")
            return [self._fact(s, ALWAYS, *((-1, 1) if plain else (-INF, INF))) for s in said]
        if lemma == "given":
            axes = [a for a in tree_leaves(self.inputs.get(node)) if a is not None]
            start = operator == "input" or (axes and len(self.inputs) == 1)  # the relation may begin inside the graph
            _need(start and (len(axes) <= 1 or self.group), "it is given, and is no input, or has several axes")
            _need(all(first.shape[a] == self.tokens for a in axes), "it has no such axis")
            moves, level = self._related(first.shape, dict.fromkeys(axes, 0), 0)
            return [self._fact(replace(first, moves=tuple(moves)), level if node in self.inputs else ALWAYS)]
        if operator in ("parameter", "buffer") and lemma == SAME:
            data = (
                None if operator == "parameter" and self.c["weights"] == "all" else self.c["values"].get(*step["args"])
            )
            _need(data is None or data["dtype"] == first.dtype, "its value has another dtype")
            array = None if data is None else torch.from_numpy(_array(data, first.shape))
            return [self._constant(first.shape, first.dtype, array)]
        if operator == "getitem" and lemma == "part_of_a_tuple":
            whole, place = self.facts[step["args"][0]["node"]], step["args"][1]
            _need(isinstance(whole, list) and type(place) is int and place >= 0, "it is no part")
            return [whole[place]]
        return self._applied(step, said)

    def _read(self, data: Any, shape: Any, dtype: str) -> _Fact:
        moves = tuple(self._move(m, s) for m, s in zip(data["moves"], shape, strict=True))
        zero = {"shape": [1] * len(shape), "runs": [[0, 1]]}
        known, level = data["known"] or {"status": zero, "value": zero}, _array(data["level"], shape, "i")
        status, value = _array(known["status"], shape, "i"), _array(known["value"], shape)
        _need((level >= NEVER).all(), "a level that is none")
        plain, least, most = (0, 0, 1) if dtype == "bool" else (-1, -INF, INF)
        low, high = [plain, value, least, least, least], [1, value, value, most, 1]
        return _Fact(tuple(shape), dtype, moves, level, np.choose(status, low), np.choose(status, high), status)

    def _fact(self, said: _Fact, level: Any, low: Any = -1, high: Any = 1) -> _Fact:
        """A derived fact, moving as said; one of a known value, the same wherever it moves to, depends on nothing."""
        unsure, one = np.isnan(low) | np.isnan(high), (1,) * len(said.shape)
        low, high = np.where(unsure, -INF, low), np.where(unsure, INF, high)
        ends = (np.maximum(low, 0), np.minimum(high, 1)) if said.dtype == "bool" else (low, high)
        level, low, high = (x if np.ndim(x) else np.full(one, x) for x in (level, *ends))
        made = _Fact(said.shape, said.dtype, said.moves, level, low, high)
        return replace(made, level=np.where(self._same(made, made.moves), NEVER, made.level))

    def _constant(self, shape: tuple[int, ...], dtype: str, tensor: Any = None) -> _Fact:
        """The same in both runs; free along a dimension where its values show it."""
        blank = _Fact(shape, dtype, (STILL,) * len(shape), 0, 0, 0)
        made = replace(self._fact(blank, NEVER), constant=True)
        if tensor is None:
            return made
        tensor = tensor.to(getattr(torch, dtype)).expand(shape)
        value = _compressed((tensor.double() if tensor.dtype is torch.bfloat16 else tensor).numpy())
        moves = tuple(FREE if s == 1 < n else STILL for s, n in zip(value.shape, shape, strict=True))
        return replace(made, moves=moves, low=value, high=value, tensor=tensor)

    def _compared(self, said: _Fact, derived: _Fact) -> _Fact:
        """What is said, if it follows from what is derived."""
        _need((said.shape, said.dtype) == (derived.shape, derived.dtype), f"it is {derived.dtype} {derived.shape}")
        moved = [d for d, s in enumerate(said.shape) if s > 1 and derived.moves[d] not in (said.moves[d], FREE)]
        _need(not moved, f"along dimensions {moved} it does not move as it says")
        _need((said.level >= derived.level).all(), "some element may depend on more than its level says")
        if derived.constant and not said.status.any():
            return derived
        exact = (derived.low == said.low) & (derived.high == said.high)
        masked = (derived.high <= 0.999 * said.high) & (said.high <= said.mask)  # but for ordinary numbers
        fits = np.choose(said.status, [derived.ordinary, exact, masked, True, derived.high < LARGE])
        _need(fits.all(), "a value it says is known, or ordinary, need not be so")
        return derived if derived.constant else said

    def _image(self, array: Any, moves: Sequence[Any], g: int) -> Any:
        """The array read at the place each element moves to."""
        for d, move in enumerate(moves):
            array = array if isinstance(move, str) or array.shape[d] == 1 else array.take(move[g], d)
        return array

    def _same(self, f: _Fact, moves: Sequence[Any]) -> Any:
        """Elements whose value is known, and the same wherever they move to."""
        images = [self._image(a, moves, g) == a for g in range(len(self.group)) for a in (f.low, f.high)]
        return reduce(np.logical_and, images, f.low == f.high)

    def _settled(self, f: _Fact, moves: Sequence[Any]) -> Any:
        """Levels of an operand that is said to move like this."""
        pairs = [(m, t) for s, m, t in zip(f.shape, f.moves, moves, strict=True) if s > 1]
        _need(all(t != FREE or m == FREE for m, t in pairs), "it says to be free along what an operand is not")
        return f.level if all(m in (t, FREE) for m, t in pairs) else np.where(self._same(f, moves), NEVER, ALWAYS)

    def _form(self, out: _Fact, operands: Any, result: str, place: str = "", run: Any = None, how: str = "") -> _Fact:
        """A labelled form of (operand, labels); `run` computes it, where it is `monotone` also at the ends."""
        names, rank = list(dict.fromkeys(result + "".join(labels for _, labels in operands))), len(out.shape)
        target = {x: m for x, s, m in zip(result, out.shape, out.moves, strict=True) if s > 1}
        _need(all(target.get(x, STILL) == STILL for x in place), "it says that a dimension moves that is read by place")
        sizes, kept, lost = {x: s for x, s in zip(result, out.shape, strict=True) if s > 1}, set(target), NEVER
        for f, labels in operands:
            for x, s, m in ((x, s, m) for x, s, m in zip(labels, f.shape, f.moves, strict=True) if s > 1):
                _need(sizes.setdefault(x, s) == s, "its operands differ in size")
                lost = ALWAYS if x in place and not isinstance(m, str) else lost
                if x not in kept and (x not in target or not isinstance(m, str)):
                    target[x] = STILL if m == FREE else m

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
        wide = replace(out, shape=shape, moves=moves)
        made = self._fact(wide, reduce(np.maximum, levels, np.array(lost)), low, end)
        over = tuple(k for k in range(len(names)) if k >= rank or (out.shape[k] == 1 < wide.shape[k]))
        level, low, end = made.level.max(axis=over, keepdims=True, initial=NEVER), made.low, made.high
        if any(wide.shape[k] > 1 for k in over):  # known zeros add up to zero
            zero, sure = (a.all(axis=over, keepdims=True) for a in ((low == 0) & (end == 0), made.ordinary))
            end = np.where(zero, 0, np.where(sure, 1, INF))
            low = -end
        return self._fact(out, *(a.reshape(a.shape[:rank]) for a in (level, low, end)))

    def _tried(self, dtypes: Any, dtype: str, ends: Any, plain: Any, run: Any, how: str) -> Any:
        """Between what a result lies that is made elementwise, tried at the ends if it is monotone; known values."""
        (low, high), exact = plain, reduce(np.logical_and, [a == b for a, b in ends])
        if how == "choice" or (how == "boolean" and dtype == "bool") or (how in MONOTONE and dtype != "bool"):
            truths = [(np.where(a == b, a != 0, False), np.where(a == b, b != 0, True)) for a, b in ends]
            pairs = [truth if "bool" in (x, how[:4]) else e for x, e, truth in zip(dtypes, ends, truths, strict=True)]
            exactly = [
                [torch.from_numpy(np.array(a, bool if a.dtype == bool else float)) for a in pair] for pair in pairs
            ]
            tried = [run(*x).double().numpy() for x in itertools.product(*exactly)]
            low, high = reduce(np.minimum, tried), reduce(np.maximum, tried)
            masked = reduce(np.logical_or, [(a < b) & (b <= -LARGE) for a, b in ends])
            sure = (how in ("choice", "boolean")) | (((low == 0) | np.isinf(low)) & (how == "monotone"))
            vague = (low == high) & ~(sure & (self.assumed | ~masked))  # 1e30 + x is 1e30 by rounding alone
            low, high = np.where(vague, np.nextafter(low, -INF), low), np.where(vague, np.nextafter(high, INF), high)
        if exact.any():
            value = run(
                *(torch.from_numpy(np.array(a)).to(getattr(torch, x)) for (a, _), x in zip(ends, dtypes, strict=True))
            )
            value = (value.double() if value.dtype is torch.bfloat16 else value).numpy()
            low, high = np.where(exact, value, low), np.where(exact, value, high)
        return low, high

    def _pointwise(self, out: _Fact, run: Any, how: str, *operands: Any) -> _Fact:
        """A form in which every dimension stands for itself, of facts and tensors."""
        typed = [(f, "" if isinstance(f, _Fact) else str(f.dtype).removeprefix("torch.")) for f in operands]
        facts = [self._constant(tuple(f.shape), dtype, f) if dtype else f for f, dtype in typed]
        own = DIMS[: len(out.shape)]
        return self._form(out, [(f, own[len(own) - len(f.shape) :]) for f in facts], own, "", run, how)

    def _filled(self, x: Any) -> Any:
        if not isinstance(x, dict):
            return x
        ((kind, name),) = x.items()
        _need(kind != "node" or isinstance(self.facts.get(name), _Fact), "it reads no earlier step with one tensor")
        if kind in ("node", "float"):
            return self.facts[name] if kind == "node" else float(name)
        return torch.device("cpu") if kind == "device" else getattr(torch, str(name).removeprefix("torch."))

    def _applied(self, step: Mapping[str, Any], said: list[_Fact]) -> Sequence[_Fact]:
        """What follows from an operator's arguments."""
        (space, name, overload), lemma = step["operator"].split("."), step["lemma"]
        op = getattr(getattr(torch.ops.aten, name), overload)
        known = space == "aten" and isinstance(op, torch._ops.OpOverload) and name not in UNDEFINED
        _need(known and not op._schema.is_mutable, "there is no check for this operator")
        schema = {x.name: x for x in op._schema.arguments}
        places = [k for k, x in schema.items() if not x.kwarg_only][: len(step["args"])]
        given = dict(zip(places, step["args"], strict=True)) | step["kwargs"]
        _need(given.keys() <= schema.keys(), "it has no such argument")
        b = {
            k: tree_map(self._filled, given.get(k, x.default_value), is_leaf=lambda y: isinstance(y, dict))
            for k, x in schema.items()
        }
        for k, x in schema.items():  # torch may crash on a missing tensor, or on a number in the place of a dtype
            kind, v = str(x.real_type), b[k]
            odd = (
                k in given
                and isinstance(v, int)
                and any(t in kind for t in ("ScalarType", "Layout", "Memory", "Device"))
            )
            gap = "Optional" not in kind and (v is None or (isinstance(v, list) and None in v))
            _need(not odd and not gap, f"its {k} is missing, or of another kind")
        off = b.get("train") is False or 0 in (b.get("p"), b.get("dropout_p"))
        _need(off or torch.Tag.nondeterministic_seeded not in op.tags, "it is random")

        def run(leaf: Any, device: str = "cpu", **other: Any) -> list[Any]:
            where = {"device": torch.device(device)} if "device" in b else {}
            made = op(**(tree_map_only(_Fact, leaf, b) | where | other))
            return [made] if isinstance(made, torch.Tensor) else list(made)

        facts = [f for f in tree_leaves(b) if isinstance(f, _Fact)]
        meta = run(lambda f: torch.empty(f.shape, dtype=getattr(torch, f.dtype), device="meta"), "meta")
        same = [
            (s.shape, f"torch.{s.dtype}") == (tuple(t.shape), str(t.dtype)) for s, t in zip(said, meta, strict=True)
        ]
        _need(all(same[: 1 if name == EVAL else None]), f"it is {[(t.dtype, *t.shape) for t in meta]}")
        name = "".join("v" if len(f.shape) == 1 else "m" for f in facts) + "_" if name == "matmul" else name
        view, pointwise = ("movement_equivariant", "moved", ""), ("pointwise_equivariant", "each", "")
        other = view if op.is_view else pointwise if torch.Tag.pointwise in op.tags else ("", "", "")
        own, form, place = TABLE.get(f"{name}.{overload}") or TABLE.get(name) or other
        constant = name in FILLS or all(f.constant for f in facts)
        _need(lemma in (own, PURE) or (lemma == SAME and constant), "its lemma does not cover the operator")
        if constant:
            values: Sequence[Any] = [None] * len(said)
            if name in FILLS or (all(f.tensor is not None for f in facts) and sum(t.numel() for t in meta) <= LARGEST):
                values = run(lambda f: torch.zeros(f.shape) if f.tensor is None else f.tensor)
            nothing = all(FREE not in s.moves and np.isin(s.status, (0, 3)).all() for s in said)
            if values[0] is not None or nothing or lemma == SAME:
                return [self._constant(s.shape, s.dtype, v) for s, v in zip(said, values, strict=True)]
        if lemma == PURE:
            _need(all(isinstance(m, str) for f in facts for m in f.moves), "an operand moves")
            level = max([NEVER, *(int(f.level.max(initial=NEVER)) for f in facts)])
            end = 1 if all(f.ordinary.all() for f in facts) else INF
            made = [self._fact(replace(s, moves=(STILL,) * len(s.shape)), level, -end, end) for s in said]
        else:
            made = getattr(self, f"_{form}", self._labelled)(name, b, said, run, facts, form, place)
        floats = {k: v for k, v in b.items() if isinstance(v, float) or k in ("value", "other", "min", "max", "alpha")}
        numbers = [k for k, v in floats.items() if isinstance(v, int | float) and not abs(v) < LARGE]
        numbers = [k for k in numbers if k not in ("p", "ord")]
        if numbers and form not in ("monotone", "moved", "choice"):  # what a large number makes is not ordinary
            ends = [[np.where(d.low == d.high, d.low, x) for x in (-INF, INF)] for d in made]
            made = [self._fact(d, d.level, *x) for d, x in zip(made, ends, strict=True)]
        return [replace(d, level=d.level * 0 + NEVER, constant=True) for d in made] if constant else made

    def _each(self, name: str, b: Any, said: list[_Fact], run: Any, facts: Any, form: str, *_: Any) -> list[_Fact]:
        read = [b.get("self", b.get("input"))] if name in ("type_as", "to") else facts
        spare = {f.dtype: torch.zeros((), dtype=getattr(torch, f.dtype)) for f in facts}
        place, how = {id(f): k for k, f in enumerate(read)}, "each" if "complex" in said[0].dtype else form

        def numbers(*at: Any) -> Any:
            return run(lambda f: at[place[id(f)]] if id(f) in place else spare[f.dtype])[0]

        return [self._pointwise(out, numbers, how, *read) for out in said]

    _monotone = _quotient = _boolean = _each

    def _choice(self, name: str, b: Any, said: list[_Fact], *_: Any) -> list[_Fact]:
        x, dtype = b["self"], getattr(torch, said[0].dtype)
        parts = {"where": (b.get("condition"), x, b.get("other")), "masked_fill": (b.get("mask"), b.get("value"), x)}
        if name in ("tril", "triu"):
            parts[name] = getattr(torch.ones(said[0].shape[-2:], dtype=torch.bool), name)(b["diagonal"]), x, 0
        whole = [f if isinstance(f, _Fact | torch.Tensor) else torch.tensor(f, dtype=dtype) for f in parts[name]]
        return [self._pointwise(said[0], torch.where, "choice", *whole)]

    def _moved(self, name: str, b: Any, said: list[_Fact], run: Any, *_: Any) -> list[_Fact]:
        """Run it on the numbers of its operands' elements; -1 stands for what it fills with."""
        data = [f for k in ("self", "input", "tensors", "src") for f in tree_leaves(b.get(k)) if isinstance(f, _Fact)]
        _need(b.get("mode", "constant") == "constant", "it does more than move elements")
        _need(sum(math.prod(f.shape) for f in [*data, *said]) <= LARGEST, "it is too large to be run")
        group, numbers, start, fill = range(len(self.group)), dict[int, Any](), 0, b.get("value") or 0
        columns: list[list[Any]] = [[] for _ in (*range(3), *group)]
        for f in data:
            own = np.arange(start, start + math.prod(f.shape)).reshape(f.shape)
            start += own.size
            for d, m in enumerate(f.moves):
                own = np.broadcast_to(own.take([0], d) if m == FREE else own, f.shape)
            numbers[id(f)], images = torch.from_numpy(own.copy()), [self._image(own, f.moves, g) for g in group]
            for column, a in zip(columns, (f.level, f.low, f.high, *images), strict=True):
                column.append(np.broadcast_to(a, f.shape).ravel())
        last = (NEVER, fill, fill, *(-1 for _ in group))
        level, low, high, *to = (np.concatenate([*c, [x]]) for c, x in zip(columns, last, strict=True))

        def leaf(f: _Fact) -> Any:
            known = id(f) in numbers or f.tensor is not None or f is b.get("other")
            _need(known, "it moves elements to places that depend on the input")
            return numbers.get(id(f), torch.zeros(f.shape) if f.tensor is None else f.tensor)

        made = []
        for out, tensor in zip(said, run(leaf, **({"value": -1} if "pad" in name else {})), strict=True):
            source, bad = tensor.numpy(), np.zeros(out.shape, bool)
            free = [d for d, m in enumerate(out.moves) if m == FREE]
            _need(all((source == source.take([0], d)).all() for d in free), "it is not free along what it says to be")
            for g in group:
                bad |= self._image(source, out.moves, g) != to[g][source]
            arrays = (np.where(bad, ALWAYS, level[source]), low[source], high[source])
            made.append(self._fact(out, *map(_compressed, arrays)))
        return made

    def _softmax(self, name: str, b: Any, said: list[_Fact], *_: Any) -> list[_Fact]:
        """An entry counts for nothing if it is masked here and wherever it moves to."""
        (out,), f, safe = said, b["self"], "safe" in name
        line: dict[str, Any] = {"axis": b["dim"] % max(len(out.shape), 1), "keepdims": True}
        level, (sound, gone, both) = self._settled(f, out.moves), self._hidden(f, line, safe=safe)
        masked, absent = f.high <= f.mask, f.high == -INF
        number = sound & (safe | ((f.low > -INF) | (masked & ~absent)).any(**line))
        most, end = np.where(both, NEVER, level).max(**line), np.where(number, 1, INF)
        if "log" in name:
            most, low = np.maximum(most, np.where(gone, level, NEVER)), np.where(number & (f.low > -INF), -1, -INF)
            return [self._fact(out, most, low, end)]
        return [self._fact(out, most, np.where(number, 0, -INF), np.where(number & gone, 0, end))]

    def _hidden(self, f: _Fact, line: dict[str, Any], *, safe: bool = False) -> tuple[Any, Any, Any]:
        """Lines without +inf and NaN; what is masked beside a visible entry; the same here and wherever it moves to."""
        sound, alive = (f.high < INF).all(**line), (f.low > f.mask / 10).any(**line)
        masked, absent = f.high <= f.mask, f.high == -INF
        gone = sound & ((masked & alive & (absent | self.assumed)) | (absent & safe))
        both = reduce(np.logical_and, [self._image(gone, f.moves, g) for g in range(len(self.group))], gone)
        return sound, gone, both

    def _visible(self, name: str, b: Any, said: list[_Fact], run: Any, facts: Any, _: str, place: str) -> list[_Fact]:
        """An extreme of a line does not depend on what is masked beside a visible entry, and is ordinary."""
        f, dim = b["self"], b.get("dim")
        dims = tuple(d % len(f.shape) for d in ([dim] if isinstance(dim, int) else dim or range(len(f.shape))))
        line: dict[str, Any] = {"axis": dims, "keepdims": True}
        sound, _gone, both = self._hidden(f, line)
        kept = replace(f, level=np.where(both, NEVER, f.level))
        plain = sound & f.ordinary.any(**line) & (f.high < LARGE).all(**line)
        wide = math.log(math.prod(f.shape[d] for d in dims)) if name == "logsumexp" else 0
        least, most = np.where(plain, -1, -INF), np.where(plain, 1, f.high.max(**line) + wide)
        most = np.where(plain | (most <= f.mask), most, INF)  # of what is masked throughout
        least, most = (
            x if b.get("keepdim") else x.reshape([s for d, s in enumerate(x.shape) if d not in dims])
            for x in (least, most)
        )
        made = self._labelled(name, b, said, run, [kept], "* -> -", place)
        return [replace(made[0], low=least, high=most), *made[1:]]

    def _attention(self, name: str, b: Any, said: list[_Fact], *_: Any) -> list[_Fact]:
        """A contraction, masks that are added, a safe softmax, a contraction."""
        (out,), q, k, v, rank = said, b["query"], b["key"], b["value"], len(said[0].shape)
        _need(
            len(q.shape) == len(k.shape) == len(v.shape) == rank and abs(b["scale"] or 0) < LARGE, "ranks, or a scale"
        )
        if b["enable_gqa"]:
            k, v = (self._repeated(f, q.shape[-3]) for f in (k, v))
        shape, lead = (*np.broadcast_shapes(q.shape[:-2], k.shape[:-2]), q.shape[-2], k.shape[-2]), DIMS[: rank - 2]
        along = next((f.moves[-2] for f in (k, v) if not isinstance(f.moves[-2], str)), STILL)
        moves = tuple(m if s > 1 else STILL for m, s in zip((*out.moves[:-1], along), shape, strict=True))
        blank, visible = replace(q, shape=shape, moves=moves), torch.ones(shape[-2:], dtype=torch.bool).tril()
        scores = self._form(blank, [(q, lead + "xz"), (k, lead + "yz")], lead + "xy", "", torch.mul, "monotone")
        causal = self._constant(tuple(visible.shape), "bool", visible) if b["is_causal"] else None
        for m in (f for f in (causal, b["attn_mask"]) if f is not None):
            plain = (m.low == -1) & (m.high == 1) & (not m.constant)  # a mask of which nothing is known may hide
            added = replace(m, low=np.where(plain, -INF, m.low), high=np.where(plain, INF, m.high))
            if m.dtype == "bool":
                ends = (torch.tensor(x, dtype=getattr(torch, q.dtype)) for x in (0.0, -INF))
                added = self._pointwise(replace(q, shape=m.shape, moves=m.moves), torch.where, "choice", m, *ends)
            scores = self._pointwise(blank, torch.add, "monotone", scores, added)
        weights = self._softmax("safe", {"self": scores, "dim": -1}, [blank])[0]
        return [self._form(out, [(weights, lead + "xy"), (v, lead + "yz")], lead + "xz", "", torch.mul, "monotone")]

    def _repeated(self, f: _Fact, heads: int) -> _Fact:
        wide = replace(f, shape=(*f.shape[:-3], heads, *f.shape[-2:]), moves=(*f.moves[:-3], STILL, *f.moves[-2:]))
        times = heads // f.shape[-3]
        return self._moved("repeat", {"self": f}, [wide], lambda leaf: [leaf(f).repeat_interleave(times, -3)])[0]

    def _labelled(
        self, name: str, b: Any, said: list[_Fact], run: Any, facts: Any, form: str, place: str
    ) -> list[_Fact]:
        if form == "equation":
            terms, arrow, result = b["equation"].replace(" ", "").replace("...", "*").partition("->")
            once = sorted(x for x in set(terms) if terms.count(x) == 1 and x.isalpha())
            form = terms.replace(",", " ") + "->" + (result if arrow else "*" * ("*" in terms) + "".join(once))
        terms, result = (x.strip() for x in form.split("->"))
        wide = len(facts[0].shape) if result == "-" else len(said[0].shape) - sum(x.isalnum() for x in result)
        dim, norm = b.get("dim", 0 if name == "msort" else None), b.get("normalized_shape", range(wide - 1))
        own = [dim] if isinstance(dim, int) else dim or range(wide)[-len(b.get("s") or range(wide)) :]
        mixed = "normalized_shape" in b or name == "group_norm"
        dims = range(wide)[-len(norm) :] if mixed else sorted({d % max(wide, 1) for d in own})
        kinds = {"#": DIMS, "<": "ABCDEFGHIJ", ">": "abcdefghij"}
        texts = {
            c: "".join(x[d] if d in dims else DIMS[d] for d in range(wide)) for c, x in (kinds | {"*": DIMS}).items()
        }
        texts |= {"-": "".join(DIMS[d] for d in range(wide) if d not in dims), "#": "".join(DIMS[d] for d in dims)}
        labels = ["".join(texts.get(c, c) for c in t) for t in (*terms.split(), "*" if b.get("keepdim") else result)]
        *labels, goal = labels
        labels += [labels[-1]] * (len(facts) - len(labels))
        pairs = [(f, t[len(t) - len(f.shape) :]) for f, t in zip(facts, labels, strict=False)]
        first, _, rest = place.partition("+")
        product, made = (lambda *x: reduce(torch.mul, x)) if len(facts) < 3 or name == "einsum" else None, []
        _need(not b.get("training"), "what depends on training")
        first += "" if b.get("sorted", True) else rest  # where the largest need not stand in order
        for k, out in enumerate(said):
            still = "".join("".join(kinds[c][d] for d in dims) if c in kinds else c for c in first + rest * (k > 0))
            if 0 in out.shape:
                f = self._fact(out, NEVER)
            else:
                f = self._form(out, pairs, goal, *(("", product, "monotone") if place == "zero" else (still,)))
            over: dict[str, Any] = {"axis": tuple(dims), "keepdims": True}
            if mixed:
                low, high = (x.max(**over) * 1.0 for x in (-f.low, f.high))
                f = replace(f, level=f.level.max(**over), low=-low, high=high)
            if "cum" in name:  # a running one meets all that came before
                low, high, level = (np.maximum.accumulate(x, axis=dims[0]) for x in (-f.low, f.high, f.level))
                f = replace(f, level=level, low=-low, high=high)
            if name == "scatter" and b.get("reduce") is None and isinstance(b.get("src"), _Fact):  # one or the other
                ends = (b["self"], b["src"])
                low, high = min(x.low.min() for x in ends), max(x.high.max() for x in ends)
                f = replace(f, low=0 * f.level + low, high=0 * f.level + high)
            if "int" in out.dtype and all("float" in x.dtype for x in facts):  # a place, or a count
                f = replace(f, low=0 * f.level - 1.0, high=0 * f.level + 1.0)
            made.append(f)
        return made

    def _indexed(self, name: str, b: Any, said: list[_Fact], run: Any, facts: Any, *_: Any) -> list[_Fact]:
        x, put = b["self"], [b["values"]] if "values" in b else []
        _need(name != "index_select" or (x.shape and len(b["index"].shape) == 1), "single numbers")
        places = [None] * (b["dim"] % len(x.shape)) + [b["index"]] if name == "index_select" else b["indices"]
        if not put and all(f.tensor is not None for f in facts if f is not x):
            return self._moved(name, b, said, run)
        read, own = [d for d, f in enumerate(places) if f is not None], DIMS[: len(x.shape)]
        _need(all(places[d].dtype not in ("bool", "uint8") for d in read), "a boolean index")
        line = "stuvwxyz"[: max(len(places[d].shape) for d in read)]
        first, rest = (
            read[0] * (read[-1] - read[0] < len(read)),
            "".join(own[d] for d in range(len(own)) if d not in read),
        )
        whole, still = rest[:first] + line + rest[first:], "".join(own[d] for d in read) + line * len(put)
        parts = zip([x, *(places[d] for d in read), *put], [own, *(line for _ in read), whole], strict=False)
        return [self._form(said[0], [(f, t[len(t) - len(f.shape) :]) for f, t in parts], own if put else whole, still)]

    def _convolution(self, name: str, b: Any, said: list[_Fact], run: Any, facts: Any, *_: Any) -> list[_Fact]:
        """Which places each output reads is seen by running it on ones, for each level."""
        (out,), x, weight, rank = said, b["input"], b["weight"], len(said[0].shape)
        first, one = rank - len(weight.shape) + 2, np.ones((1,) * rank)
        level = x.level.max(axis=first - 1, keepdims=True)
        level = np.broadcast_to(level, (*level.shape[:first], *x.shape[first:]))
        seen, ones = one * NEVER, torch.ones(1, 1, *weight.shape[2:]).double()
        for v in np.unique(level):
            (hit,) = run(lambda _: None, input=torch.from_numpy((level >= v) * 1.0), weight=ones, bias=None, groups=1)
            seen = np.where(hit.numpy() > 0, v, seen)
        moving, wide = set(b["stride"]) != {1}, (1,) * first + tuple(weight.shape[2:])
        spread = [d for d in range(first, rank) if moving or wide[d] > 1 or x.shape[d] != out.shape[d]]
        place = "".join(DIMS[d] for d in [first - 1, *spread]) + "ypqrstuv"
        end = one if x.ordinary.all() else one * INF
        plain = replace(x, shape=(*x.shape[:first], *out.shape[first:]), level=seen.astype(int), low=-end, high=end)
        rest = [(f, "pqrstuv"[: len(f.shape)]) for f in facts if f is not x]
        return [self._form(out, [(plain, DIMS[: first - 1] + "y" + DIMS[first:rank]), *rest], DIMS[:rank], place)]

    def _pooled(self, name: str, b: Any, said: list[_Fact], run: Any, *_: Any) -> list[_Fact]:
        """Which places a window reads is seen by running it on ones, for each level."""
        (out,), x, lead = said, b["self"], len(said[0].shape) - int(name[-2])
        level = np.broadcast_to(x.level, (*x.level.shape[:lead], *x.shape[lead:]))
        seen = np.full((*level.shape[:lead], *out.shape[lead:]), NEVER)
        for v in np.unique(level[level > NEVER]):
            (hit,) = run(lambda _: None, self=torch.from_numpy((level >= v) * 1.0))
            seen = np.where(hit.numpy() > 0, v, seen)
        end, own = np.full((1,) * len(out.shape), 1 if x.ordinary.all() else INF), DIMS[: len(out.shape)]
        plain = replace(x, shape=(*x.shape[:lead], *out.shape[lead:]), level=seen, low=-end, high=end)
        return [self._form(out, [(plain, own)], own, own[lead:])]
