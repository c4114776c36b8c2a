"""Replay a certificate: every step must follow from the steps before it, and the last must be what the law asks.

No code is shared with the interpreter that found the proof. A step says how its result moves; what then follows from
its operands is derived here (a level for each element, and what is known of its value), and compared with its fact.

    same_in_both_runs         deterministic, every operand constant; values are computed here, by the operator itself
    movement_equivariant      run on the coordinates c of its operands' elements: c(r(o)) = m(c(o)) for every element o
    pointwise_equivariant     every operand moves as the result, or has values that are the same at both ends
    contraction_equivariant   the same with summed labels, for which any one move will do; a known zero ends a term
    softmax_equivariant       an entry counts for nothing if it is masked here and wherever it moves to
    attention_equivariant     contraction, mask, softmax, contraction
    reduction_invariant, normalisation_equivariant, lookup_equivariant, scan_dependence, dense_dependence:
                              contractions of levels
    pure_function_of_unmoved  nothing moves; nothing_follows: the fact says nothing

Shapes and dtypes are computed anew on the meta device. An operator without a check is refused.
"""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from string import ascii_letters as ABC
from typing import Any

import numpy as np
import torch
from torch import Tensor

from orderproof.errors import CertificateError

Array = np.ndarray[Any, Any]
STILL, FREE = "still", "free"  # any other move is a tuple: one permutation for each generator
NEVER, ALWAYS, LARGEST = -1, 2**40, 1 << 26  # levels; elements of one array
UNKNOWN, EXACT, MASKED, UNSURE, LOW = range(5)
LAWS = {"order_blind": "OP101", "prompt_blind": "OP102", "mirror_blind": "OP103", "causal": "OP201"}
BOUNDED = "scores of visible tokens are finite and small beside the masking value (finite mask, not -inf)"
_ODD = (ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, StopIteration)
BROKEN: tuple[type[Exception], ...] = (*_ODD, RuntimeError, TypeError, ValueError)
SDPA = "scaled_dot_product_attention"

# Operators, by their names in ATen.
_REFUSED = "empty new_empty empty_like empty_strided empty_permuted new_empty_strided from_file"  # not determined
_FILLS = "zeros_like ones_like new_zeros new_ones full_like new_full"  # determined by a shape alone
_DROPS = "dropout feature_dropout alpha_dropout"
_COPIES = "clone _to_copy to type_as contiguous alias lift_fresh_copy positive detach " + _DROPS
_POINTWISE = "where masked_fill tril triu __and__ __or__ multiply log_sigmoid _prelu_kernel " + _COPIES  # and tagged
_POINTWISE += " real imag conj _conj resolve_conj resolve_neg polar complex"
_VIEWS = (
    "transpose t numpy_T permute movedim swapaxes unsqueeze squeeze expand expand_as broadcast_to copy slice select"
    " split split_with_sizes chunk unbind tensor_split"
)
_MOVEMENT = (
    "view _unsafe_view reshape flatten unflatten ravel reshape_as unsafe_split unsafe_chunk cat concat concatenate"
    " stack flip roll repeat tile repeat_interleave index_select constant_pad_nd pad"
    " slice_scatter select_scatter index unfold "
)
_REDUCTIONS = "sum mean prod amax amin any all logsumexp var std nansum norm linalg_vector_norm count_nonzero max min"
_SCANS = "cumsum cumprod logcumsumexp cummax cummin sort topk argsort conv1d conv2d conv3d convolution"
REFUSED, FILLS, DROPS, COPIES, POINTWISE, VIEWS, MOVEMENT, REDUCTIONS, SCANS = (
    frozenset(names.split())
    for names in (
        _REFUSED, _FILLS, _DROPS, _COPIES, _POINTWISE, _VIEWS, _MOVEMENT + _VIEWS, _REDUCTIONS, _SCANS
    )
)  # fmt: skip
WRITES = {"scatter", "scatter_add", "scatter_reduce", "index_add", "index_copy", "index_fill"}
SUMS = {"sum", "mean", "nansum"}
SELECTING = {"where", "masked_fill", "tril", "triu"}
BITWISE = {"bitwise_and", "__and__", "bitwise_or", "__or__"}
DECISIVE = dict.fromkeys(("mul", "multiply", "bitwise_and", "logical_and", "__and__"), 0.0) | {"add": -math.inf}
DECISIVE |= dict.fromkeys(("bitwise_or", "logical_or", "__or__"), 1.0)  # an operand of this value decides alone
BATCH_NORM = "_native_batch_norm_legit_no_training"  # in eval its two moments are empty, and say nothing
NORMS = {"layer_norm", "rms_norm", "group_norm", "batch_norm", BATCH_NORM}
PRODUCTS = {"mm": "ij,jk->ik", "bmm": "bij,bjk->bik", "mv": "ij,j->i", "dot": "i,i->", "linear": "", "matmul": ""}
PRODUCTS |= {"addmm": "ij,jk->ik", "baddbmm": "bij,bjk->bik", "einsum": ""}


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
    level: Array  # this and the next two: every dimension full or 1
    status: Array
    value: Array
    constant: bool = False
    tensor: Tensor | None = None  # the value of a constant that can be computed


class _Wrong(ValueError):
    pass


def recheck(certificate: Mapping[str, Any]) -> Checked:
    """Check every step of a certificate. Raises `CertificateError`, naming the first that does not follow."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"), torch.no_grad():
            warnings.simplefilter("ignore")
            return _Checker(certificate).run()
    except _Wrong as error:
        raise CertificateError(f"expected a certificate whose proof holds: {error}") from None
    except BROKEN as error:
        text = f"{type(error).__name__}: {str(error)[:200]}"
        raise CertificateError(f"expected a well-formed certificate; reading it failed: {text}") from error


def _need(condition: object, message: str) -> None:
    if not condition:
        raise _Wrong(message)


def _hash(data: object) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _number(x: Any) -> Any:
    value = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[x["float"]] if isinstance(x, dict) else x
    _need(isinstance(value, bool | int | float), "a value that is no number")
    return value


def _array(data: Mapping[str, Any], shape: Sequence[int], kinds: str = "bif") -> Array:
    sizes, counts = data["shape"], [c for _, c in data["runs"]]
    fits = all(type(a) is int and a in (1, b) for a, b in zip(sizes, shape, strict=True))
    _need(fits and all(type(c) is int and c > 0 for c in counts), "an array that does not fit its tensor")
    _need(sum(counts) == math.prod(sizes) <= LARGEST, "an array whose runs do not add up to its shape")
    values = np.array([_number(v) for v, _ in data["runs"]] or np.zeros(0, int))
    _need(values.dtype.kind in kinds, "an array of the wrong kind of number")
    array: Array = np.repeat(values, counts).reshape(sizes)
    return array


def _equal(a: Array, b: Array) -> Array:
    equal: Array = (a == b) | ((a != a) & (b != b))
    return equal


def _compressed(array: Array) -> Array:
    for d, size in enumerate(array.shape):
        if size > 1 and _equal(array, array.take([0], d)).all():
            array = array.take([0], d)
    return array


def _masked(f: _Fact) -> Array:
    low = f.value <= (-6e4 if f.dtype == "float16" else -1e8)
    masked: Array = (f.status == MASKED) | ((f.status == EXACT) & low & (f.value.dtype.kind == "f"))
    return masked


def _ordinary(f: _Fact) -> Array:
    plain = np.isfinite(f.value) & ((f.value > (-6e3 if f.dtype == "float16" else -1e7)) | (f.value.dtype.kind != "f"))
    ordinary: Array = (f.status == UNKNOWN) | ((f.status == EXACT) & plain)
    return ordinary


def _low(f: _Fact) -> Array:
    """Elements that are neither +inf nor NaN, nor as large as a mask."""
    low: Array = np.isin(f.status, (UNKNOWN, MASKED, LOW)) | ((f.status == EXACT) & (f.value < 6e4))
    return low


def _literal(x: Any) -> _Fact:
    if isinstance(x, _Fact):
        return x
    return _Fact((), "", (), np.array(NEVER), np.array(EXACT), np.array(_number(x)), constant=True)


def _mapped(x: Any, leaf: Callable[[Any], Any], kind: type = _Fact) -> Any:
    """The same lists and dicts with every leaf of this kind replaced."""
    if isinstance(x, kind):
        return leaf(x)
    if isinstance(x, dict):
        return {k: _mapped(v, leaf, kind) for k, v in x.items()}
    return [_mapped(y, leaf, kind) for y in x] if isinstance(x, list) else x


def _operands(x: Any) -> list[_Fact]:
    found: list[_Fact] = []
    _mapped(x, found.append)
    return found


def _widened(array: Any, rank: int) -> Array:
    array = np.asarray(array)
    wide: Array = array.reshape((1,) * (rank - array.ndim) + array.shape)
    return wide


def _right(fact: _Fact, rank: int) -> str:
    """The labels of an operand that broadcasts against a result of this rank."""
    return ABC[rank - len(fact.shape) : rank]


class _Checker:
    def __init__(self, c: Mapping[str, Any]) -> None:
        _need(c["certificate"] == 1, "its version is not 1")
        _need(c["digest"] == _hash({k: v for k, v in c.items() if k != "digest"}), "its digest is not that of its text")
        bare = [{k: v for k, v in s.items() if k not in ("lemma", "fact", "as")} for s in c["steps"]]
        _need(c["graph"] == _hash(bare), "its graph fingerprint is not that of its steps")
        self.c, law, n, self.inputs = c, c["law"], c["relation"]["tokens"], dict(c["inputs"])
        _need(c["code"] == LAWS.get(law) and c["weights"] in ("all", "these"), "its law, code and weights do not fit")
        _need(type(n) is int and 1 <= n <= LARGEST, "its number of tokens is no size")
        _need(any(a is not None for a in self.inputs.values()), "no input has a token axis")
        self.tokens, self.last_only, self.causal = n, law == "prompt_blind", law == "causal"
        movable = n - 1 if self.last_only else n
        cycle = (*range(1, movable), *range(min(1, movable)), *range(movable, n))
        group = ((1, 0, *range(2, n)), cycle) if movable > 2 else (cycle,)  # they generate every order of the movable
        self.group = () if self.causal else (tuple(range(n))[::-1],) if law == "mirror_blind" else group
        stated = [tuple(p) for p in c["relation"]["generators"]], c["relation"]["last_only"], c["family"]
        family = "influence" if self.causal else "permutation"
        _need(stated == (list(self.group), self.last_only, family), "its relation between the runs is not its law's")
        self.facts: dict[str, Any] = {}
        self.tagged = False  # whether torch calls the operator at hand pointwise
        self.assumptions = [str(x) for x in c["assumptions"]]

    def run(self) -> Checked:
        for number, step in enumerate(self.c["steps"]):
            where = ", ".join(f"{k} {str(step[k])[:60]}" for k in ("node", "operator", "lemma"))
            try:
                _need(isinstance(step["node"], str) and step["node"] not in self.facts, "its name is taken, or is none")
                self.facts[step["node"]] = self._step(step)
            except BROKEN as error:
                text = str(error) if isinstance(error, _Wrong) else f"{type(error).__name__}: {str(error)[:200]}"
                raise _Wrong(f"step {number + 1} ({where}) does not follow: {text}") from error
        output = self.c["output"]
        _need(set(self.inputs) <= set(self.facts), "an input is no step")
        fact = self.facts.get(output["node"])
        if not isinstance(fact, _Fact):
            raise _Wrong("the output is no step with one tensor")
        self._last_word(fact, {int(d): offset for d, offset in output["dims"]}, f"the output, {output['node']}, ")
        texts = (str(self.c["law"]), str(output["name"]), str(self.c["subject"]))
        return Checked(*texts, len(self.facts), tuple(self.assumptions), str(self.c["weights"]))

    def _last_word(self, fact: _Fact, dims: dict[int, Any], the: str) -> None:
        level, rank = fact.level, len(fact.shape)
        for d, offset in dims.items():
            _need(0 <= d < rank and type(offset) is int and offset >= 0, f"{the}has no such token dimension")
            _need(fact.shape[d] == offset + self.tokens, f"{the}has not {offset} + {self.tokens} entries along {d}")
        if self.causal:
            _need(dims, f"{the}has no token dimension")
            d, offset = next(iter(dims.items()))
            allowed = np.maximum(np.arange(fact.shape[d]) - offset, NEVER).reshape([-1] + [1] * (rank - 1 - d))
            _need((level <= allowed).all(), f"{the}may depend, at some token, on a later one")
            return
        for d, move in enumerate(fact.moves):
            fixed = range(dims.get(d, 0))
            wanted = [(*fixed, *(i + len(fixed) for i in p)) for p in self.group]
            if self.last_only and d in dims:
                _need(isinstance(move, str) or all(p[-1] == len(p) - 1 for p in move), f"{the}moves its last token")
                level = level.take([-1], d)
            else:
                right = self._move(wanted, fact.shape[d]) if d in dims else STILL
                _need(move in (right, FREE), f"{the}does not move along {d} as the law asks")
        _need((level == NEVER).all(), f"{the}may change at some of its elements")

    def _move(self, data: Any, size: int) -> Any:
        if data in (STILL, FREE):
            return data
        rows = tuple(tuple(p) for p in data)
        good = all(all(type(i) is int for i in p) and sorted(p) == list(range(size)) for p in rows)
        _need(good and len(rows) == len(self.group), "a move that is not one permutation for each generator")
        return rows if any(p != tuple(range(size)) for p in rows) else STILL

    def _said(self, data: Any, shape: Any, dtype: Any) -> _Fact:
        moves = tuple(self._move(m, s) for m, s in zip(data["moves"], shape, strict=True))
        level, known = _array(data["level"], shape, "i"), data["known"] or {}
        status = _array(known["status"], shape, "i") if known else np.zeros((1,) * len(shape), int)
        value = _array(known["value"], shape) if known else np.zeros((1,) * len(shape))
        _need((level >= NEVER).all() and ((status >= 0) & (status <= LOW)).all(), "a level or status that is none")
        return _Fact(tuple(shape), dtype, moves, level, status, value)

    def _step(self, step: Mapping[str, Any]) -> Any:
        data, lemma, operator = step["fact"], step["lemma"], step["operator"]
        if data is None:
            return None  # no tensor; whoever reads it is refused
        _need(lemma == "given" or step["node"] not in self.inputs, "it is an input, and not given")
        several = isinstance(data, list)
        shapes, dtypes = (step["shape"], step["dtype"]) if several else ([step["shape"]], [step["dtype"]])
        said = [self._said(*x) for x in zip(data if several else [data], shapes, dtypes, strict=True)]
        derived: list[_Fact | None]
        if lemma == "nothing_follows":
            least = UNSURE if self._doubtful(step) else UNKNOWN
            nothing = all((f.level >= ALWAYS).all() and FREE not in f.moves for f in said)
            _need(
                nothing and all((f.status == UNSURE).all() or not (f.status + least).any() for f in said),
                "its fact says something",
            )
            derived = list(said)
        elif lemma == "given":
            derived = [self._given(step["node"], operator, said[0])]
        elif operator in ("parameter", "buffer") and lemma == "same_in_both_runs":
            (name,) = step["args"]
            _need(isinstance(name, str) and not step["kwargs"], "it has no name")
            derived = [self._constant(said[0], self._stored(operator, name, said[0]))]
        elif operator == "getitem" and lemma == "part_of_a_tuple":
            (whole, place), facts = step["args"], self.facts
            _need(isinstance(facts[whole["node"]], list) and type(place) is int and place >= 0, "it is no part")
            derived = [facts[whole["node"]][place]]
        else:
            derived = self._applied(step, said)
        made = [None if d is None else self._compared(s, d) for s, d in zip(said, derived, strict=True)]
        return made if several else made[0]

    def _doubtful(self, step: Mapping[str, Any]) -> bool:
        """Whether the result may be other than ordinary: memory as it is, or made of what is not ordinary."""
        found: list[Any] = [step["args"], step["kwargs"]]
        for x in found:  # grows as it is read
            found += x if isinstance(x, list) else x.values() if isinstance(x, dict) else []
            known = self.facts.get(x["node"]) if isinstance(x, dict) and "node" in x else None
            for f in known if isinstance(known, list) else [known]:
                if isinstance(f, _Fact) and not _ordinary(f).all():
                    return True
        parts = str(step["operator"]).split(".")
        numbers = {str(k): x for k, x in enumerate(found) if isinstance(x, float | int) and abs(x) < 2.0**62}
        return (
            parts[1:2] == []
            or parts[1] in REFUSED
            or any("float" in x for x in found if isinstance(x, dict))
            or self._huge(numbers)
        )

    def _given(self, node: str, operator: str, said: _Fact) -> _Fact:
        axis, moves, one = self.inputs.get(node), list[Any]((STILL,) * len(said.shape)), (1,) * len(said.shape)
        level = np.full(one, NEVER if node in self.inputs else ALWAYS)  # an input the law does not name: anything
        start = axis is not None and len(self.inputs) == 1  # the relation may begin inside the graph, at one place
        _need(operator == "input" or start, "it is given, and is no input")
        if axis is not None:
            _need(type(axis) is int and 0 <= axis < len(one) and said.shape[axis] == self.tokens, "it has no such axis")
            if self.causal:
                level = np.arange(self.tokens).reshape([-1 if d == axis else 1 for d in range(len(one))])
            else:
                moves[axis] = self._move(self.group, self.tokens)
        return self._fact(replace(said, moves=tuple(moves)), level)

    def _stored(self, operator: str, name: str, said: _Fact) -> Tensor | None:
        data = self.c["values"].get(name)
        if data is None or (operator == "parameter" and self.c["weights"] == "all"):
            return None
        _need(data["dtype"] == said.dtype, "its value has another dtype")
        return torch.from_numpy(_array(data, said.shape)).to(getattr(torch, said.dtype)).expand(said.shape)

    def _constant(self, said: _Fact, tensor: Tensor | None) -> _Fact:
        """The same in both runs; free along a dimension where its values show it."""
        one = (1,) * len(said.shape)
        still = _Fact(
            said.shape, said.dtype, (STILL,) * len(one), np.full(one, NEVER), np.zeros(one, int), np.zeros(one)
        )
        if tensor is None:
            return replace(still, constant=True)
        value = _compressed((tensor.double() if tensor.dtype is torch.bfloat16 else tensor).numpy())
        moves = tuple(FREE if s == 1 < n else STILL for s, n in zip(value.shape, said.shape, strict=True))
        return replace(still, moves=moves, status=np.full(one, EXACT), value=value, constant=True, tensor=tensor)

    def _compared(self, said: _Fact, derived: _Fact) -> _Fact:
        """What is said, if it follows from what is derived."""
        _need((said.shape, said.dtype) == (derived.shape, derived.dtype), f"it is {derived.dtype} {derived.shape}")
        for d, (move, found) in enumerate(zip(said.moves, derived.moves, strict=True)):
            _need(said.shape[d] == 1 or found in (move, FREE), f"along dimension {d} it does not move as it says")
        low = said.level < derived.level
        if low.any():
            place = tuple(int(i) for i in np.argwhere(low)[0])
            level = int(np.broadcast_to(derived.level, low.shape)[place])
            what = "anything" if level >= ALWAYS else f"token {level}"
            raise _Wrong(f"element {list(place)} may depend on {what}, and its level denies it")
        if derived.constant and not said.status.any():
            return derived
        exact = (derived.status == EXACT) & _equal(said.value, derived.value)
        low = (
            _masked(derived)
            & (derived.value <= said.value)
            & (said.value <= (-6e4 if said.dtype == "float16" else -1e8))
        )
        fits = np.choose(said.status, [_ordinary(derived), exact, low, np.ones_like(exact), _low(derived)])
        _need(fits.all(), "a value it says is known, or ordinary, need not be so")
        return (
            derived
            if derived.constant
            else replace(said, value=np.where(said.status == EXACT, derived.value, said.value))
        )

    def _image(self, array: Array, moves: Iterable[Any], g: int) -> Array:
        """The array read at the place each element moves to."""
        for d, move in enumerate(moves):
            array = array if isinstance(move, str) or array.shape[d] == 1 else array.take(move[g], d)
        return array

    def _same(self, f: _Fact, moves: Sequence[Any]) -> Array:
        """Elements whose value is known, and the same wherever they move to."""
        same: Array = f.status == EXACT
        for g in range(len(self.group) if same.any() else 0):
            exact = self._image(f.status, moves, g) == EXACT
            same = same & exact & _equal(self._image(f.value, moves, g), f.value)
        return same

    def _fact(self, said: _Fact, level: Array, status: Any = UNKNOWN, value: Any = 0.0) -> _Fact:
        """A derived fact, moving as said; what is known to be the same depends on nothing."""
        one = (1,) * len(said.shape)
        level, status, value = (np.asarray(x) if np.ndim(x) else np.full(one, x) for x in (level, status, value))
        fact = _Fact(said.shape, said.dtype, said.moves, level, status, value)
        return replace(fact, level=np.where(self._same(fact, fact.moves), NEVER, fact.level))

    def _settled(self, f: _Fact, moves: Sequence[Any]) -> Array:
        """Levels of an operand that is said to move like this."""
        agree = all(s == 1 or m in (t, FREE) for s, m, t in zip(f.shape, f.moves, moves, strict=True))
        return np.where(self._same(f, moves), NEVER, f.level if agree else ALWAYS)

    def _combined(
        self, said: _Fact, operands: Sequence[tuple[_Fact, str]], out: str, still: str = "", ends: float | None = None
    ) -> tuple[Array, Array]:
        """Levels of a result made, along its labels, of terms of its operands; where a value `ends` every term."""
        fixed = {x: m for x, m in zip(out, said.moves, strict=True) if x != "."}
        placed = [m for x, s, m in zip(out, said.shape, said.moves, strict=True) if s > 1 and (x == "." or x in still)]
        _need(all(m == STILL for m in placed), "it says that a dimension moves, or is free, that is read by place")
        target, named = dict(fixed), []
        for f, labels in operands:
            named.append("".join(x if s > 1 else "." for x, s in zip(labels, f.shape, strict=True)))
            for x, m in zip(named[-1], f.moves, strict=True):
                _need(x not in still or isinstance(m, str), "an operand moves along a dimension that is read by place")
                _need(
                    fixed.get(x) != FREE or m == FREE, "it says that a dimension is free along which an operand is not"
                )
                if x not in fixed and m != FREE and isinstance(target.get(x, FREE), str):
                    target[x] = m
        kept = out.replace(".", "")
        names = kept + "".join(sorted({x for labels in named for x in labels} - {*kept, "."}))
        summed = tuple(range(len(kept), len(names)))

        def spread(array: Array, labels: str) -> Array:
            own = labels.replace(".", "")
            array = array[tuple(0 if x == "." else slice(None) for x in labels)]
            array = array.transpose([own.index(x) for x in names if x in own])
            sizes = iter(array.shape)
            return array.reshape([next(sizes) if x in own else 1 for x in names])

        levels, dead = [], []
        for (f, _), labels in zip(operands, named, strict=True):
            moves = [target.get(x, STILL) for x in labels]
            levels.append(spread(self._settled(f, moves), labels))
            if ends is not None and (zero := self._same(f, moves) & (f.value == ends)).any():
                dead.append(spread(zero, labels))
        if dead and math.prod(np.broadcast_shapes(*(x.shape for x in levels + dead))) <= LARGEST:
            levels = [np.where(np.logical_or.reduce(np.broadcast_arrays(*dead)), NEVER, self._highest(levels))]
            empty = np.logical_or.reduce(np.broadcast_arrays(*dead)).all(axis=summed)
        else:
            empty = np.zeros((1,) * len(kept), bool)
        level, shape = self._highest([x.max(axis=summed, initial=NEVER) for x in levels]), iter(range(len(kept)))
        place = [next(shape) if x != "." else -1 for x in out]
        return tuple(a.reshape([a.shape[p] if p >= 0 else 1 for p in place]) for a in (level, empty))  # type: ignore[return-value]

    @staticmethod
    def _highest(levels: Sequence[Array]) -> Array:
        highest: Array = np.maximum.reduce(np.broadcast_arrays(*levels)) if len(levels) > 1 else levels[0]
        return highest

    def _filled(self, x: dict[str, Any]) -> Any:
        ((kind, name),) = x.items()
        if kind == "node":
            found = self.facts.get(name)
            _need(isinstance(found, _Fact), f"it reads {str(name)[:60]}, no earlier step with one tensor")
            return found
        if kind in ("float", "device"):
            return _number(x) if kind == "float" else torch.device("cpu")
        return getattr(torch, str(name).removeprefix("torch."))

    def _applied(self, step: Mapping[str, Any], said: list[_Fact]) -> list[_Fact | None]:
        space, name, overload = step["operator"].split(".")
        op = getattr(getattr(torch.ops.aten, name), overload)
        known = space == "aten" and isinstance(op, torch._ops.OpOverload) and name not in REFUSED
        _need(known and not op._schema.is_mutable, "there is no check for this operator")
        schema = op._schema.arguments
        b = {x.name: x.default_value for x in schema if x.has_default_value()} | step["kwargs"]
        places = [x.name for x in schema if not x.kwarg_only]
        b |= dict(zip(places[: len(step["args"])], step["args"], strict=True))
        b = {k: _mapped(v, self._filled, dict) for k, v in b.items()}
        for x in schema:  # torch may crash on a missing tensor, or on a number in the place of a dtype
            v, real = b.get(x.name, 0), str(x.real_type)
            gap = v is None or (isinstance(v, list) and None in v)
            odd = isinstance(v, int) and any(k in real for k in ("ScalarType", "Layout", "MemoryFormat", "Device"))
            _need(("Optional" in real or not gap) and not odd, f"its {x.name} is missing, or of another kind")
        off = (name in DROPS and (b["train"] is False or b["p"] == 0)) or (name == SDPA and b["dropout_p"] == 0)
        _need(off or torch.Tag.nondeterministic_seeded not in op.tags, "it is random")

        def run(leaf: Callable[[_Fact], Tensor], device: str = "cpu", **other: Any) -> list[Tensor]:
            where = {"device": torch.device(device)} if "device" in b else {}
            made = op(**(_mapped(b, leaf) | where | other))
            return [made] if isinstance(made, Tensor) else list(made)

        made = run(lambda f: torch.empty(f.shape, dtype=getattr(torch, f.dtype), device="meta"), "meta")
        checked = 1 if name == BATCH_NORM else len(made)
        _need(len(said) == len(made), "its results are not as many")
        for s, t in zip(said[:checked], made[:checked], strict=True):
            _need((s.shape, f"torch.{s.dtype}") == (tuple(t.shape), str(t.dtype)), f"it is {t.dtype} {list(t.shape)}")
        fill, facts = name in FILLS, _operands(b)
        constant = fill or all(f.constant for f in facts)
        values: list[Any] = [None] * len(said)
        if constant and (fill or all(f.tensor is not None for f in facts)) and sum(t.numel() for t in made) <= LARGEST:
            blank = {f.dtype: torch.zeros((), dtype=getattr(torch, f.dtype)) for f in facts}
            values = run(lambda f: blank[f.dtype].expand(f.shape) if f.tensor is None else f.tensor)
        if step["lemma"] == "same_in_both_runs":
            _need(constant, "it is not constant")
            return [self._constant(s, t) for s, t in zip(said, values, strict=True)]
        self.tagged = torch.Tag.pointwise in op.tags
        nothing = all(FREE not in s.moves and not s.status.any() for s in said)
        if constant and nothing and sum(t.numel() for t in made) > LARGEST:
            return [self._constant(s, None) for s in said]
        lemma: Any = getattr(self, "_by_" + step["lemma"], None)
        _need(lemma, "there is no check for this lemma")
        derived: list[_Fact | None] = lemma(name, b, said, run)
        for k, (s, v, d) in enumerate(zip(said, values, derived, strict=True) if constant else []):
            level = np.full((1,) * len(s.shape), NEVER)
            derived[k] = self._constant(s, v) if v is not None else d and replace(d, level=level, constant=True)
        return derived

    def _by_movement_equivariant(self, name: str, b: dict[str, Any], said: list[_Fact], run: Any) -> list[_Fact]:
        _need(name in MOVEMENT and b.get("mode", "constant") == "constant", "it does more than move elements")
        data = _operands([b[k] for k in ("self", "input", "tensors", "src") if k in b])
        _need(name in VIEWS or sum(math.prod(f.shape) for f in said) <= LARGEST, "it is too large to be run")
        order = {id(f): k for k, f in enumerate(data)}
        pad = {"value": -1} if "pad" in name else {}

        def pushed(chosen: int, d: int) -> list[Array]:
            """Which operand each element came from (d = -1), or its coordinate along d of the chosen one."""

            def leaf(f: _Fact) -> Tensor:
                k = order.get(id(f), -1)
                if k < 0:
                    _need(f.tensor is not None or "other" in b, "it moves elements to places that depend on the input")
                    return torch.zeros(()).expand(f.shape) if f.tensor is None else f.tensor
                line = (
                    torch.arange(f.shape[d]).reshape([-1 if x == d else 1 for x in range(len(f.shape))])
                    if k == chosen
                    else None
                )
                return (torch.tensor(k if d < 0 else -1) if line is None else line).expand(f.shape)

            made = [torch.reshape(leaf(b["self"]), b["size"])] if name in ("view", "_unsafe_view") else run(leaf, **pad)
            return [_compressed(t[tuple(slice(0, 1 if s == 0 else None) for s in t.stride())].numpy()) for t in made]

        source = pushed(-1, -1)
        grid = [[pushed(k, d) if s > 1 else None for d, s in enumerate(f.shape)] for k, f in enumerate(data)]
        return [
            self._moved(
                out,
                source[i],
                [(f, [None if c is None else c[i] for c in grid[k]]) for k, f in enumerate(data)],
                b.get("value") or 0,
            )
            for i, out in enumerate(said)
        ]

    def _moved(self, out: _Fact, source: Array, origins: list[tuple[_Fact, list[Array | None]]], fill: Any) -> _Fact:
        zero, bad = np.zeros((1,) * len(out.shape), int), np.zeros((1,) * len(out.shape), bool)
        level, status, value = zero + NEVER, np.where(source < 0, EXACT, UNKNOWN), np.where(source < 0, fill, 0)
        freed = [d for d, m in enumerate(out.moves) if m == FREE and out.shape[d] > 1]
        _need(all(source.shape[d] == 1 for d in freed), "it is not free along a dimension that joins operands")
        for g in range(len(self.group)):
            bad = bad | (self._image(source, out.moves, g) != source)
        for k, (f, coordinates) in enumerate(origins):
            here, places = source == k, [zero if c is None else c for c in coordinates]
            for c, move in zip(places, f.moves, strict=True):
                if move != FREE:
                    _need(
                        all(c.shape[d] == 1 for d in freed),
                        "it is not free along a dimension that holds several elements",
                    )
                    for g in range(len(self.group)):
                        to = c if isinstance(move, str) else np.asarray(move[g])[c]
                        bad = bad | (here & (self._image(c, out.moves, g) != to))
            parts = []
            for array in (f.level, f.status, f.value):
                at = tuple(np.maximum(c, 0) if n > 1 else zero for c, n in zip(places, array.shape, strict=True))
                parts.append(array[at] if at else array.reshape(zero.shape))
            level, status, value = (
                np.where(here, new, old) for new, old in zip(parts, (level, status, value), strict=True)
            )
        return self._fact(out, np.where(bad, ALWAYS, level), status, value)

    def _by_pointwise_equivariant(self, name: str, b: dict[str, Any], said: list[_Fact], run: Any) -> list[_Fact]:
        (out,) = said
        self._only(self.tagged or name in POINTWISE)
        if name in SELECTING:
            if name in ("tril", "triu"):
                ones = torch.ones(out.shape[-2:], dtype=torch.bool)
                keep = (ones.tril if name == "tril" else ones.triu)(b["diagonal"])
                return [self._selected(out, self._mask(keep), b["self"], _literal(0))]
            no, yes = (b["self"], b["value"]) if name == "masked_fill" else (b["other"], b["self"])
            return [self._selected(out, b["condition" if name == "where" else "mask"], _literal(yes), _literal(no))]
        first = next(k for k in ("self", "input", "abs", "real") if k in b)
        operands = [_literal(b[k]) for k in ("self", "other") if k in b and name not in COPIES] or [b[first]]
        operands += [f for f in _operands(b) if not any(f is g for g in operands) and name not in COPIES]
        plain = name if b.get("alpha", 1) == 1 and b.get("rounding_mode") is None else ""
        made = self._elementwise(out, plain, operands, lambda at: run(lambda f: at[id(f)])[0])
        low, high = (b.get(k) if b.get(k) is not None else b.get(f"{k}_val") for k in ("min", "max"))
        kept = name in ("clamp", "clamp_min", "clamp_max", "hardtanh") and not isinstance(low, _Fact)
        kept = kept and not isinstance(high, _Fact) and (low is None or low < 6e4) and (high is None or high > -6e4)
        odd = (
            not kept and "float" in out.dtype and self._huge({k: v for k, v in b.items() if k not in ("self", "other")})
        )
        return [replace(made, status=np.where((made.status == UNKNOWN) & odd, UNSURE, made.status))]

    def _elementwise(self, out: _Fact, name: str, operands: list[_Fact], run: Callable[[Any], Tensor]) -> _Fact:
        rank = len(out.shape)
        ends = None if name in BITWISE and out.dtype != "bool" else DECISIVE.get(name)
        level, _ = self._combined(out, [(f, _right(f, rank)) for f in operands], ABC[:rank], "", ends)
        wide = [replace(f, status=_widened(f.status, rank), value=_widened(f.value, rank)) for f in operands]
        exact = np.logical_and.reduce(np.broadcast_arrays(*(f.status == EXACT for f in wide)))
        plain = np.logical_and.reduce(np.broadcast_arrays(*map(_ordinary, wide)))
        bound = self._bound(name, wide[0], wide[-1]) if "float" in out.dtype else np.zeros((1,) * rank)
        masked = bound <= (-6e4 if out.dtype == "float16" else -1e8)
        rests = [_low(f) for f in wide[:1]] + [_ordinary(f) if name == "sub" else _low(f) for f in wide[1:]]
        stays = name in {"add", "sub", *COPIES} and "float" in out.dtype
        if name in ("mul", "multiply", "div") and len(wide) == 2:
            k = 0 if name == "div" or (wide[0].status == LOW).any() else 1
            factor = wide[1 - k]
            rests = [_low(wide[k]), (factor.status == EXACT) & (factor.value > 0) & (factor.value < 6e4)]
            stays = "float" in out.dtype
        elif name in ("exp", "exp2", "sigmoid", "relu", "softplus", "expm1", "elu"):
            plain = _low(wide[0])
        vague = np.where(np.logical_and.reduce(np.broadcast_arrays(*rests)) & stays, LOW, UNSURE)
        status = np.where(exact, EXACT, np.where(masked, MASKED, np.where(plain, UNKNOWN, vague)))
        value: Array = np.where(masked, bound, 0)
        if exact.any():
            pairs = [(f, w) for f, w in zip(operands, wide, strict=True) if f.dtype]
            made = run({id(f): torch.from_numpy(w.value.copy()).to(getattr(torch, f.dtype)) for f, w in pairs})
            value = np.where(exact, (made.double() if made.dtype is torch.bfloat16 else made).numpy(), value)
        if name in ("exp", "exp2") and (under := (wide[0].status == MASKED)).any():
            _need(BOUNDED in self.assumptions, "it takes a finite number for a mask, and that is not assumed")
            status, value = np.where(under, EXACT, status), np.where(under, 0.0, value)
        for f in wide if ends is not None else []:
            decided = (f.status == EXACT) & (f.value == ends) & ~exact
            status, value = np.where(decided, EXACT, status), np.where(decided, float(ends or 0), value)
        return self._fact(out, level, status, value)

    def _bound(self, name: str, first: _Fact, last: _Fact) -> Array:
        """An upper bound of the masked elements of a result; 0 where there is none."""
        a, b = (np.where(f.status == UNKNOWN, 0.0, f.value) for f in (first, last))
        if name == "add":
            return np.where((first.status != UNSURE) & (last.status != UNSURE), a + b, 0)
        if name in ("mul", "multiply") and (last.status == MASKED).any():
            return self._bound("mul", last, first) if not (first.status == MASKED).any() else np.zeros((1,) * a.ndim)
        factor = (first.status == MASKED) & (last.status == EXACT) & (b > 0)
        bounds = {"mul": a * b, "multiply": a * b, "div": a / b}
        return np.where(factor, bounds[name], 0) if name in bounds else np.where(name in COPIES, a, 0)

    def _mask(self, keep: Tensor) -> _Fact:
        blank = _Fact(tuple(keep.shape), "bool", (), np.array(0), np.array(0), np.array(0))
        return self._constant(blank, keep)

    def _selected(self, out: _Fact, c: _Fact, yes: _Fact, no: _Fact) -> _Fact:
        """Choose yes where c, else no: the sum c yes + (1 - c) no."""
        rank = len(out.shape)
        true, false = replace(c, value=(c.value != 0) * 1), replace(c, value=(c.value == 0) * 1)
        terms = [[(f, _right(f, rank)) for f in pair] for pair in ((true, yes), (false, no))]
        level = self._highest([self._combined(out, pair, ABC[:rank], "", 0)[0] for pair in terms])
        sure, taken, y, n = (
            _widened(x, rank) for x in (c.status == EXACT, c.value != 0, _ordinary(yes), _ordinary(no))
        )
        status, value = (
            np.where(taken, _widened(x, rank), _widened(z, rank))
            for x, z in ((yes.status, no.status), (yes.value, no.value))
        )
        both = _widened(_low(yes), rank) & _widened(_low(no), rank) & ("float" in out.dtype)
        vague = np.where(y & n, UNKNOWN, np.where(both, LOW, UNSURE))
        return self._fact(out, level, np.where(sure, status, vague), np.where(sure, value, 0))

    def _by_softmax_equivariant(self, name: str, b: dict[str, Any], said: list[_Fact], run: Any) -> list[_Fact]:
        self._only(name in ("softmax", "_softmax", "_safe_softmax", "log_softmax", "_log_softmax"))
        return [self._softmaxed(b["self"], said[0], b["dim"], log="log" in name, safe="safe" in name)]

    def _softmaxed(self, f: _Fact, out: _Fact, dim: int, *, log: bool = False, safe: bool = False) -> _Fact:
        level, _ = self._combined(out, [(f, ABC[: len(f.shape)])], ABC[: len(f.shape)])
        absent, sound = (f.status == EXACT) & np.isneginf(f.value), _low(f).all(axis=dim, keepdims=True)
        gone = both = sound & ((_masked(f) & _ordinary(f).any(axis=dim, keepdims=True)) | (absent & safe))
        finite = sound & (np.isin(f.status, (UNKNOWN, MASKED)) | (_low(f) & (f.status == EXACT) & ~absent))
        number = (sound & safe) | finite.any(axis=dim, keepdims=True)
        for g in range(len(self.group)):
            both = both & self._image(gone, f.moves, g)
        high = np.where(both, NEVER, level).max(axis=dim, keepdims=True)
        _need(
            not (gone & ~absent).any() or BOUNDED in self.assumptions,
            "it takes a finite number for a mask, and that is not assumed",
        )
        if log:
            return self._fact(out, np.maximum(high, np.where(gone, level, NEVER)), np.where(gone, UNSURE, UNKNOWN))
        return self._fact(out, high, np.where(gone, EXACT, np.where(number, UNKNOWN, UNSURE)))

    def _by_attention_equivariant(self, name: str, b: dict[str, Any], said: list[_Fact], run: Any) -> list[_Fact]:
        self._only(name == SDPA)
        (out,), (q, k, v), mask = said, [b["query"], b["key"], b["value"]], b["attn_mask"]
        rank = len(out.shape)
        _need(len(q.shape) == len(k.shape) == len(v.shape) == rank, "its operands differ in rank")
        if b["enable_gqa"]:
            k, v = (self._repeated(f, q.shape[-3]) for f in (k, v))
        lead = ABC[: rank - 2]
        along = next((f.moves[-2] for f in (k, v) if not isinstance(f.moves[-2], str)), STILL)
        shape = (*np.broadcast_shapes(q.shape[:-2], k.shape[:-2]), q.shape[-2], k.shape[-2])
        moves = tuple(m if s > 1 else STILL for m, s in zip((*out.moves[:-1], along), shape, strict=True))
        blank = replace(q, shape=shape, moves=moves, constant=False, tensor=None)
        level, ended = self._combined(blank, [(q, lead + "WY"), (k, lead + "XY")], lead + "WX", "", 0)
        scores = self._fact(blank, level, self._blur([q, k]))
        if b["is_causal"]:
            scores = self._hidden(blank, self._mask(torch.ones(shape[-2:], dtype=torch.bool).tril()), scores)
        if mask is not None and mask.dtype == "bool":
            scores = self._hidden(blank, mask, scores)
        elif mask is not None:
            doubt = np.where((mask.status == UNKNOWN) & (not mask.constant), UNSURE, mask.status)
            both = [scores, replace(mask, status=doubt)]
            scores = self._elementwise(blank, "add", both, lambda at: torch.add(*(at[id(f)] for f in both)))
        weights = self._softmaxed(scores, blank, rank - 1, safe=True)
        level, ended = self._combined(out, [(weights, lead + "WX"), (v, lead + "XZ")], lead + "WZ", "", 0)
        return [self._fact(out, level, np.where(ended, EXACT, self._blur([v])))]

    def _hidden(self, out: _Fact, visible: _Fact, scores: _Fact) -> _Fact:
        """Scores plus -inf where not visible: no number where the score may be +inf."""
        made = self._selected(out, visible, scores, _literal(-math.inf))
        shown = _widened((visible.status == EXACT) & (visible.value != 0), len(out.shape))
        return replace(made, status=np.where(~shown & ~_low(scores), UNSURE, made.status))

    def _repeated(self, f: _Fact, heads: int) -> _Fact:
        d, times = len(f.shape) - 3, heads // f.shape[-3]
        _need(isinstance(f.moves[d], str), "its heads move")
        level, status, value = (x.repeat(times, d) if x.shape[d] > 1 else x for x in (f.level, f.status, f.value))
        moves = (*f.moves[:d], STILL, *f.moves[d + 1 :])
        return replace(
            f, shape=(*f.shape[:d], heads, *f.shape[d + 1 :]), moves=moves, level=level, status=status, value=value
        )

    @staticmethod
    def _blur(facts: Sequence[_Fact]) -> int:
        return UNKNOWN if all(_ordinary(f).all() for f in facts) else UNSURE

    @staticmethod
    def _huge(b: dict[str, Any]) -> bool:
        """Whether a number among the arguments is as large as a mask, infinite, or none."""
        return any(isinstance(v, int | float) and not isinstance(v, bool) and not abs(v) < 6e4 for v in b.values())

    def _vague(self, out: _Fact, facts: list[_Fact], b: dict[str, Any]) -> int:
        """The status of what is computed from these: a place or a count, made of other numbers, is always ordinary."""
        made = "int" in out.dtype and not any(isinstance(v, torch.dtype) for v in b.values())
        return self._blur([f for f in facts if not made or "int" in f.dtype or "bool" in f.dtype])

    @staticmethod
    def _only(condition: object) -> None:
        _need(condition, "this lemma does not cover the operator")

    def _by_contraction_equivariant(self, name: str, b: dict[str, Any], said: list[_Fact], run: Any) -> list[_Fact]:
        self._only(name in PRODUCTS)
        (out,), bias = said, b.get("bias", b.get("self") if name in ("addmm", "baddbmm") else None)
        facts = [f for f in _operands(b) if f is not bias] if name != "linear" else [b["input"], b["weight"]]
        if name in ("linear", "matmul"):
            p, q = (len(f.shape) for f in facts)
            lead = ABC[: p - 1] if name == "linear" else ABC[: max(p, q, 2) - 2]
            left, right = lead + "Y", "ZY"[2 - q :]
            if name == "matmul":
                left, right = (
                    (lead[len(lead) - p + 2 :] + "XY")[-p:],
                    lead[len(lead) - q + 2 :] + "YZ" if q > 1 else "Y",
                )
            terms, result = [left, right], lead + "X" * (name == "matmul" and p > 1) + "Z" * (q > 1)
        else:
            equation = PRODUCTS[name] or self._spelled(str(b["equation"]).replace(" ", ""), b["tensors"])
            inputs, result = equation.split("->")
            terms = inputs.split(",")
            _need(
                all(t.isalpha() and len(set(t)) == len(t) for t in [*terms, result or "a"]),
                "an equation without a check",
            )
            facts = (
                b["tensors"] if name == "einsum" else [b[k] for k in b if isinstance(b[k], _Fact) and b[k] is not bias]
            )
        level, ended = self._combined(out, list(zip(facts, terms, strict=True)), result, "", 0)
        if bias is None:
            return [self._fact(out, level, np.where(ended, EXACT, self._blur(facts)))]
        added, _ = self._combined(out, [(bias, result[len(result) - len(bias.shape) :])], result)
        return [self._fact(out, np.maximum(level, added), self._blur([*facts, bias]))]

    @staticmethod
    def _spelled(equation: str, tensors: list[_Fact]) -> str:
        """The equation with capital letters for what stands under its ellipsis, and with its output."""
        _need(not any(x.isupper() for x in equation) or "." not in equation, "an equation without a check")
        inputs, arrow, output = equation.partition("->")
        terms = inputs.split(",")
        if not arrow:
            once = sorted(x for x in set(inputs) if x.isalpha() and inputs.count(x) == 1)
            output = "..." * ("..." in inputs) + "".join(once)
        under = [len(f.shape) - len(t.replace("...", "")) for t, f in zip(terms, tensors, strict=True)]
        _need(all(n >= 0 for n in under), "an equation that does not fit its operands")
        capitals = ABC[-max(under) :] if max(under) else ""
        spelled = [t.replace("...", capitals[len(capitals) - n :]) for t, n in zip(terms, under, strict=True)]
        return ",".join(spelled) + "->" + output.replace("...", capitals)

    def _by_normalisation_equivariant(self, name: str, b: dict[str, Any], said: list[_Fact], run: Any) -> list[_Fact]:
        self._only(name in NORMS and len(said) == 1 and not b.get("training"))
        (out,), x, rank = said, b["input"], len(said[0].shape)
        last = name in ("layer_norm", "rms_norm")
        dims = range(rank - len(b["normalized_shape"]), rank) if last else range(1, rank if name == "group_norm" else 1)
        labels = "".join(ABC[d] for d in dims) if last else "b"
        operands = [(x, ABC[:rank]), *((f, labels) for f in _operands(b) if f is not x)]
        level, _ = self._combined(out, operands, ABC[:rank], "b" if b.get("num_groups", 1) > 1 else "")
        return [self._fact(out, level.max(axis=tuple(dims), keepdims=True))]

    def _by_channelwise_equivariant(self, name: str, b: dict[str, Any], said: list[_Fact], run: Any) -> list[_Fact]:
        self._only(all(f.shape == (0,) for f in said[1:]))
        return [*self._by_normalisation_equivariant(name, b, said[:1], run), *said[1:]]

    def _by_reduction_invariant(self, name: str, b: dict[str, Any], said: list[_Fact], run: Any) -> list[Any]:
        self._only(name in REDUCTIONS | {"argmax", "argmin"} and "other" not in b)
        x, dim, keep = b["self"], b.get("dim"), b.get("keepdim", False)
        rank = len(x.shape)
        dims = {d % rank for d in ([dim] if isinstance(dim, int) else dim or range(rank))}
        out = "".join("." * keep if d in dims else ABC[d] for d in range(rank))
        moved = any(not isinstance(x.moves[d], str) for d in dims)
        _need(not (moved and name.startswith("arg")), "the place of an extreme element, among elements that move")
        level, ended = self._combined(said[0], [(x, ABC[:rank])], out, "", 0 if name in SUMS else None)
        made = [self._fact(f, level, np.where(ended, EXACT, self._vague(f, [x], b))) for f in said]
        return [made[0], *(None if moved else f for f in made[1:])]

    def _by_lookup_equivariant(self, name: str, b: dict[str, Any], said: list[_Fact], run: Any) -> list[_Fact]:
        places: Any
        (out,), places = said, b.get("indices", b.get("index"))
        if name == "index" and all(f.tensor is not None for f in _operands(places)):
            return self._by_movement_equivariant(name, b, said, run)
        if name == "embedding":
            rank = len(places.shape)
            operands, labels = [(places, ABC[:rank]), (b["weight"], "YZ")], ABC[:rank] + "Z"
        elif name == "gather":
            x, i = b["self"], b["index"]
            rank, dim = len(x.shape), b["dim"] % len(x.shape)
            _need(all(d == dim or x.shape[d] == i.shape[d] for d in range(rank)), "an index shorter than its source")
            labels = ABC[:rank]
            operands = [(i, labels), (x, labels[:dim] + "Y" + labels[dim + 1 :])]
        else:
            self._only(name in ("index", "_unsafe_index"))
            x, read = b["self"], [d for d, f in enumerate(places) if f is not None]
            wide = max(len(places[d].shape) for d in read)
            own = ["Y" if d in read else ABC[d + 26] for d in range(len(x.shape))]
            first = read[0] if read == list(range(read[0], read[0] + len(read))) else 0
            rest = [c for c in own if c != "Y"]
            labels = "".join(rest[:first]) + ABC[:wide] + "".join(rest[first:])
            _need(all(places[d].dtype != "bool" for d in read), "a boolean index")
            for n, d in enumerate(read):
                own[d] = "STUVWXYZ"[n]
            operands = [(x, "".join(own)), *((places[d], _right(places[d], wide)) for d in read)]
            level, _ = self._combined(out, operands, labels, "STUVWXYZ")
            return [self._fact(out, level, self._blur([x]))]
        level, _ = self._combined(out, operands, labels, "Y")
        return [self._fact(out, level, self._blur([operands[1][0]]))]

    def _by_scan_dependence(self, name: str, b: dict[str, Any], said: list[_Fact], run: Any) -> list[Any]:
        self._only(name in SCANS)
        if "conv" in name:
            return [self._convolved(b, said[0])]
        x, rank = b["self"], len(b["self"].shape)
        dim = b["dim"] % rank
        running = name.startswith(("cum", "logcum"))
        labels = ABC[:rank] if running else ABC[:dim] + "." + ABC[dim + 1 : rank]
        made: list[Any] = []
        moved = not isinstance(x.moves[dim], str)
        for k, out in enumerate(said):
            if k and moved:  # the places of a sort, among elements that move
                made.append(None)
                continue
            symmetric = k == 0 and (name == "msort" or (name in ("sort", "topk") and b.get("sorted", True)))
            level, _ = self._combined(out, [(x, ABC[:rank])], labels, "" if symmetric else ABC[dim])
            level = np.maximum.accumulate(level, axis=dim) if running else level
            made.append(self._fact(out, level, self._vague(out, [x], b)))
        return made

    def _convolved(self, b: dict[str, Any], out: _Fact) -> _Fact:
        x, weight, space = b["input"], b["weight"], len(b["weight"].shape) - 2
        batch, turned, named = "a"[: len(x.shape) - space - 1], bool(b.get("transposed")), isinstance(b["padding"], str)
        _need(len(out.shape) == len(x.shape) == len(batch) + space + 1, "a convolution without a check")
        gaps, widths = [[*b[k], *b[k] * space][:space] for k in ("stride", "dilation")], weight.shape[2:]
        front = (
            [0] * space if b["padding"] == "valid" else [d * (w - 1) // 2 for d, w in zip(gaps[1], widths, strict=True)]
        )
        _need(not named or b["padding"] in ("valid", "same"), "a padding without a check")
        front = front if named else [*b["padding"], *b["padding"] * space][:space]
        wide = [k for k in range(space) if (widths[k], gaps[0][k], front[k]) != (1, 1, 0)]
        labels, kernel = ABC[2 : space + 2], ("CD" if turned or b["groups"] != 1 else "BC") + "KLMNO"[:space]
        operands = [(x, batch + "C" + labels), (weight, kernel if turned or b["groups"] == 1 else "ED" + kernel[2:])]
        operands += [(b["bias"], "B")] if b["bias"] is not None else []
        level, _ = self._combined(out, operands, batch + "B" + labels, "BCDEKLMNO" + "".join(labels[k] for k in wide))
        for k in wide:
            d = k + len(batch) + 1
            here, taps = np.arange(out.shape[d])[:, None], np.arange(widths[k]) * gaps[1][k]
            read = here * gaps[0][k] - front[k] + taps
            whole = read >= 0
            if turned:
                whole = (here + front[k] - taps) % gaps[0][k] == 0
                read = (here + front[k] - taps) // gaps[0][k]
            inside = (whole & (read >= 0) & (read < x.shape[d])).reshape([*read.shape, *[1] * (len(out.shape) - 1 - d)])
            if level.shape[d] > 1:
                level = np.where(inside, level.take(read.clip(0, x.shape[d] - 1), d), NEVER).max(axis=d + 1)
        return self._fact(out, level, self._blur(_operands(b)))

    def _by_dense_dependence(self, name: str, b: dict[str, Any], said: list[_Fact], run: Any) -> list[_Fact]:
        (out,), x = said, b["self"] if "self" in b else b["input"]
        rank, own = len(x.shape), ABC[: len(x.shape)]
        operands: list[tuple[_Fact, str]] = [(x, own)]
        labels = own
        if name in WRITES:
            d, index, by_line = b["dim"] % rank, b["index"], name.startswith("scatter")
            lines = [(index, "Y")] if by_line else []
            lines += [(b[k], "Z") for k in ("src", "source", "value") if isinstance(b.get(k), _Fact)]
            for f, letter in lines:
                same = len(f.shape) == rank and all(f.shape[k] == x.shape[k] for k in range(rank) if k != d)
                _need(same or (not by_line and not f.shape), "a write that does not cover every line")
                operands.append((f, own[:d] + letter + own[d + 1 :] if same else ""))
            operands += [] if by_line else [(index, "Y" * len(index.shape))]
            still = own[d] + "YZ"
        elif name in ("index_put", "_index_put_impl", "_unsafe_index_put"):
            read, new = [d for d, f in enumerate(b["indices"]) if f is not None], b["values"]
            at: list[_Fact] = [b["indices"][d] for d in read]
            wide = max(len(f.shape) for f in at)
            line = "STUVWXYZ"[:wide]
            first = read[0] if read == list(range(read[0], read[0] + len(read))) else 0
            rest = "".join(c for d, c in enumerate(own) if d not in read)
            whole, still = rest[:first] + line + rest[first:], line + "".join(own[d] for d in read)
            places = [line[wide - len(f.shape) :] for f in at]
            if any(f.dtype in ("bool", "uint8") for f in at):
                _need(len(at) == 1 and math.prod(new.shape) == 1, "a boolean index")
                whole, still, places = own, "", [own[read[0] : read[0] + len(at[0].shape)]]
            operands += [*zip(at, places, strict=True), (new, whole[len(whole) - len(new.shape) :])]
        elif name.startswith(("fft_", "_fft_")):
            dims = (
                b["dim"] if b["dim"] is not None else range(rank - len(b["s"]) if b.get("s") is not None else 0, rank)
            )
            dims = {d % rank for d in ([dims] if isinstance(dims, int) else dims)}
            labels, inner = ("".join(ABC[d + k * (d in dims)] for d in range(rank)) for k in (26, 39))
            operands, still = [(x, inner)], "".join(ABC[d + k] for d in dims for k in (26, 39))
        else:
            self._only(name in ("view_as_complex", "view_as_real"))
            labels, still = (own[:-1], own[-1]) if name == "view_as_complex" else (own + "Z", "Z")
            operands = [(x, own)]
        level, _ = self._combined(out, operands, labels, still)
        status = UNSURE if self._huge(b) else self._blur(_operands(b))
        if name == "scatter" and "reduce" not in b and "float" in out.dtype:  # each element is one of theirs
            parts = [_literal(b[k]) for k in ("self", "src", "value") if k in b]
            status = LOW if status == UNSURE and all(_low(f).all() for f in parts) else status
        return [self._fact(out, level, status)]

    def _by_pure_function_of_unmoved(self, name: str, b: dict[str, Any], said: list[_Fact], run: Any) -> list[_Fact]:
        facts = _operands(b)
        _need(all(isinstance(m, str) for f in facts for m in f.moves), "an operand moves")
        level = max([NEVER, *(int(f.level.max(initial=NEVER)) for f in facts)])
        status = UNSURE if self._huge(b) else self._blur(facts)
        return [self._fact(replace(f, moves=(STILL,) * len(f.shape)), np.array(level), status) for f in said]
