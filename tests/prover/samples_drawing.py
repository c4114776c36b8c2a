"""One operator on small operands: draw what is said of the operands, two runs that fit it, and what then is true.

An operand is *given* (moved along some dimensions, constant along others, some elements redrawn in the second
run, some known) or is a constant: a buffer, or a parameter that is drawn anew with each pair of runs. From the
facts alone two runs are built; whatever a rule concludes of the result is then read off the runs.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import permutations, product
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.fx import Graph, Node

from orderproof.prover.constants import Constants
from orderproof.prover.fact import (
    ALWAYS,
    EXACT,
    LARGE,
    LOW,
    MASKED,
    NEVER,
    UNKNOWN,
    UNSURE,
    Fact,
    Known,
    compress,
    generators_of,
)
from orderproof.prover.interpret import Walk, interpret
from orderproof.prover.move import FREE, STILL, Move, moved

Array = NDArray[Any]
ORDINARY = 6e4  # an element said to be ordinary is smaller than this on ordinary inputs
SCALES = (1.0, 0.03, 20.0, 1.0)  # one a pair of runs; ordinary numbers are checked where the scale is at most 1
Scale = float | Literal["few", "wide"]
INFINITE = True  # +inf and NaN as known values or buffers
TIERS = (0.0, 0.0, 1.0, 2.5, -np.inf, -np.inf, -1e9, -1e4, -1.7e308, 1e9, np.inf, np.nan)


@dataclass(frozen=True)
class In:
    """An operand: its shape, what its values are like, and whether it must be a buffer."""

    shape: tuple[int, ...]
    kind: str = "real"  # real, positive, unit, bool, int, index (below `below`), or mask (a buffer of what masks hold)
    below: int = 0
    buffer: bool = False
    dtype: torch.dtype = torch.float64


def X(*shape: int, **options: Any) -> In:
    """An operand of real numbers."""
    return In(shape, **options)


@dataclass(frozen=True)
class Sample:
    """An operator and its arguments, operands among them."""

    operator: str  # "softmax.int"
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict, hash=False)
    reads: tuple[int, ...] = ()  # which of several results are read by somebody
    known: bool = True  # whether operands may be given with known values
    dense: bool = True  # whether what an element may depend on, it does depend on
    bounded: bool = True  # whether ordinary operands give an ordinary result, not only a finite one

    @property
    def target(self) -> Any:
        packet, _, overload = self.operator.partition(".")
        return getattr(getattr(torch.ops.aten, packet), overload or "default")

    def operands(self) -> list[In]:
        return [x for x in flat((self.args, self.kwargs)) if isinstance(x, In)]


def flat(tree: Any) -> Iterator[Any]:
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, list | tuple):
        for part in tree:
            yield from flat(part)
    else:
        yield tree


def filled(tree: Any, values: Iterator[Any]) -> Any:
    """The arguments with each operand replaced by the next value."""
    if isinstance(tree, dict):
        return {k: filled(v, values) for k, v in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(filled(x, values) for x in tree)
    return next(values) if isinstance(tree, In) else tree


# ---------------------------------------------------------------- what is said of the operands


@dataclass(frozen=True)
class Relation:
    """How the runs differ: permuted (by every permutation of `size`, or by one), or redrawn from each cut on."""

    family: str  # permutation, turn (one cycle of all, which is not its own inverse) or influence
    size: int

    @property
    def move(self) -> Move:
        return _everything(self.size) if self.family == "permutation" else _turn(self.size)

    def cases(self) -> list[tuple[int, int]]:
        """Pairs (generator, case)."""
        if self.family == "influence":
            return [(0, cut) for cut in range(self.size + 1)]
        return [(g, 0) for g in range(len(self.move.permutations))]  # type: ignore[arg-type]


@cache
def _everything(size: int) -> Move:
    return moved(np.array(list(permutations(range(size)))))


@cache
def _turn(size: int) -> Move:
    return moved(np.roll(np.arange(size), -1)[None])


@dataclass
class Given:
    """An operand in its role: a fact about it, or the value of a buffer, or a parameter (neither)."""

    operand: In
    fact: Fact | None = None
    buffer: Array | None = None
    wild: bool = False  # holds, or may hold, what is not an ordinary number


def draw_role(rng: np.random.Generator, operand: In, relation: Relation, *, constant: bool, known: bool) -> Given:
    if operand.buffer or constant:
        if operand.kind in ("real", "positive", "unit") and not operand.buffer and rng.random() < 0.4:
            return Given(operand)
        shape = [1 if s == relation.size and rng.random() < 0.4 else s for s in operand.shape]
        if rng.random() < 0.2:
            shape = [1] * len(shape)
        wild = operand.kind == "mask" or (known and operand.kind == "real" and rng.random() < 0.4)
        values = _tiers(rng, shape) if wild else _values(rng, operand, shape, 1.0)
        array = np.array(np.broadcast_to(values, operand.shape))
        return Given(operand, buffer=array, wild=bool((~(np.abs(array) < ORDINARY)).any()))
    return _given(rng, operand, relation, known=known)


def _given(rng: np.random.Generator, operand: In, relation: Relation, *, known: bool) -> Given:
    shape = operand.shape
    permuting = relation.family != "influence"
    moves = []
    for size in shape:
        if permuting and size == relation.size and rng.random() < 0.5:
            moves.append(relation.move)
        else:
            moves.append(FREE if size > 1 and rng.random() < 0.12 else STILL)
    level = _levels(rng, shape, moves, relation)
    if not (known and rng.random() < 0.45):
        return Given(operand, Fact(shape, tuple(moves), level))
    found = _known(rng, operand, moves)
    status, value = (np.broadcast_to(x, shape) for x in (found.status, found.value))
    exact = status == EXACT
    for g in range(generators_of(tuple(moves)) or 1):  # an element and its image cannot be unequal and equal
        image = read(value, tuple(moves), g)
        same = (image == value) | ((image != image) & (value != value)) | (status != EXACT)
        same &= read(status, tuple(moves), g) == status
        level = np.where(same, level, ALWAYS)
        exact = exact & same
    level = np.where(exact, NEVER, level)
    wild = bool((found.status >= MASKED).any() or (~(np.abs(found.value.astype(float)) < ORDINARY)).any())
    return Given(operand, Fact(shape, tuple(moves), compress(level), found), wild=wild)


def _part(rng: np.random.Generator, shape: tuple[int, ...], moves: list[Move]) -> list[int]:
    """Sizes of an array that varies along some of the dimensions that are not free."""
    return [s if m is not FREE and rng.random() < 0.7 else 1 for s, m in zip(shape, moves, strict=True)]


def _levels(rng: np.random.Generator, shape: tuple[int, ...], moves: list[Move], relation: Relation) -> Array:
    one = (1,) * len(shape)
    if relation.family != "influence":
        if rng.random() < 0.7:
            return np.full(one, NEVER if rng.random() < 0.93 else ALWAYS, dtype=np.int64)
        return np.where(rng.random(_part(rng, shape, moves)) < 0.3, ALWAYS, NEVER).astype(np.int64)
    along = [d for d, s in enumerate(shape) if s == relation.size and moves[d] is not FREE]
    if along and rng.random() < 0.5:
        d = int(rng.choice(along))
        return np.arange(shape[d], dtype=np.int64).reshape([-1 if k == d else 1 for k in range(len(shape))])
    if rng.random() < 0.3:
        return np.full(one, NEVER, dtype=np.int64)
    choices = np.array([NEVER, *range(relation.size), ALWAYS])
    return rng.choice(choices, size=_part(rng, shape, moves)).astype(np.int64)


def _known(rng: np.random.Generator, operand: In, moves: list[Move]) -> Known:
    sizes = _part(rng, operand.shape, moves)
    real = operand.kind == "real"
    status = rng.choice([UNKNOWN, UNKNOWN, EXACT, EXACT, *([MASKED, UNSURE, LOW] if real else [])], size=sizes)
    if rng.random() < 0.5:  # one kind of known element, as after a mask
        status = np.where(status > UNKNOWN, rng.choice([EXACT, EXACT, MASKED]) if real else EXACT, UNKNOWN)
    value = _tiers(rng, sizes) if real else _values(rng, operand, sizes, 1.0)
    if value.size and rng.random() < 0.5:
        value = np.broadcast_to(value.reshape(-1)[:1].reshape([1] * len(sizes)), sizes)
    if real:
        value = np.where(status == MASKED, rng.choice([-1e9, -2e8, -1e30]), value)
    value = np.where((status == EXACT) | (status == MASKED), value, 0)
    return Known(status.astype(np.uint8), value)


def _tiers(rng: np.random.Generator, shape: Any) -> Array:
    """Masks of every tier, zeros, ones; seldom infinity, seldom what is no number."""
    weights = np.array([4, 4, 3, 3, 4, 4, 4, 2, 2, 1, 0.5 * INFINITE, 0.25 * INFINITE])
    return rng.choice(np.array(TIERS), size=shape, p=weights / weights.sum())


def _values(rng: np.random.Generator, operand: In, shape: Any, scale: Scale) -> Array:
    made = _reals(rng, operand, shape, scale)
    return made + 1j * _reals(rng, operand, shape, scale) if operand.dtype.is_complex else made


def _reals(rng: np.random.Generator, operand: In, shape: Any, scale: Scale) -> Array:
    if isinstance(scale, str):
        return _dense(rng, operand, shape, scale)
    if operand.kind == "bool":
        return rng.random(shape) < 0.5
    if operand.kind == "int":
        return rng.integers(-3, 4, size=shape)
    if operand.kind == "index":
        return rng.integers(0, operand.below, size=shape)
    if operand.kind == "unit":
        return rng.uniform(0.05, 0.95, size=shape)
    if operand.kind == "positive":
        return np.abs(rng.normal(size=shape)) * min(scale, 3.0) + 0.2
    return rng.normal(size=shape) * scale


def _dense(rng: np.random.Generator, operand: In, shape: Any, scale: str) -> Array:
    """Values such that what may change soon does: few that often meet, or ones as far apart as ordinary ones get."""
    if operand.kind == "bool":
        return rng.random(shape) < rng.choice([0.1, 0.5, 0.9])
    if operand.kind == "int":
        return rng.integers(*((0, 2) if scale == "few" else (-3, 4)), size=shape)
    if operand.kind in ("index", "unit"):
        return _reals(rng, operand, shape, 1.0)
    if scale == "few":
        made = np.round(rng.normal(size=shape))
    else:
        made = rng.normal(size=shape) * rng.choice([0.3, 1.0, 4.0, 3e4])
    made = np.clip(made, -0.9 * ORDINARY, 0.9 * ORDINARY)
    return np.abs(made) + rng.choice([0.01, 1.0]) if operand.kind == "positive" else made


# ---------------------------------------------------------------- two runs that fit


def _drawn(rng: np.random.Generator, given: Given, scale: Scale) -> Array:
    """Values of an operand that fit its known elements."""
    operand, fact = given.operand, given.fact
    assert fact is not None
    shape = [1 if m is FREE else s for s, m in zip(fact.shape, fact.moves, strict=True)]
    made = _values(rng, operand, shape, scale)
    if fact.known is not None:
        status, value = fact.known.status, fact.known.value
        if operand.kind == "real":
            below = value - np.abs(rng.normal(size=shape)) * 10.0 ** rng.integers(0, 12)
            if isinstance(scale, str):
                below = np.where(status == MASKED, value, 0.0) * (1 + np.abs(rng.normal(size=shape)))
                below = np.where(rng.random(shape) < 0.2, -np.inf, below)
            anything = rng.choice([1.0, -1e9, -1e4, 1e9, *([np.inf, -np.inf] if INFINITE else [])], size=shape)
            least = rng.choice([1.0, -1e9, -1e4, *([-np.inf] if INFINITE else [])], size=shape)
            made = np.where(status == MASKED, below, np.where(status == UNSURE, anything, made))
            made = np.where((status == LOW) & (least < 1.0), least, made)
        made = np.where(status == EXACT, value, made)
    return np.array(np.broadcast_to(made, fact.shape))


def placed(array: Array, moves: tuple[Move, ...], generator: int) -> Array:
    """The array that holds array[e] at move(e)."""
    result = np.empty_like(array)
    result[np.ix_(*[m.indices(generator, s) for m, s in zip(moves, array.shape, strict=True)])] = array
    return result


def read(array: Array, moves: tuple[Move, ...], generator: int) -> Array:
    """The array that holds array[move(e)] at e."""
    found: Array = array[np.ix_(*[m.indices(generator, s) for m, s in zip(moves, array.shape, strict=True)])]
    return found


def two_runs(
    rng: np.random.Generator, roles: list[Given], generator: int, case: int, scale: Scale, first: list[Array]
) -> list[Array]:
    """The operands of the second run, given those of the first."""
    second = []
    for given, x in zip(roles, first, strict=True):
        if given.fact is None:
            second.append(x)
            continue
        fresh = _drawn(rng, given, scale)
        kept = np.broadcast_to(given.fact.level < case, x.shape)
        second.append(placed(np.where(kept, x, read(fresh, given.fact.moves, generator)), given.fact.moves, generator))
    return second


def first_run(rng: np.random.Generator, roles: list[Given], scale: Scale) -> list[Array]:
    made = []
    for given in roles:
        if given.fact is not None:
            made.append(_drawn(rng, given, scale))
        elif given.buffer is not None:
            made.append(given.buffer)
        else:
            made.append(_values(rng, given.operand, given.operand.shape, scale))
    return made


# ---------------------------------------------------------------- the walk, and what is true


@dataclass
class Trial:
    """One operator on operands in their roles: what the walk says of each result, and pairs of runs."""

    sample: Sample
    relation: Relation
    roles: list[Given]
    walk: Walk
    node: Node
    constants: Constants

    def facts(self) -> list[Fact]:
        found = self.walk.facts[self.node]
        return list(found) if isinstance(found, tuple) else [found]

    def kind(self) -> str:
        """What makes it hard to be exact: known elements and masks, cuts, whole numbers; ordinary where none does."""
        value = self.node.meta["val"]
        results = value if isinstance(value, list | tuple) else [value]
        if any(g.wild or (g.fact is not None and g.fact.known is not None) for g in self.roles):
            return "known"
        if self.relation.family == "influence":
            return "cut"
        real = all(g.operand.kind not in ("bool", "int", "index") for g in self.roles)
        return "ordinary" if real and all(v.is_floating_point() for v in results) else "whole"

    def describe(self) -> str:
        lines = [f"{self.sample.operator}{self.sample.args}{self.sample.kwargs or ''} {self.relation}"]
        for k, given in enumerate(self.roles):
            f = given.fact
            if f is None:
                lines.append(f"  {k}: {'parameter' if given.buffer is None else given.buffer.tolist()}")
            else:
                kinds = [m.kind for m in f.moves]
                lines.append(f"  {k}: {kinds} level {f.level.tolist()}")
                if f.known is not None:
                    lines.append(f"     status {f.known.status.tolist()} value {f.known.value.tolist()}")
        for f in self.facts():
            lines.append(f"  -> {[m.kind for m in f.moves]} level {f.level.tolist()}")
            if f.known is not None:
                lines.append(f"     status {f.known.status.tolist()} value {f.known.value.tolist()}")
        lines += [f"  broke: {b.reason}" for b in self.walk.breaks]
        return "\n".join(lines)


def trial(sample: Sample, relation: Relation, roles: list[Given]) -> Trial:
    """Walk a graph of one operator."""
    graph = Graph()
    values, state, facts, parameters = {}, {}, {}, []
    nodes = []
    for k, given in enumerate(roles):
        node = graph.placeholder(f"x{k}")
        node.meta["val"] = torch.empty(given.operand.shape, dtype=_dtype(given.operand), device="meta")
        nodes.append(node)
        if given.fact is not None:
            facts[node] = given.fact
            continue
        state[node.name] = f"state{k}"
        if given.buffer is not None:
            values[f"state{k}"] = torch.from_numpy(given.buffer).to(_dtype(given.operand))
        else:
            parameters.append(f"state{k}")
            values[f"state{k}"] = torch.full(given.operand.shape, torch.nan, dtype=_dtype(given.operand))
    supply = iter(nodes)
    target = sample.target
    node = graph.call_function(target, filled(sample.args, supply), filled(sample.kwargs, supply))
    made = apply(sample, first_run(np.random.default_rng(0), roles, 1.0))
    node.meta["val"] = [torch.empty_like(x, device="meta") for x in made] if len(made) > 1 else made[0].to("meta")
    if _returns_list(target) and len(made) == 1:
        node.meta["val"] = [made[0].to("meta")]
    for k in sample.reads:
        graph.call_function(operator.getitem, (node, k)).meta["val"] = made[k].to("meta")
    constants = Constants(graph, state, values, parameters=parameters)
    return Trial(sample, relation, roles, interpret(graph, constants, facts), node, constants)


def _returns_list(target: Any) -> bool:
    returns = target._schema.returns
    return len(returns) == 1 and "Tensor[]" in str(returns[0].type).replace("List[Tensor]", "Tensor[]")


def _dtype(operand: In) -> torch.dtype:
    if operand.kind == "bool":
        return torch.bool
    return torch.int64 if operand.kind in ("int", "index") else operand.dtype


def apply(sample: Sample, arrays: list[Array]) -> list[Tensor]:
    """The operator itself, on numbers."""
    tensors = iter(
        [
            torch.from_numpy(np.ascontiguousarray(a)).to(_dtype(o))
            for a, o in zip(arrays, sample.operands(), strict=True)
        ]
    )
    args, kwargs = filled(sample.args, tensors), filled(sample.kwargs, tensors)
    with torch.no_grad():
        made = sample.target(*args, **kwargs)
    results = made if isinstance(made, list | tuple) else [made]
    return [x.resolve_conj() for x in results if isinstance(x, Tensor)]


@dataclass
class Runs:
    """Pairs of results of one trial: for each pair the generator, the case, whether ordinary, and both results."""

    pairs: list[tuple[int, int, float, list[Array], list[Array]]]


def runs_of(tried: Trial, rng: np.random.Generator) -> Runs:
    pairs = []
    cases = tried.relation.cases()
    for scale in SCALES[: 2 if len(cases) > 6 else 3 if len(cases) > 2 else 4]:
        first = first_run(rng, tried.roles, scale)
        one = [np.asarray(x) for x in apply(tried.sample, first)]
        for generator, case in cases:
            second = two_runs(rng, tried.roles, generator, case, scale, first)
            two = [np.asarray(x) for x in apply(tried.sample, second)]
            pairs.append((generator, case, scale, one, two))
    return Runs(pairs)


def tolerance(*arrays: Array) -> float:
    """How far numbers may differ by rounding alone: half of the digits of the coarsest dtype, less three bits."""
    return 8 * float(np.sqrt(max(np.finfo(x.dtype).eps for x in arrays if x.dtype.kind in "fc")))


def unequal(a: Array, b: Array) -> Array:
    """Elements that differ by more than rounding."""
    if a.dtype.kind in "biu":
        found: Array = a != b
        return found
    with np.errstate(invalid="ignore", over="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        scale = np.maximum(np.abs(a), np.abs(b))
        usual = np.abs(np.concatenate([a.reshape(-1), b.reshape(-1)]))
        usual = usual[usual < ORDINARY]
        scale = np.maximum(scale, usual.max() if usual.size else 0.0)
        return ~same & ~((np.abs(a - b) <= tolerance(a, b) * scale) & np.isfinite(scale))


def contradictions(tried: Trial, runs: Runs) -> Iterator[str]:
    """What the walk says of the results that the runs deny."""
    yield from (f"internal: {b.reason}" for b in tried.walk.breaks if b.reason.startswith("internal"))
    constant = tried.node in tried.constants
    for k, fact in enumerate(tried.facts()):
        shape = runs.pairs[0][3][k].shape
        wrong_form = list(malformed(fact, shape))
        yield from wrong_form
        if wrong_form:
            continue
        for generator, case, scale, one, two in runs.pairs:
            a, b = one[k], two[k]
            held = np.broadcast_to(fact.level < case, shape)
            wrong = unequal(a, read(b, fact.moves, generator)) & held
            if wrong.any():
                yield f"result {k}: {_where(wrong)} changes under {generator}, {case}"
            for x in (a, b):
                yield from _denied(fact, x, k)
                if scale <= 1 and not constant:
                    yield from _not_ordinary(fact, x, k, tried)


def malformed(fact: Fact, shape: tuple[int, ...]) -> Iterator[str]:
    arrays = [fact.level] + ([] if fact.known is None else [fact.known.status, fact.known.value])
    if fact.shape != shape or len(fact.moves) != len(shape):
        yield f"malformed: {len(fact.moves)} moves and shape {fact.shape} for {shape}"
    for array in arrays:
        if array.ndim != len(shape) or any(s not in (1, n) for s, n in zip(array.shape, shape, strict=True)):
            yield f"malformed: an array of {array.shape} for {shape}"
    for d, move in enumerate(fact.moves):
        if move.permutations is not None and move.permutations.shape[1] != shape[d]:
            yield f"malformed: dimension {d} of {shape} moves by permutations of {move.permutations.shape[1]}"


def _denied(fact: Fact, x: Array, k: int) -> Iterator[str]:
    for d, move in enumerate(fact.moves):
        if move is FREE and unequal(x, np.broadcast_to(np.take(x, [0], axis=d), x.shape)).any():
            yield f"result {k}: not constant along dimension {d}"
    status = np.broadcast_to(UNKNOWN if fact.known is None else fact.known.status, x.shape)
    if fact.known is not None:
        value = np.broadcast_to(fact.known.value, x.shape)
        wrong = (status == EXACT) & unequal(x, value)
        if wrong.any():
            yield f"result {k}: {_where(wrong)} is {x[wrong][0]}, not {value[wrong][0]}"
        if x.dtype.kind == "f":
            wrong = (status == MASKED) & ~(x <= np.minimum(0.9 * value, -0.9 * LARGE))
            if wrong.any():
                yield f"result {k}: {_where(wrong)} is {x[wrong][0]}, no mask"
            wrong = (status == LOW) & ~(x < np.inf)
            if wrong.any():
                yield f"result {k}: {_where(wrong)} passes for low and is {x[wrong][0]}"


def _not_ordinary(fact: Fact, x: Array, k: int, tried: Trial) -> Iterator[str]:
    if x.dtype.kind == "f":
        status = np.broadcast_to(UNKNOWN if fact.known is None else fact.known.status, x.shape)
        wrong = (status == LOW) & ~(x < ORDINARY)
        if wrong.any():
            yield f"result {k}: {_where(wrong)} passes for low and is {x[wrong][0]}"
        wrong = (status == UNKNOWN) & ~(np.abs(x) < (ORDINARY if tried.sample.bounded else np.inf))
        if wrong.any():
            yield f"result {k}: {_where(wrong)} passes for ordinary and is {x[wrong][0]}"


def _where(mask: Array) -> list[int]:
    return [int(i) for i in np.argwhere(mask)[0]] if mask.ndim else []


@dataclass
class Claim:
    """What the walk does not say of a result, and could: that these elements stay as they were under these moves."""

    result: int
    moves: tuple[Move, ...]
    case: int
    open: Array  # the elements that no pair of runs has been seen to change
    together: bool  # whether the claim is that none of them changes, and falls with the first
    large: Array  # the elements that were infinite, no number, or as large as a mask in every run

    def hear(self, one: list[Array], two: list[Array], generator: int) -> None:
        """Close what a pair of results denies."""
        first, second = one[self.result], read(two[self.result], self.moves, generator)
        changed = self.open & unequal(first, second)
        with np.errstate(invalid="ignore"):
            self.large = self.large & ~(np.abs(first) < ORDINARY) & ~(np.abs(second) < ORDINARY)
        self.open = np.zeros_like(self.open) if self.together and changed.any() else self.open & ~changed


def unsaid(tried: Trial) -> Iterator[Claim]:
    """What is refused: where nothing is said, each way to move; else each element that is said to change."""
    for k, fact in enumerate(tried.facts()):
        level = np.minimum(np.broadcast_to(fact.level, fact.shape), tried.relation.size)
        every = np.ones(fact.shape, dtype=bool)
        if tried.relation.family != "influence" and level.size and (level > NEVER).all():
            for moves in _readings(fact.shape, tried.relation):
                yield Claim(k, moves, 0, every, True, every)
        elif tried.relation.family != "influence" and (level > NEVER).any():
            yield Claim(k, fact.moves, 0, level > NEVER, False, every)
        elif tried.relation.family == "influence":
            for case in np.unique(level[level > NEVER]):
                yield Claim(k, fact.moves, int(case), level == case, False, every)


def undenied(tried: Trial, claims: list[Claim], rng: np.random.Generator, most: int) -> list[Claim]:
    """The claims that no pair of runs denies; pairs are drawn until none is left, but no more than so many."""
    for k in range(most):
        if not any(c.open.any() for c in claims):
            break
        scale: Scale = "few" if k % 2 else "wide"
        first = first_run(rng, tried.roles, scale)
        one = [np.asarray(x) for x in apply(tried.sample, first)]
        for generator, case in tried.relation.cases():
            asked = [c for c in claims if c.case == case and c.open.any()]
            if asked:
                second = two_runs(rng, tried.roles, generator, case, scale, first)
                two = [np.asarray(x) for x in apply(tried.sample, second)]
                for claim in asked:
                    claim.hear(one, two, generator)
    return [c for c in claims if c.open.any()]


def _readings(shape: tuple[int, ...], relation: Relation) -> Iterator[tuple[Move, ...]]:
    yield from product(*[(STILL, relation.move) if s == relation.size else (STILL,) for s in shape])


def trials(sample: Sample, count: int, seed: int) -> Iterator[tuple[Trial, np.random.Generator]]:
    """Trials of one sample, each with the generator to draw its runs from."""
    operands = sample.operands()
    sizes = sorted({s for o in operands for s in o.shape if 1 < s <= 4})
    for k in range(count):
        rng = np.random.default_rng([seed, k])
        family = "influence" if k % 3 == 2 else "turn" if k % 6 == 4 else "permutation"
        relation = Relation(family, int(rng.choice(sizes or [2])))
        known = sample.known and rng.random() < 0.6
        fixed = int(rng.integers(len(operands))) if len(operands) > 1 and rng.random() < 0.5 else -1
        roles = [draw_role(rng, o, relation, constant=i == fixed, known=known) for i, o in enumerate(operands)]
        if all(g.fact is None for g in roles):
            continue
        yield trial(sample, relation, roles), rng
