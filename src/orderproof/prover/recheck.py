"""Replay a certificate: every step must follow from the steps before it, and the last must be what the law asks.

No code is shared with the interpreter. A step says how its result moves; derived here, and compared with its fact, are
for each element the first case that can change it (`level`) and the ends between which it lies (`low`, `high`).

Almost every operator is a labelled form, as in einsum: along a label of the result operands move as it does; another is
summed, and they move alike along it; along one read by place nothing moves. A line of `_TABLE` holds a lemma, and
forms, each with the labels it reads by place (behind a +: in later results only) and its operators, to which A NEW ONE
IS ADDED without outer underscores. Further operands are as the last written. The place `zero`: known zeros make zeros.

    *  are the dimensions, from the right    -  those but `dim`    #  `dim`    <  >  all with `dim` renamed    x 1  one

Or a form is a word: `moved`, elements are only moved, and it is run on their numbers; `each`, an element is made of
those at its place, `monotone`, and lies between what their ends give. Constants are computed by the operator itself,
like steps are checked once, and what is not listed is refused.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
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
BOUNDED = "scores of visible tokens are finite and small beside the masking value (finite mask, not -inf)"
UNDEFINED = {"empty", "new_empty", "empty_like", "empty_strided", "empty_permuted", "new_empty_strided", "from_file"}
UNDEFINED |= {"empty_quantized", "resize", "resize_as", "resize_output", "as_strided", "as_strided_copy"}  # memory, and
UNDEFINED |= {"as_strided_scatter", "reshape_alias", "reshape_alias_copy"}  # what depends on how a tensor lies in it
FILLS = {"zeros_like", "ones_like", "new_zeros", "new_ones", "full_like", "new_full"}  # determined by a shape alone
SAME, PURE = "same_in_both_runs", "pure_function_of_unmoved"
_TABLE = """
movement_equivariant | moved | | cat concat concatenate stack flip roll repeat tile repeat_interleave copy
movement_equivariant | moved | | slice_scatter select_scatter pad constant_pad_nd unsafe_split unsafe_chunk unsafe_view
pointwise_equivariant | choice | | where masked_fill | moved | | tril triu | quotient | | div true_divide
pointwise_equivariant | each | | log_sigmoid prelu_kernel xor polar real complex imag conj resolve_conj resolve_neg
pointwise_equivariant | boolean | | logical_and logical_or logical_not bitwise_and bitwise_or and or
pointwise_equivariant | monotone | | add sub rsub mul multiply neg exp exp2 expm1 relu elu sigmoid softplus hardtanh
pointwise_equivariant | monotone | | clamp.default clamp_min.default clamp_max.default clone to_copy to type_as alias
pointwise_equivariant | monotone | | contiguous lift_fresh_copy positive detach dropout feature_dropout alpha_dropout
pointwise_equivariant | monotone | | max.other maximum
contraction_equivariant | *xy *yz -> *xz | zero | mm bmm matmul.mm | *xy y -> *x | zero | mv matmul.mv
contraction_equivariant | y *yz -> *z | zero | matmul.vm | y y -> | zero | dot matmul.vv | equation | zero | einsum
contraction_equivariant | *y zy z -> *z | zero | linear | *xz *xy *yz -> *xz | | addmm baddbmm
softmax_equivariant | softmax | | softmax safe_softmax log_softmax
attention_equivariant | attention | | scaled_dot_product_attention
normalisation_equivariant | * > # -> * | | layer_norm native_layer_norm rms_norm fused_rms_norm
normalisation_equivariant | * > 1 -> * | 1 | group_norm
channelwise_equivariant | * 1 -> * | | batch_norm native_batch_norm_legit_no_training
reduction_invariant | * -> - | zero | sum mean nansum | * -> - | # | argmax argmin
reduction_invariant | * -> - | | prod amin any all var std norm count_nonzero min.default max.default linalg_vector_norm
reduction_invariant | * -> - | +# | min.dim median.dim mode
extreme_of_visible | softmax | | amax logsumexp | softmax | +# | max.dim
lookup_equivariant | yz * -> *z | y | embedding | < * -> * | < | gather | indexed | | index unsafe_index index_select
scan_dependence | * -> * | # | cumsum cumprod logcumsumexp cummax cummin | < -> > | >+< | sort topk msort
scan_dependence | < -> > | <> | argsort | convolution | | conv1d conv2d conv3d convolution
scan_dependence | pooled | | avg_pool1d avg_pool2d max_pool1d max_pool2d max_pool2d_with_indices adaptive_avg_pool1d
scan_dependence | pooled | | adaptive_avg_pool2d upsample_nearest2d upsample_bilinear2d upsample_bicubic2d
dense_dependence | written | | scatter.src scatter.value
dense_dependence | * < > -> * | #<> | scatter scatter_add scatter_reduce | *y -> * | y | view_as_complex
dense_dependence | * y > -> * | #y> | index_add index_copy index_fill | * -> *y | y | view_as_real | < -> > | <> | fft
dense_dependence | tuvw txyz -> tuxy | vwz | grid_sampler grid_sampler_2d
dense_dependence | indexed | | index_put index_put_impl unsafe_index_put
"""
TABLE: dict[str, tuple[str, str, str]] = {"view.dtype": ("movement_equivariant", "each", "")}
for _lemma, *_cells in ([x.strip() for x in line.split("|")] for line in _TABLE.strip().split("\n")):
    TABLE |= {n: (_lemma, f, p) for f, p, x in zip(*(_cells[k::3] for k in range(3)), strict=True) for n in x.split()}


@dataclass(frozen=True)
class Checked:
    """What a certificate that holds proves, and what it rests on."""

    law: str
    output: str
    subject: str
    steps: int
    assumptions: tuple[str, ...]
    weights: str
    given: tuple[str, ...]  # of what it is a proof: where tokens stand, what is held fixed, what is replaced


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
    key: str = ""  # of all that was said and derived
    among: Any = None  # of places of lines: along which dimension, and which places are among them for certain

    @property
    def ordinary(self) -> Any:
        most = INF if self.dtype[:3] in ("int", "uin", "boo") else LARGE / 10 if self.dtype == "float16" else LARGE
        return (abs(self.low) < most) & (abs(self.high) < most)

    @property
    def mask(self) -> float:
        return -LARGE if self.dtype == "float16" else -1e8

    def content(self, said: Any) -> str:
        ends = [[a.shape, a.dtype.str, a.tobytes().hex()] for a in (self.low, self.high)]
        among = self.among and [self.among[0], self.among[1].shape, self.among[1].tobytes().hex()]
        return _hash([said, self.moves, self.constant, self.tensor is None, ends, among])


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


def _dilated(operator: str, args: Any, kwargs: Any) -> bool:
    """Whether windows may hold border alone, of which the largest is minus infinity."""
    return "max_pool" in operator and not set(tree_leaves([args[4:5], kwargs.get("dilation", 1)])) <= {1}


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
        law, said, n, rows = c["law"], c["relation"], c["relation"]["tokens"], len(c["relation"].get("replaced", [0]))
        bare = [{k: v for k, v in s.items() if k not in ("lemma", "fact", "as")} for s in c["steps"]]
        _need(c["digest"] == _hash({k: v for k, v in c.items() if k != "digest"}), "its digest is not that of its text")
        _need(c["graph"] == _hash(bare), "its graph fingerprint is not that of its steps")
        known = c["certificate"] == 1 and c["code"] == LAWS.get(law) and c["weights"] in ("all", "these")
        _need(known and type(n) is int and 1 <= n <= LARGEST, "its version, law, code, weights or tokens are none")
        self.c, self.law, self.tokens, self.inputs, self.assumed = c, law, n, c["inputs"], BOUNDED in c["assumptions"]
        self.facts, self.keys, self.done = dict[str, Any](), dict[str, str](), dict[str, Any]()
        movable, row, place, pads = n - (law == "prompt_blind"), np.arange(rows)[:, None], np.arange(n), max(1, n // 3)
        cycle = (*range(1, movable), *range(min(1, movable)), *range(movable, n))
        group = ((1, 0, *range(2, n)), cycle)[movable < 3 :]  # they generate every order of the movable
        left = pads - pads // 2 if n > 2 else pads
        sides = np.where(row % 2 == 0, place < pads, place >= n - pads)
        padded = sides if rows > 1 else (place < left) | (place >= n - pads + left)
        halves = [place < n // 2, place >= n // 2]
        mate = [line[:1] for line in said["replaced"]].index([1]) if law == "batch" else 0  # any row
        slots = {"padding": [padded], "packing": halves, "batch": [row == mate]}.get(law, [])
        self.group = () if slots or law == "causal" else (tuple(range(n))[::-1],) if law == "mirror_blind" else group
        relation = {"tokens": n, "generators": [list(p) for p in self.group], "last_only": movable < n}
        choices = [np.broadcast_to(x, (rows, n)) for x in slots]  # which slots [row, token] are replaced
        options = [{**relation, "replaced": (x * 1).tolist(), "asked": (~x * 1).tolist()} for x in choices]
        _need(c["family"] == ("permutation" if self.group else "influence"), "its family is not its law's")
        _need(said in (options or [relation]), "its relation between the runs is not its law's")
        self.replaced: Any = choices[options.index(said)] if choices else None
        _need(self.replaced is None or not self.replaced.all(), "nothing is asked")
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
        assumed = tuple(map(str, self.c["assumptions"]))
        return Checked(*texts, len(self.facts), assumed, str(self.c["weights"]), tuple(self._given()))

    def _given(self) -> Iterator[str]:
        """What a reader must know of the relation: with tokens held fixed, or begun late, much is easily proved."""
        operators = {s["node"]: s["operator"] for s in self.c["steps"]}
        for node, axis in self.inputs.items():
            where = "" if operators[node] == "input" else ", inside the graph"
            dims = [str(a) for a in tree_leaves(axis) if a is not None]
            said = f"{self.tokens} tokens along dimension {' and '.join(dims)}" if dims else "the same in both runs"
            yield f"{node}: {said}{where}"
        if self.law in ("packing", "batch"):
            what, line = ("document", self.replaced[0]) if self.law == "packing" else ("row", self.replaced[:, 0])
            end = "the first " if line[0] else "the last " if line[-1] else ""
            yield f"replaced: {end}{what}{'' if end else f' {line.argmax()}'}"

    def _last_word(self, f: _Fact, dims: dict[int, Any]) -> None:
        one = self.group or len(dims) == 1 or (self.law == "batch" and not dims)
        _need(one, "the output has not one token dimension")
        moves, allowed = self._related(f.shape, dims, ALWAYS)
        for d in dims if self.law == "prompt_blind" else ():  # the last token stays, and is unchanged
            last, moves[d] = dims[d] + self.tokens - 1, f.moves[d]
            _need(
                isinstance(moves[d], str) or all(p[last] == last for p in moves[d]), "the output moves its last token"
            )
            place = np.arange(f.shape[d]).reshape([-1 if k == d else 1 for k in range(len(f.shape))])
            allowed = np.where(place == last, allowed, ALWAYS)
        fits = (self._settled(f, moves) <= allowed).all()
        _need(fits, "the output may depend, at some token, on one that it must not depend on, or moves differently")

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
            sizes = [shape[k] if k == d else len(line) if k == 0 else 1 for k in range(len(shape))]
            level = level if self.group else line.reshape(sizes)
        if self.law == "batch" and other == ALWAYS and not dims:
            level = np.where(self.replaced, other, NEVER)[:, 0].reshape([-1] + [1] * (len(shape) - 1))
        return moves, level

    def _move(self, data: Any, size: int) -> Any:
        if data in (STILL, FREE):
            return data
        rows, own = tuple(tuple(p) for p in data), list(range(size))
        good = all(all(type(i) is int for i in p) and sorted(p) == own for p in rows) and len(rows) == len(self.group)
        _need(good, "a move that is not one permutation for each generator")
        return rows if any(p != tuple(own) for p in rows) else STILL

    def _step(self, step: Mapping[str, Any]) -> Any:
        data, lemma, node, shape, dtype = (step[k] for k in ("fact", "lemma", "node", "shape", "dtype"))
        if data is None:
            return None  # no tensor; whoever reads it is refused
        _need(lemma == "given" or node not in self.inputs, "it is an input, and not given")
        literals = [step["args"], sorted(step["kwargs"].items())]
        args, kwargs = filled = tree_map(self._value, literals, is_leaf=lambda x: isinstance(x, dict))
        named = str(tree_map_only(_Fact, lambda f: (f.key,), filled))
        key = _hash([step["operator"], lemma, data, shape, dtype, named, node if lemma == "given" else ""])
        _need("as" not in step or key == self.keys[step["as"]], "it is not as the step that it names")
        if key not in self.done:  # like steps are checked once
            parts = list(zip(data, shape, dtype, strict=True)) if isinstance(data, list) else [(data, shape, dtype)]
            said = [self._read(*part) for part in parts]
            derived = self._derived(step, said, args, dict(kwargs))
            made = [self._compared(*pair) for pair in zip(said, derived, strict=True)]
            among = self._among(step["operator"], args, dict(kwargs))
            among = among if step["lemma"] != "given" else None  # what is given need not be what was computed
            made = [replace(f, among=among if k == len(made) - 1 else None) for k, f in enumerate(made)]
            made = [replace(f, key=f.content(part)) for f, part in zip(made, parts, strict=True)]
            self.done[key] = made if isinstance(data, list) else made[0]
        self.keys[node] = key
        return self.done[key]

    def _among(self, operator: str, args: Any, kwargs: Any) -> Any:
        """Of at most k visible entries, the others masked, the places of the k largest hold every one."""
        x: Any = args[0] if args else None
        name = operator.removeprefix("aten.").split(".")[0]
        if name == "getitem":
            return x[args[1]].among
        if name in ("_to_copy", "to") and isinstance(x, _Fact) and x.dtype in ("int32", "int64"):
            return x.among if kwargs.get("dtype", args[-1]) in (torch.int32, torch.int64) else None
        b = dict(zip(("self", "k", "dim", "largest"), args, strict=False)) | kwargs
        if name != "topk" or not isinstance(x, _Fact) or not x.shape:
            return None
        dim = b.get("dim", -1) % len(x.shape)
        line: dict[str, Any] = {"axis": dim, "keepdims": True}
        wide = [s if d == dim else 1 for d, s in enumerate(x.shape)]
        masked, plain, whole = np.broadcast_arrays(
            (x.high <= x.mask) & ((x.high == -INF) | self.assumed),
            (x.low > x.mask / 10) & (x.high < INF),
            np.full(wide, b["k"] >= x.shape[dim]),
        )
        few = (plain | masked).all(**line) & (plain.sum(**line) <= b["k"]) & b.get("largest", True)
        return dim, np.array(whole | (plain & few))

    def _value(self, x: Any) -> Any:
        if not isinstance(x, dict):
            return x
        ((kind, name),) = x.items()
        _need(kind != "node" or self.facts[name] is not None, "it reads a step without a tensor")
        if kind in ("node", "float"):
            found = float(name) if kind == "float" else self.facts[name]
            return replace(found) if isinstance(found, _Fact) else found  # like steps share a fact, not their values
        return torch.device("cpu") if kind == "device" else getattr(torch, str(name).removeprefix("torch."))

    def _derived(self, step: Mapping[str, Any], said: list[_Fact], args: Any, kwargs: Any) -> Sequence[_Fact]:
        lemma, operator, node, first = step["lemma"], step["operator"], step["node"], said[0]
        if lemma == "nothing_follows":
            leaves = tree_leaves([args, kwargs])
            large = any(isinstance(x, int | float) and not abs(x) < LARGE and x != END for x in leaves)
            large = large or _dilated(operator, args, kwargs)
            read = [f for f in leaves if isinstance(f, _Fact)]
            plain = (
                operator.split(".")[1].strip("_") not in UNDEFINED and all(f.ordinary.all() for f in read) and not large
            )
            _need(all(FREE not in s.moves for s in said), "its fact says something")
            fine = [plain or (k > 0 and "int" in s.dtype) for k, s in enumerate(said)]  # places, and counts
            return [self._fact(s, ALWAYS, *((-1, 1) if x else (-INF, INF))) for s, x in zip(said, fine, strict=True)]
        if lemma == "given":
            axes = [a for a in tree_leaves(self.inputs.get(node)) if a is not None]
            start = operator == "input" or (axes and len(self.inputs) == 1)  # the relation may begin inside the graph
            _need(start and (len(axes) <= 1 or self.group), "it is given, and is no input, or has several axes")
            _need(all(first.shape[a] == self.tokens for a in axes), "it has no such axis")
            moves, level = self._related(first.shape, dict.fromkeys(axes, 0), 0)
            return [self._fact(replace(first, moves=tuple(moves)), level if node in self.inputs else ALWAYS)]
        if operator in ("parameter", "buffer") and lemma == SAME:
            (stored,), opaque = args, operator == "parameter" and self.c["weights"] == "all"
            data = None if opaque else self.c["values"].get(stored)
            _need(isinstance(stored, str) and not kwargs, "it is stored under no name")
            _need(data is None or data["dtype"] == first.dtype, "its value has another dtype")
            array = None if data is None else torch.from_numpy(_array(data, first.shape))
            return [self._constant(first.shape, first.dtype, array)]
        if operator == "getitem" and lemma == "part_of_a_tuple":
            whole, place = args
            _need(isinstance(whole, list) and type(place) is int and place >= 0, "it is no part")
            return [whole[place]]
        return self._applied(operator, lemma, said, args, kwargs)

    def _read(self, data: Any, shape: Any, dtype: str) -> _Fact:
        moves = tuple(self._move(m, s) for m, s in zip(data["moves"], shape, strict=True))
        zero = {"shape": [1] * len(shape), "runs": [[0, 1]]}
        known, level = data["known"] or {"status": zero, "value": zero}, _array(data["level"], shape, "i")
        status, value = _array(known["status"], shape, "i"), _array(known["value"], shape)
        _need("float" in dtype or (status != 2).all(), "a mask among whole numbers")
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
        made = replace(self._fact(_Fact(shape, dtype, (STILL,) * len(shape), 0, 0, 0), NEVER), constant=True)
        if tensor is None:
            return made
        tensor = tensor.to(getattr(torch, dtype)).expand(shape)
        value = _compressed((tensor.double() if tensor.dtype is torch.bfloat16 else tensor).numpy())
        moves = tuple(FREE if s == 1 < n else STILL for s, n in zip(value.shape, shape, strict=True))
        return replace(made, moves=moves, low=value, high=value, tensor=tensor)

    def _compared(self, said: _Fact, derived: _Fact) -> _Fact:
        """What is said, if it follows from what is derived."""
        _need((said.shape, said.dtype) == (derived.shape, derived.dtype), f"it is {derived.dtype} {derived.shape}")
        level = self._settled(derived, said.moves)
        _need((said.level >= level).all(), "some element may depend on more than its level says, or moves differently")
        derived = replace(derived, moves=said.moves, level=level) if derived.tensor is None else derived
        if derived.constant and not said.status.any():
            return derived
        exact = (derived.low == said.low) & (derived.high == said.high)
        # But for an ordinary number and rounding: anything more, said step by step, would add up.
        room = np.where(np.isinf(said.high), 0, 2 - 1e-6 * said.high)
        masked = (derived.high <= said.high + room) & (said.high <= said.mask)
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
        """Levels of a fact that is said to move like this."""
        pairs = [(m, t) for s, m, t in zip(f.shape, f.moves, moves, strict=True) if s > 1]
        _need(all(t != FREE or m == FREE for m, t in pairs), "it says to be free along a dimension that is not")
        return f.level if all(m in (t, FREE) for m, t in pairs) else np.where(self._same(f, moves), NEVER, ALWAYS)

    def _form(self, out: _Fact, operands: Any, result: str, place: str = "", run: Any = None, how: str = "") -> _Fact:
        """A labelled form of (operand, labels); `run` computes it, where it is `monotone` also at the ends."""
        names, rank = list(dict.fromkeys(result + "".join(labels for _, labels in operands))), len(out.shape)
        sizes, target = {x: s for x, s in zip(result, out.shape, strict=True) if s > 1}, dict[str, Any]()
        for f, labels in operands:
            for x, s, m in ((x, s, m) for x, s, m in zip(labels, f.shape, f.moves, strict=True) if s > 1):
                _need(sizes.setdefault(x, s) == s, "its operands differ in size")
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

    def _pointwise(self, out: _Fact, run: Any, how: str, *operands: Any) -> _Fact:
        """A form in which every dimension stands for itself, of facts and numbers."""
        numbers = [f if isinstance(f, _Fact) else torch.tensor(f, dtype=getattr(torch, out.dtype)) for f in operands]
        facts = [f if isinstance(f, _Fact) else self._constant((), out.dtype, f) for f in numbers]
        own = DIMS[: len(out.shape)]
        sizes = [zip(reversed(f.shape), reversed(out.shape), strict=False) for f in facts]
        _need(all(s in (1, t) for pairs in sizes for s, t in pairs), "an operand is larger than the result")
        return self._form(out, [(f, own[len(own) - len(f.shape) :]) for f in facts], own, "", run, how)

    def _applied(self, operator: str, lemma: str, said: list[_Fact], args: Any, kwargs: Any) -> Sequence[_Fact]:
        """What follows from an operator's arguments."""
        space, name, overload = operator.split(".")
        op = getattr(getattr(torch.ops.aten, name), overload)
        known = space == "aten" and isinstance(op, torch._ops.OpOverload) and name.strip("_") not in UNDEFINED
        _need(known and not op._schema.is_mutable, "there is no check for this operator")
        schema = op._schema.arguments
        places = [x.name for x in schema if not x.kwarg_only][: len(args)]
        b: dict[str, Any] = {x.name: x.default_value for x in schema} | dict(zip(places, args, strict=True)) | kwargs
        for x in schema:  # torch may crash on a missing tensor, or on a number in the place of a dtype
            kind, v = str(x.real_type), b[x.name]
            gap = "Optional" not in kind and None in (v if isinstance(v, list) else [v])
            coded = isinstance(v, int) and v != x.default_value
            coded = coded and any(t in kind for t in ("ScalarType", "Layout", "Memory", "Device"))
            _need(not gap and not coded, f"its {x.name} is missing, or of another kind")
        off = b.get("train") is False or 0 in (b.get("p"), b.get("dropout_p"))
        _need(off or torch.Tag.nondeterministic_seeded not in op.tags, "it is random")

        def run(leaf: Any, device: str = "cpu", **other: Any) -> list[Any]:
            where = {"device": torch.device(device)} if "device" in b else {}
            made = op(**(tree_map_only(_Fact, leaf, b) | where | other))
            return [made] if isinstance(made, torch.Tensor) else list(made)

        facts = [f for f in tree_leaves(b) if isinstance(f, _Fact)]
        meta = run(lambda f: torch.empty(f.shape, dtype=getattr(torch, f.dtype), device="meta"), "meta")
        typed = [(tuple(t.shape), str(t.dtype).removeprefix("torch.")) for t in meta]
        same = [(s.shape, s.dtype) == t for s, t in zip(said, typed, strict=True)]
        _need(all(same[: 1 if name == "_native_batch_norm_legit_no_training" else None]), f"it is {typed}")
        ranks = "".join("v" if len(f.shape) == 1 else "m" for f in facts)
        view, pointwise = ("movement_equivariant", "moved", ""), ("pointwise_equivariant", "each", "")
        other = view if op.is_view else pointwise if torch.Tag.pointwise in op.tags else ("", "", "")
        name = "fft" if "fft" in name else name.strip("_")
        own, form, place = TABLE.get(f"{name}.{ranks if name == 'matmul' else overload}") or TABLE.get(name) or other
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
        numbers = [v for k, v in b.items() if k not in ("p", "ord") and isinstance(v, int | float)]
        large = any(not abs(v) < LARGE for v in numbers) or _dilated(name, args, kwargs)
        if large and form not in (
            "monotone",
            "moved",
            "choice",
            "written",
        ):  # what a large number makes is not ordinary
            made = [self._fact(d, d.level, *(np.where(d.low == d.high, d.low, x) for x in (-INF, INF))) for d in made]
        return [replace(d, level=d.level * 0 + NEVER, constant=True) for d in made] if constant else made

    def _each(self, name: str, b: Any, said: list[_Fact], run: Any, facts: Any, form: str, *_: Any) -> list[_Fact]:
        read = facts[:1] if name in ("type_as", "to") else facts
        how = "each" if "complex" in said[0].dtype else form

        def numbers(*at: Any) -> Any:
            spare = {id(f): torch.zeros((), dtype=getattr(torch, f.dtype)) for f in facts}
            return run(lambda f: (spare | dict(zip(map(id, read), at, strict=True)))[id(f)])[0]

        return [self._pointwise(out, numbers, how, *read) for out in said]

    _monotone = _quotient = _boolean = _each

    def _choice(self, name: str, b: Any, said: list[_Fact], *_: Any) -> list[_Fact]:
        x, fill = b["self"], name == "masked_fill"
        parts = (b["mask"], b["value"], x) if fill else (b["condition"], x, b["other"])
        return [self._pointwise(said[0], torch.where, "choice", *parts)]

    def _moved(self, name: str, b: Any, said: list[_Fact], run: Any, *_: Any) -> list[_Fact]:
        """Run it on the numbers of its operands' elements; 0 stands for what it fills with."""
        data = [f for k in ("self", "input", "tensors", "src") for f in tree_leaves(b.get(k)) if isinstance(f, _Fact)]
        moves = b.get("mode", "constant") in ("constant", "reflect", "replicate", "circular")
        _need(moves, "it does more than move elements")
        _need(sum(math.prod(f.shape) for f in [*data, *said]) <= LARGEST, "it is too large to be run")
        group, fill, start, numbers = range(len(self.group)), b.get("value") or 0, 1, dict[int, Any]()
        columns = [[np.array([x])] for x in (NEVER, fill, fill, *(0 for _ in group))]
        for f in data:
            own = np.arange(start, start + math.prod(f.shape)).reshape(f.shape)
            start += own.size
            for d, m in enumerate(f.moves):
                own = np.broadcast_to(own.take([0], d) if m == FREE else own, f.shape)
            numbers[id(f)] = torch.from_numpy(own.copy())
            end = np.where(f.ordinary, 1, INF)  # a number may become another in a narrower type
            ends = (f.low, f.high) if f.dtype == said[0].dtype or "float" in said[0].dtype else (-end, end)
            told = (f.level, *ends, *(self._image(own, f.moves, g) for g in group))
            columns = [[*c, np.broadcast_to(a, f.shape).ravel()] for c, a in zip(columns, told, strict=True)]
        level, low, high, *to = (np.concatenate(c) for c in columns)

        def leaf(f: _Fact) -> Any:
            known = id(f) in numbers or f.tensor is not None or f is b.get("other")
            _need(known, "it moves elements to places that depend on the input")
            return numbers.get(id(f), torch.zeros(f.shape) if f.tensor is None else f.tensor)

        made = []
        for out, tensor in zip(said, run(leaf, **({"value": 0} if "pad" in name else {})), strict=True):
            source = tensor.numpy()
            free = [d for d, m in enumerate(out.moves) if m == FREE]
            _need(all((source == source.take([0], d)).all() for d in free), "it is not free along what it says to be")
            bad = [self._image(source, out.moves, g) != to[g][source] for g in group]
            arrays = (np.where(np.any(bad, axis=0), ALWAYS, level[source]), low[source], high[source])
            made.append(self._fact(out, *map(_compressed, arrays)))
        return made

    def _softmax(self, name: str, b: Any, said: list[_Fact], run: Any, _f: Any, _: str, place: str) -> list[_Fact]:
        """In a line, what is masked here and wherever it moves to counts for nothing beside a visible entry."""
        f, dim, safe = b["self"], b.get("dim"), "safe" in name
        dims = tuple(d % max(len(f.shape), 1) for d in ([dim] if isinstance(dim, int) else dim or range(len(f.shape))))
        line: dict[str, Any] = {"axis": dims, "keepdims": True}
        sound, alive = (f.high < INF).all(**line), (f.low > f.mask / 10).any(**line)
        masked, absent = f.high <= f.mask, f.high == -INF
        gone = sound & ((masked & alive & (absent | self.assumed)) | (absent & safe))
        both = reduce(np.logical_and, [self._image(gone, f.moves, g) for g in range(len(self.group))], gone)
        kept = replace(f, level=np.where(both, NEVER, f.level))
        if "softmax" not in name:
            plain = sound & f.ordinary.any(**line) & (f.high < LARGE).all(**line)
            wide = math.log(math.prod(f.shape[d] for d in dims)) if name == "logsumexp" else 0
            least, most = np.where(plain, -1, -INF), np.where(plain, 1, f.high.max(**line) + wide)
            ends = (least, np.where(plain | (most <= f.mask), most, INF))  # of what is masked throughout
            low, high = ends if b.get("keepdim") else (x.squeeze(dims) for x in ends)
            first, *rest = self._labelled(name, b, said, run, [kept], "* -> -", place)
            return [replace(first, low=low, high=high), *rest]
        number = sound & (safe | ((f.low > -INF) | (masked & ~absent)).any(**line))
        most, low, end = kept.level.max(**line), np.where(number, 0, -INF), np.where(number, 1 - gone, INF)
        if "log" in name:
            most, low = np.maximum(most, f.level), np.where(number & (f.low > -INF), -1, -INF)
            end = np.where(number, 1, INF)
        return [self._fact(replace(said[0], moves=f.moves), most, low, end)]

    def _attention(self, name: str, b: Any, said: list[_Fact], *_: Any) -> list[_Fact]:
        """A contraction, masks that are added, a safe softmax, a contraction."""
        (out,), q, k, v, rank = said, b["query"], b["key"], b["value"], len(said[0].shape)
        even = len(q.shape) == len(k.shape) == len(v.shape) == rank
        _need(even and abs(b["scale"] or 0) < LARGE, "ranks, or a scale")
        for f in (k, v) if b["enable_gqa"] else ():  # each of their heads serves several
            by, moves = q.shape[-3] // f.shape[-3], (*f.moves[:-3], STILL, *f.moves[-2:])
            wide = replace(f, shape=(*f.shape[:-3], *q.shape[-3:-2], *f.shape[-2:]), moves=moves)
            made = self._moved("", {"self": f}, [wide], lambda leaf, f=f, by=by: [leaf(f).repeat_interleave(by, -3)])
            k, v = (made[0] if x is f else x for x in (k, v))
        shape, lead = (*np.broadcast_shapes(q.shape[:-2], k.shape[:-2]), q.shape[-2], k.shape[-2]), DIMS[: rank - 2]
        blank, visible = replace(q, shape=shape), torch.ones(shape[-2:], dtype=torch.bool).tril()
        scores = self._form(blank, [(q, lead + "xz"), (k, lead + "yz")], lead + "xy", "", torch.mul, "monotone")
        causal = self._constant(tuple(visible.shape), "bool", visible) if b["is_causal"] else None
        for m in (f for f in (causal, b["attn_mask"]) if f is not None):
            plain = ((m.low == -1) & (m.high == 1)).all() & (not m.constant)  # one of which nothing is known may hide
            added = replace(m, low=np.where(plain, -INF, m.low), high=np.where(plain, INF, m.high))
            if m.dtype == "bool":
                added = self._pointwise(replace(q, shape=m.shape), torch.where, "choice", m, 0.0, -INF)
            scores = self._pointwise(blank, torch.add, "monotone", scores, added)
        weights = self._softmax("safe_softmax", {"self": scores, "dim": -1}, [blank], None, [], "", "")[0]
        return [self._form(out, [(weights, lead + "xy"), (v, lead + "yz")], lead + "xz", "", torch.mul, "monotone")]

    def _labelled(self, name: str, b: Any, said: Any, run: Any, facts: Any, form: str, place: str) -> list[_Fact]:
        if form == "equation":
            terms, arrow, result = b["equation"].replace(" ", "").replace("...", "*").partition("->")
            whole = [len(f.shape) == len(t) for f, t in zip(facts, terms.split(","), strict=True)]
            _need("*" not in terms or all(t[:1] == "*" for t in terms.split(",")) or all(whole), "an ellipsis inside")
            once = sorted(x for x in set(terms) if terms.count(x) == 1 and x.isalpha())
            form = terms.replace(",", " ") + "->" + (result if arrow else "*" * ("*" in terms) + "".join(once))
        terms, result = (x.strip() for x in form.split("->"))
        facts = facts[:1] * form.startswith("* >") + facts  # a normalisation reads itself and its whole lines
        wide = len(facts[0].shape) if result == "-" else len(said[0].shape) - sum(x.isalnum() for x in result)
        last = len(b.get("normalized_shape") or b.get("s") or range(wide - (name == "group_norm")))
        own = b.get("dim", 0 if name == "msort" else None)
        own = [own] if isinstance(own, int) else own or range(wide - last, wide)
        dims = sorted({d % max(wide, 1) for d in own})
        kinds = {"*": DIMS, "#": DIMS, "<": "ABCDEFGHIJ", ">": "abcdefghij"}
        texts = {c: "".join((x if d in dims else DIMS)[d] for d in range(wide)) for c, x in kinds.items()}
        texts |= {"-": "".join(DIMS[d] for d in range(wide) if d not in dims), "#": "".join(DIMS[d] for d in dims)}
        goal = "*" if b.get("keepdim") else result
        *labels, goal = ("".join(texts.get(c, c) for c in t) for t in (*terms.split(), goal))
        labels += [labels[-1]] * (len(facts) - len(labels))
        pairs = [(f, t[len(t) - len(f.shape) :]) for f, t in zip(facts, labels, strict=False)]
        first, _, rest = place.partition("+")
        product, made = (lambda *x: reduce(torch.mul, x)) if len(facts) < 3 or name == "einsum" else None, []
        _need(not b.get("training"), "what depends on training")
        lines = [[s for d, s in enumerate(f.shape) if d not in dims] for f in facts if name[:6] in ("gather", "scatte")]
        _need(all(x == lines[0] for x in lines), "it does not read, or write, every line")
        first += "" if b.get("sorted", True) else rest  # where the largest need not stand in order
        for k, out in enumerate(said):
            still = "".join("".join(kinds[c][d] for d in dims) if c in kinds else c for c in first + rest * (k > 0))
            how = ("", product, "monotone") if place == "zero" else (still,)
            f = self._fact(out, NEVER) if 0 in out.shape else self._form(out, pairs, goal, *how)
            if "int" in out.dtype and all("float" in x.dtype for x in facts):  # a place, or a count
                f = replace(f, low=0 * f.level - 1.0, high=0 * f.level + 1.0)
            if "cum" in name:  # whatever stands before it counts too
                line: dict[str, Any] = {"axis": dims[0], "keepdims": True}
                level = np.maximum.accumulate(f.level, axis=dims[0])
                f = replace(f, level=level, low=f.low.min(**line), high=f.high.max(**line))
            made.append(f)
        return made

    def _written(self, name: str, b: Any, said: list[_Fact], run: Any, facts: Any, *_: Any) -> list[_Fact]:
        """Each element is as it was, or what is written; a number, where it is certain to be."""
        (f,) = self._labelled(name, b, said, run, facts, "* < > -> *", "#<>")
        own, new = b["self"], b.get("src", b.get("value"))
        news = (new.low.min(), new.high.max()) if isinstance(new, _Fact) else (new, new)
        ends = np.minimum(own.low.min(), news[0]), np.maximum(own.high.max(), news[1])  # no number stays none
        low, high = (0 * f.level + end for end in ends)
        dim, sure = b["index"].among or (0, np.array([]))
        along = dim == b["dim"] % max(len(f.shape), 1) and sure.shape[dim : dim + 1] == f.shape[dim : dim + 1]
        if along and not isinstance(new, _Fact):  # of places of lines as long
            low, high = (np.where(sure, new, end) for end in (low, high))
        return [self._fact(replace(f, moves=f.moves), f.level, low, high)]

    def _indexed(self, name: str, b: Any, said: list[_Fact], run: Any, facts: Any, *_: Any) -> list[_Fact]:
        x, put = b["self"], [b["values"]] if "values" in b else []
        _need(name != "index_select" or (x.shape and len(b["index"].shape) == 1), "single numbers")
        places = [None] * (b["dim"] % len(x.shape)) + [b["index"]] if name == "index_select" else b["indices"]
        if not put and all(f.tensor is not None for f in facts if f is not x):
            return self._moved(name, b, said, run)
        read, own = [d for d, f in enumerate(places) if f is not None], DIMS[: len(x.shape)]
        if any(places[d].dtype in ("bool", "uint8") for d in read):  # a number, written where a mask says so
            _need(len(put) == len(read) == 1 == math.prod(put[0].shape), "a boolean index")
            mask, ones = places[read[0]], "qrstuvwxyz"[: len(put[0].shape)]
            return [self._form(said[0], [(x, own), (mask, own[read[0] :][: len(mask.shape)]), (put[0], ones)], own)]
        line = "stuvwxyz"[: max(len(places[d].shape) for d in read)]
        rest = "".join(own[d] for d in range(len(own)) if d not in read)
        first = read[0] if read[-1] - read[0] < len(read) else 0
        whole, still = rest[:first] + line + rest[first:], "".join(own[d] for d in read) + line * len(put)
        parts = zip([x, *(places[d] for d in read), *put], [own, *(line for _ in read), whole], strict=False)
        return [self._form(said[0], [(f, t[len(t) - len(f.shape) :]) for f, t in parts], own if put else whole, still)]

    def _convolution(self, name: str, b: Any, said: list[_Fact], run: Any, facts: Any, *_: Any) -> list[_Fact]:
        """Which places each output reads is seen by running it on ones, for each level."""
        (out,), x, kernel, rank = said, b["input"], b["weight"].shape[2:], len(said[0].shape)
        first, seen, ones = rank - len(kernel), np.array(NEVER), torch.ones(1, 1, *kernel).double()
        level = x.level.max(axis=first - 1, keepdims=True)
        level = np.broadcast_to(level, (*level.shape[:first], *x.shape[first:]))
        for v in np.unique(level):
            (hit,) = run(lambda _: None, input=torch.from_numpy((level >= v) * 1.0), weight=ones, bias=None, groups=1)
            seen = np.where(hit.numpy() > 0, v, seen)
        own = DIMS[first - 1]  # the channel of a result has weights of its own, where it is not transposed
        place, end = own + "ypqrstuv", np.full((1,) * rank, 1 if x.ordinary.all() else INF)
        for d, width in enumerate(kernel, start=first):
            place += DIMS[d] if width > 1 or set(b["stride"]) != {1} or x.shape[d] != out.shape[d] else ""
        plain = replace(x, shape=(*x.shape[:first], *out.shape[first:]), level=seen, low=-end, high=end)
        weights = ("p" if b.get("transposed") else own) + "qrstuv"[: len(kernel) + 1]
        rest = [(f, weights if len(f.shape) > 1 else own) for f in facts if f is not x]
        return [self._form(out, [(plain, DIMS[: first - 1] + "y" + DIMS[first:rank]), *rest], DIMS[:rank], place)]

    def _pooled(self, name: str, b: Any, said: list[_Fact], run: Any, *_: Any) -> list[_Fact]:
        """Which places a window reads is seen by running it on ones, for each level."""
        out, key = said[0], "self" if "self" in b else "input"
        x, lead = b[key], len(out.shape) - int(next(c for c in name if c.isdigit()))
        mixed = name in ("upsample_bilinear2d", "upsample_bicubic2d")  # of weights that may add up to zero
        whole = tuple(range(lead, len(x.shape))) if mixed else ()
        level = x.level.max(axis=whole, keepdims=True) if whole else x.level
        level = np.broadcast_to(level, (*level.shape[:lead], *x.shape[lead:]))
        seen = np.full((*level.shape[:lead], *out.shape[lead:]), NEVER)
        for v in np.unique(level[level > NEVER]):
            hit = run(lambda _: None, **{key: torch.from_numpy((level >= v) * 1.0)})[0]
            seen = np.where(hit.numpy() != 0, v, seen)  # what it divides by may be negative
        own, made = DIMS[: len(out.shape)], []
        for each in said:  # numbers, and their places
            end = np.full((1,) * len(out.shape), 1 if x.ordinary.all() or "int" in each.dtype else INF)
            plain = replace(x, shape=(*x.shape[:lead], *out.shape[lead:]), level=seen, low=-end, high=end)
            made.append(self._form(each, [(plain, own)], own, own[lead:]))
        return made
