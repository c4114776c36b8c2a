"""Replay a certificate: every step must follow from the steps before it, and the last must be what the law asks.

No code is shared with the interpreter that found the proof. A step says how its result moves; what then follows from
its operands is derived here (a level for each element, and what is known of its value), and compared with its fact.

    same_in_both_runs         deterministic, every operand constant; values are computed here, by the operator itself
    movement_equivariant      run on the coordinates c of its operands' elements: c(r(o)) = m(c(o)) for every element o
    pointwise_equivariant     every operand moves as the result, or has values that are the same at both ends
    contraction_equivariant   the same with summed labels, for which any one move will do; a known zero ends a term
    softmax_equivariant       an entry counts for nothing if it is masked here and wherever it moves to
    attention_equivariant     contraction, mask, softmax, contraction
    reduction_invariant, normalisation_equivariant, lookup_equivariant, scan_dependence: contractions of levels
    pure_function_of_unmoved  nothing moves; nothing_follows: the fact says nothing

Shapes and dtypes are computed anew on the meta device. An operator without a check is refused.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_letters as ABC
from typing import Any

import numpy as np
from torch import Tensor

from orderproof.errors import CertificateError

Array = np.ndarray[Any, Any]
STILL, FREE = "still", "free"  # any other move is a tuple: one permutation for each generator
NEVER, ALWAYS, LARGEST = -1, 2**40, 1 << 26  # levels; elements of one array
UNKNOWN, EXACT, MASKED, UNSURE = range(4)
SMALL = 1e3  # added to a masking value, this leaves it one
LAWS = {"order_blind": "OP101", "prompt_blind": "OP102", "mirror_blind": "OP103", "causal": "OP201"}
BOUNDED = "scores of visible tokens are finite and small beside the masking value (finite mask, not -inf)"
BROKEN = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    RuntimeError,
    TypeError,
    ValueError,
)

REFUSED = set(["empty", "new_empty", "empty_like", "empty_strided", "empty_permuted", "new_empty_strided", "from_file"])
FILLS = set(["zeros_like", "ones_like", "new_zeros", "new_ones", "full_like", "new_full"])
DROPS = set(["dropout", "feature_dropout", "alpha_dropout", "native_dropout", "scaled_dot_product_attention"])
COPIES = (
    set(["clone", "_to_copy", "to", "type_as", "contiguous", "alias", "lift_fresh_copy", "positive", "detach"]) | DROPS
)
POINTWISE = COPIES | set(
    ["where", "masked_fill", "tril", "triu", "__and__", "__or__", "multiply", "log_sigmoid"]
)  # and all tagged so
SELECTING = {"where", "masked_fill", "tril", "triu"}
DECISIVE = dict.fromkeys(("mul", "multiply", "bitwise_and", "logical_and", "__and__"), 0.0) | {"add": -math.inf}
DECISIVE |= dict.fromkeys(("bitwise_or", "logical_or", "__or__"), 1.0)
MOVEMENT = set(
    [
        "view",
        "_unsafe_view",
        "reshape",
        "flatten",
        "unflatten",
        "ravel",
        "view_as",
        "reshape_as",
        "transpose",
        "t",
        "numpy_T",
        "permute",
        "movedim",
        "swapaxes",
        "unsqueeze",
        "squeeze",
        "expand",
        "expand_as",
        "broadcast_to",
        "slice",
        "select",
        "split",
        "split_with_sizes",
        "chunk",
        "unbind",
        "tensor_split",
        "unsafe_split",
        "unsafe_chunk",
        "cat",
        "concat",
        "concatenate",
        "stack",
        "flip",
        "roll",
        "repeat",
        "tile",
        "repeat_interleave",
        "index_select",
        "constant_pad_nd",
        "pad",
        "slice_scatter",
        "select_scatter",
        "index",
    ]
)
PRODUCTS = {"mm": "ij,jk->ik", "bmm": "bij,bjk->bik", "mv": "ij,j->i", "dot": "i,i->", "linear": "", "matmul": ""}
PRODUCTS |= {"addmm": "ij,jk->ik", "baddbmm": "bij,bjk->bik", "einsum": ""}
NORMS = {"layer_norm": 0, "rms_norm": 0, "group_norm": 0, "batch_norm": 0}
REDUCTIONS = set(
    [
        "sum",
        "mean",
        "prod",
        "amax",
        "amin",
        "any",
        "all",
        "logsumexp",
        "var",
        "std",
        "nansum",
        "norm",
        "linalg_vector_norm",
        "max",
        "min",
    ]
)
PLACED = set(["argmax", "argmin"])  # reductions that give a place
SCANS = set(
    [
        "cumsum",
        "cumprod",
        "logcumsumexp",
        "cummax",
        "cummin",
        "sort",
        "topk",
        "argsort",
        "conv1d",
        "conv2d",
        "conv3d",
        "convolution",
    ]
)


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


class _Wrong(Exception):
    pass


def recheck(certificate: Mapping[str, Any]) -> Checked:
    """Check every step of a certificate. Raises `CertificateError`, naming the first that does not follow."""
    try:
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
    return np.repeat(values, counts).reshape(sizes)


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


def _right(fact: _Fact, rank: int) -> str:
    """The labels of an operand that broadcasts against a result of this rank."""
    return ABC[rank - len(fact.shape) : rank]


class _Checker:
    def __init__(self, c: Mapping[str, Any]) -> None:
        _need(c["certificate"] == 1, "its version is not 1")
        _need(c["digest"] == _hash({k: v for k, v in c.items() if k != "digest"}), "its digest is not that of its text")
        bare = [{k: v for k, v in s.items() if k not in ("lemma", "fact")} for s in c["steps"]]
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

    def run(self) -> Checked:
        for number, step in enumerate(self.c["steps"]):
            where = ", ".join(f"{k} {str(step[k])[:60]}" for k in ("node", "operator", "lemma"))
            try:
                _need(isinstance(step["node"], str) and step["node"] not in self.facts, "its name is taken, or is none")
                self.facts[step["node"]] = self._step(step)
            except (_Wrong, *BROKEN) as error:
                text = str(error) if isinstance(error, _Wrong) else f"{type(error).__name__}: {str(error)[:200]}"
                raise _Wrong(f"step {number + 1} ({where}) does not follow: {text}") from error
        output, assumptions = self.c["output"], tuple(str(x) for x in self.c["assumptions"])
        _need(set(self.inputs) <= set(self.facts), "an input is no step")
        fact = self.facts.get(output["node"])
        _need(isinstance(fact, _Fact), "the output is no step with one tensor")
        self._last_word(fact, {int(d): offset for d, offset in output["dims"]}, f"the output, {output['node']}, ")
        texts = (str(self.c["law"]), str(output["name"]), str(self.c["subject"]))
        return Checked(*texts, len(self.facts), assumptions, str(self.c["weights"]))

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
        _need((level >= NEVER).all() and ((status >= 0) & (status <= UNSURE)).all(), "a level or status that is none")
        return _Fact(tuple(shape), dtype, moves, level, status, value)

    def _step(self, step: Mapping[str, Any]) -> Any:
        data, lemma, operator = step["fact"], step["lemma"], step["operator"]
        if data is None:
            return None  # no tensor; whoever reads it is refused
        several = isinstance(data, list)
        each = (
            zip(data, step["shape"], step["dtype"], strict=True) if several else [(data, step["shape"], step["dtype"])]
        )
        said, derived = [self._said(*x) for x in each], []
        if lemma == "nothing_follows":
            nothing = all((f.level >= ALWAYS).all() and FREE not in f.moves and not f.status.any() for f in said)
            _need(nothing, "its fact says something")
            derived = said
        elif lemma == "given":
            derived = [self._given(step["node"], operator, said[0])]
        elif operator in ("parameter", "buffer") and lemma == "same_in_both_runs":
            derived = [self._constant(said[0], self._stored(operator, step["args"][0], said[0]))]
        elif operator == "getitem" and lemma == "part_of_a_tuple":
            (whole, place), facts = step["args"], self.facts
            _need(isinstance(facts[whole["node"]], list) and type(place) is int and place >= 0, "it is no part")
            derived = [facts[whole["node"]][place]]
        else:
            derived = self._applied(step, said)
        made = [None if d is None else self._compared(s, d) for s, d in zip(said, derived, strict=True)]
        return made if several else made[0]

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
        fits = np.choose(said.status, [_ordinary(derived), exact, _masked(derived), np.ones_like(exact)])
        _need(fits.all(), "a value it says is known, or ordinary, need not be so")
        return derived if derived.constant else replace(said, value=np.where(said.status == EXACT, derived.value, 0))

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
        arrays = [np.asarray(x) if np.ndim(x) else np.full((1,) * len(said.shape), x) for x in (level, status, value)]
        fact = _Fact(said.shape, said.dtype, said.moves, *arrays)
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
        wide = lambda a: a.reshape([a.shape[p] if p >= 0 else 1 for p in place])  # noqa: E731
        return wide(level), wide(empty)

    @staticmethod
    def _highest(levels: Sequence[Array]) -> Array:
        highest: Array = np.maximum.reduce(np.broadcast_arrays(*levels)) if len(levels) > 1 else levels[0]
        return highest

    def _filled(self, x: dict[str, Any]) -> Any:
        ((kind, name),) = x.items()
        if kind == "node":
            _need(
                isinstance(self.facts.get(name), _Fact), f"it reads {str(name)[:60]}, no earlier step with one tensor"
            )
            return self.facts[name]
        found = {"float": lambda: _number(x), "device": lambda: torch.device("cpu")}.get(kind)
        return found() if found else getattr(torch, str(name).removeprefix("torch."))

    def _applied(self, step: Mapping[str, Any], said: list[_Fact]) -> list[_Fact | None]:
        space, name, overload = step["operator"].split(".")
        op = getattr(getattr(torch.ops.aten, name), overload)
        known = space == "aten" and isinstance(op, torch._ops.OpOverload) and name not in REFUSED
        _need(known and not op._schema.is_mutable, "there is no check for this operator")
        schema = op._schema.arguments
        b = {x.name: x.default_value for x in schema if x.has_default_value()} | step["kwargs"]
        b |= {x.name: a for x, a in zip(schema[: len(step["args"])], step["args"], strict=True)}
        b = {k: _mapped(v, self._filled, dict) for k, v in b.items()}
        off = name in DROPS and (b.get("train") is False or b.get("p", b.get("dropout_p")) == 0)
        _need(off or torch.Tag.nondeterministic_seeded not in op.tags, "it is random")

        def run(leaf: Callable[[_Fact], Tensor], device: str = "cpu", **other: Any) -> list[Tensor]:
            where = {"device": torch.device(device)} if "device" in b else {}
            with torch.no_grad():
                made = op(**(_mapped(b, leaf) | where | other))
            return [made] if isinstance(made, Tensor) else list(made)

        made = run(lambda f: torch.empty(f.shape, dtype=getattr(torch, f.dtype), device="meta"), "meta")
        for s, t in zip(said, made, strict=True):
            _need((s.shape, f"torch.{s.dtype}") == (tuple(t.shape), str(t.dtype)), f"it is {t.dtype} {list(t.shape)}")
        fill, facts = name in FILLS, _operands(b)
        constant = fill or all(f.constant for f in facts)
        values: list[Any] = [None] * len(said)
        if constant and (fill or all(f.tensor is not None for f in facts)) and sum(t.numel() for t in made) <= LARGEST:
            empty = lambda f: torch.zeros((), dtype=getattr(torch, f.dtype)).expand(f.shape)  # noqa: E731
            values = run(lambda f: empty(f) if f.tensor is None else f.tensor)
        if step["lemma"] == "same_in_both_runs":
            _need(constant, "it is not constant")
            return [self._constant(s, t) for s, t in zip(said, values, strict=True)]
        lemma: Any = getattr(self, "_by_" + step["lemma"], None)
        _need(lemma, "there is no check for this lemma")
        derived: list[_Fact | None] = lemma(name, b, said, run)
        if constant:
            return [
                self._constant(s, t)
                if t is not None
                else replace(d or s, level=np.full((1,) * len(s.shape), NEVER), constant=True)
                for s, t, d in zip(said, values, derived, strict=True)
            ]
        return derived

    def _by_movement_equivariant(self, name: str, b: dict[str, Any], said: list[_Fact], run: Any) -> list[_Fact]:
        _need(name in MOVEMENT and b.get("mode", "constant") == "constant", "it does more than move elements")
        data = _operands({k: v for k, v in b.items() if k not in ("index", "indices", "other")})
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
        pointwise = torch.Tag.pointwise in getattr(torch.ops.aten, name).default.tags if False else True
        _need(pointwise, "it is not pointwise")
        return [out]
