"""Every rule against brute force: one operator on small operands, every permutation, every cut.

What a rule concludes (moves, levels, known values, constancy, ordinariness) is held against real runs in
float64, built from nothing but the facts about the operands. What it refuses to say, runs must deny; where they
do not, COARSE holds the reason, and a reason that excuses nothing is an error.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import pytest

from orderproof.prover.fact import EXACT, LARGE, MASKED, UNKNOWN, UNSURE, Known, compress
from orderproof.prover.masking import ABSORBING, MULTIPLY
from orderproof.prover.move import FREE, is_moved
from orderproof.prover.rule import rules
from tests.prover.samples import SAMPLES
from tests.prover.samples_drawing import (
    ORDINARY,
    Array,
    Claim,
    Given,
    Sample,
    Trial,
    apply,
    contradictions,
    filled,
    runs_of,
    trials,
    undenied,
    unsaid,
)

COUNT = 24  # trials of each sample
FEW = 5  # of them where the answer is to come soon
NAMES = [name for name, _ in groupby(SAMPLES, key=lambda s: s.operator)]
RUNS_NOWHERE_HERE = {
    "cudnn_batch_norm",  # refused by its rule, and needs a GPU to run
    "_unsafe_expand",  # no such operator in torch 2.13
}

# Operators that something false is said of, and what: the mistakes that are still there.
WRONG: dict[str, str] = {}  # operators of which something wrong is said, and why: strict xfails until it is not


def said_wrongly(sample: Sample, trials_of_each: int) -> Iterator[tuple[str, str]]:
    """What is said of the result that runs deny, and the trial it was said in."""
    for tried, rng in trials(sample, trials_of_each, SAMPLES.index(sample)):
        for text in contradictions(tried, runs_of(tried, rng)):
            yield text, tried.describe()


def cases() -> list[object]:
    """Each operator with few trials, and with all of them; where a mistake is known, with all of them only."""
    found: list[object] = []
    for name in dict.fromkeys(NAMES):
        if name in WRONG:
            wrong = pytest.mark.xfail(strict=True, raises=AssertionError, reason=WRONG[name])
            found.append(pytest.param(name, COUNT, marks=wrong, id=name))
        else:
            found.append(pytest.param(name, FEW, id=f"{name}-few"))
            found.append(pytest.param(name, COUNT, marks=pytest.mark.slow, id=name))
    return found


@pytest.mark.parametrize(("name", "count"), cases())
def test_what_a_rule_says_of_an_operator_holds_in_every_run(name: str, count: int) -> None:
    for sample in SAMPLES:
        if sample.operator == name:
            for text, trial in said_wrongly(sample, count):
                raise AssertionError(f"{text}\n{trial}")


@pytest.mark.parametrize("rule", list(rules()), ids=lambda r: f"{r.lemma}-{r.apply.__name__}")
def test_every_operator_of_a_rule_has_a_sample(rule: object) -> None:
    operators = set(rule.operators) - RUNS_NOWHERE_HERE - {"<pointwise>"}  # type: ignore[attr-defined]
    sampled = {re.sub(r"\.default$", "", s.operator) for s in SAMPLES}
    sampled |= {name.split(".")[0] for name in sampled} | {f"{name}.default" for name in sampled}
    assert operators - sampled == set()


# ---------------------------------------------------------------- the other direction: what is refused is really false

TRIED, PAIRS = 10, 40  # trials of each sample; pairs of runs to see a refused claim denied
TRIED_LONG, PAIRS_LONG = 30, 120
KINDS = ("ordinary", "whole", "known", "cut")  # of a trial: see Trial.kind


@dataclass(frozen=True)
class Coarse:
    """Why something true is not said, and where: in trials of these kinds and operators, at the elements of `where`."""

    reason: str
    kinds: tuple[str, ...]
    operators: tuple[str, ...] = ()  # all of them
    where: Callable[[Trial, Claim], Array | bool] = lambda tried, claim: True

    def covers(self, tried: Trial, claim: Claim) -> Array | bool:
        """The elements of a claim that this reason excuses."""
        named = not self.operators or tried.sample.operator in self.operators
        return self.where(tried, claim) if named and tried.kind() in self.kinds else False


def lemma(tried: Trial) -> str:
    return tried.walk.lemmas[tried.node]


def packet(tried: Trial) -> str:
    return tried.sample.operator.split(".")[0]


def contents(given: Given) -> Known | None:
    """What is known of an operand's values; of a buffer, all."""
    if given.buffer is not None:
        return Known(np.full(given.buffer.shape, EXACT, dtype=np.uint8), given.buffer)
    return given.fact.known if given.fact is not None else None


def values_known(tried: Trial) -> bool:
    return any(contents(g) is not None for g in tried.roles)


def known_there(tried: Trial, claim: Claim) -> Array:
    """The elements of an elementwise result at which something is known of an operand."""
    found = np.zeros_like(claim.open)
    for given in tried.roles[: 1 if packet(tried) == "type_as" else None]:  # the other lends its type alone
        known = contents(given)
        if known is not None:
            found = found | np.broadcast_to(known.status != UNKNOWN, given.operand.shape)
    return found


def known_and_moved(tried: Trial, claim: Claim) -> bool:
    """Whether an operand that moves is wholly known; known in part, for the claim that nothing moves."""
    still = not any(is_moved(m) for m in claim.moves)
    knowns = [g.fact.known for g in tried.roles if g.fact is not None and not g.fact.unmoved]
    exact = [known.where(EXACT) for known in knowns if known is not None]
    return claim.together and any(x.any() if still else x.all() for x in exact)


def level_line(tried: Trial) -> bool:
    """Whether an operand is the same all along some dimension."""
    free = any(g.fact is not None and any(m is FREE for m in g.fact.moves) for g in tried.roles)
    return free or any(g.buffer is not None and compress(g.buffer).size < g.buffer.size for g in tried.roles)


def masks_alone(tried: Trial) -> bool:
    """Whether all that is known of what an extreme is taken of are masks, which its lemma drops."""
    known = contents(tried.roles[0])
    dropped = lemma(tried) == "extreme_of_visible" and known is not None
    return dropped and bool(np.isin(known.status, (UNKNOWN, MASKED)).all())


def constant_zeros(tried: Trial) -> bool:
    return any(g.buffer is not None and (g.buffer == 0).any() for g in tried.roles)


def may_be_no_number(tried: Trial) -> bool:
    """Whether a softmax may meet +inf or NaN, or a sum of products anything as large as a mask."""
    if lemma(tried) != "softmax_equivariant":
        return any(g.wild for g in tried.roles[:3])
    known = contents(tried.roles[0])
    ill = known is not None and ((known.status == UNSURE) | (known.where(EXACT) & ~(known.value < np.inf)))
    return bool(np.any(ill))


def one_visible(tried: Trial, claim: Claim) -> Array | bool:
    """The elements in whose line of a softmax no more than one entry is visible."""
    attention = lemma(tried) == "attention_equivariant"
    roles = tried.roles[3:] if attention else tried.roles[:1]
    shape = np.broadcast_shapes(claim.open.shape, (1, 1)) if attention else claim.open.shape
    if attention and not roles:  # a causal mask, if any: the first query sees one key
        causal = len(tried.sample.args) > 5
        return np.broadcast_to((np.arange(shape[-2]) == 0)[:, None], shape) & causal
    known = contents(roles[0])
    if known is None:
        return False
    boolean = roles[0].operand.kind == "bool"
    hidden = known.where(EXACT) & (~known.value.astype(bool) if boolean else known.value <= -LARGE)
    axis = -1 if attention else int(tried.sample.args[1])
    full = np.broadcast_to(~(hidden | known.where(MASKED)), roles[0].operand.shape)
    return np.broadcast_to(full.sum(axis=axis, keepdims=True) <= 1, shape)


def given_as(tried: Trial, *names: str) -> Any:
    """What was given as one argument (under the first of these names that the operator has), or its default."""
    schema = tried.sample.target._schema.arguments
    supply = iter(tried.roles)
    given = filled((tried.sample.args, tried.sample.kwargs), supply)
    bound = {x.name: x.default_value for x in schema} | {x.name: v for x, v in zip(schema, given[0], strict=False)}
    return next((v for k, v in (bound | given[1]).items() if k in names), None)


def decides_in_vain(tried: Trial) -> bool:
    """Whether a real operand has known values of which the rule takes nothing."""
    named = packet(tried) in CONVOLUTIONS or lemma(tried) in {"normalisation_equivariant", "dense_dependence"}
    return named and any(g.operand.kind == "real" and contents(g) is not None for g in tried.roles)


def beyond_the_ordinary(tried: Trial) -> bool:
    """Whether what is clamped is past one of the bounds, if it is ordinary."""
    low, high = given_as(tried, "min", "min_val"), given_as(tried, "max", "max_val")
    return bool((low is not None and low >= ORDINARY) or (high is not None and high <= -ORDINARY))


def frequencies_without_a_part(tried: Trial, claim: Claim) -> Array | bool:
    """The elements of a transform in whose line something changes, all of it with coefficient zero."""
    (given,) = tried.roles
    assert given.fact is not None
    shape, free = given.operand.shape, [m is FREE for m in given.fact.moves]
    changed = np.broadcast_to(given.fact.level, shape) >= claim.case
    dims, sizes = given_as(tried, "dim"), given_as(tried, "s", "n")
    if dims is None:
        dims = range(len(shape) - len(sizes) if sizes is not None else 0, len(shape))
    lines = changed.any(axis=tuple(d % len(shape) for d in ([dims] if isinstance(dims, int) else dims)), keepdims=True)
    found = np.broadcast_to(lines & (not claim.together), claim.open.shape)
    for place in np.argwhere(changed):
        part = np.zeros(shape, dtype=complex if given.operand.dtype.is_complex else float)
        part[tuple(slice(None) if f else i for f, i in zip(free, place, strict=True))] = 1
        for unit in (1, 1j) if given.operand.dtype.is_complex else (1,):
            found = found & (np.abs(np.asarray(apply(tried.sample, [unit * part])[0])) < 1e-9)
    return found


def level_varies(given: Given, *dims: int) -> bool:
    return given.fact is not None and any(given.fact.level.shape[d] > 1 for d in dims)


def channels_by_themselves(tried: Trial) -> bool:
    """Whether a convolution is transposed or grouped, and its channels depend on unlike tokens."""
    x, weight = tried.roles[:2]
    transposed = packet(tried) == "convolution" and given_as(tried, "transposed")
    alone = len(x.operand.shape) < len(weight.operand.shape)
    grouped = given_as(tried, "groups") > 1
    return (transposed and level_varies(weight, 1)) or (
        grouped and (level_varies(x, 0 if alone else 1) or level_varies(weight, 0))
    )


def at_the_border(tried: Trial, claim: Claim) -> Array | bool:
    """The elements of a convolution that some of its weights miss, where these depend on unlike tokens."""
    weight = tried.roles[1]
    if claim.together or not level_varies(weight, *range(2, len(weight.operand.shape))):
        return False
    ones = [np.full(g.operand.shape, float(k < 2)) for k, g in enumerate(tried.roles)]
    taps = np.asarray(apply(tried.sample, ones)[0])
    return taps < taps.max()


def channels_move(tried: Trial, claim: Claim) -> bool:
    """Whether channels of a convolution's operands are exchanged."""
    x, weight, *bias = tried.roles
    first = len(x.operand.shape) + 1 - len(weight.operand.shape)
    channels = [(x, first), (weight, 0), (weight, 1), *((b, 0) for b in bias)]
    return claim.together and any(g.fact is not None and is_moved(g.fact.moves[d]) for g, d in channels)


def places(tried: Trial) -> list[Given]:
    """The indices of a write."""
    found = given_as(tried, "index", "indices")
    return [g for g in (found if isinstance(found, list) else [found]) if g is not None]


def places_known(tried: Trial) -> bool:
    """Whether something is known of the places that are written."""
    return any(known is not None and known.where(EXACT).any() for known in map(contents, places(tried)))


def places_reordered(tried: Trial, claim: Claim) -> bool:
    """Whether places are exchanged at which the same is written."""
    if not claim.together or all(g.fact is None or g.fact.unmoved for g in places(tried)):
        return False
    source, dim = given_as(tried, "value", "values", "src", "source"), given_as(tried, "dim")
    if not isinstance(source, Given):
        return True
    shape = source.operand.shape
    dims = [d for d, s in enumerate(shape) if s == tried.relation.size] if dim is None else [dim % len(shape)]
    known = contents(source)
    level = (
        set()
        if known is None or (known.status == UNKNOWN).any()
        else {d for d in dims if compress(known.status).shape[d] == compress(known.value).shape[d] == 1}
    )
    free = source.fact.moves if source.fact is not None else ()
    return all(d in level or (free and free[d] is FREE) for d in dims)


def source_longer(tried: Trial) -> bool:
    """Whether some of what could be written has no place given for it."""
    (index,), source, dim = places(tried), given_as(tried, "src"), given_as(tried, "dim")
    return bool(source.operand.shape[dim] > index.operand.shape[dim])


PRODUCT, SOFTMAX, ATTENTION = "contraction_equivariant", "softmax_equivariant", "attention_equivariant"
EXTREMES = {
    "all", "any", "amax", "amin", "max", "min", "argmax", "argmin", "median", "mode", "logsumexp", "logcumsumexp",
    "cummax", "cummin", "sort", "argsort", "topk", "msort", "max_pool2d_with_indices",
}  # fmt: skip
CONVOLUTIONS = {"conv1d", "conv2d", "conv3d", "convolution"}
SCATTERS = (
    "scatter.value", "scatter.src", "scatter_add", "scatter_reduce.two", "index_add", "index_copy",
    "index_fill.int_Scalar", "index_put", "_unsafe_index_put", "_index_put_impl",
)  # fmt: skip
TRANSFORMS = (
    "fft_fft", "fft_ifft", "fft_hfft", "fft_ihfft", "fft_fft2", "fft_ifft2", "fft_rfft2", "fft_irfft2", "fft_fftn",
    "fft_ifftn", "fft_rfftn", "fft_irfftn", "_fft_r2c", "_fft_c2c", "_fft_c2r",
)  # fmt: skip
LINES = {
    PRODUCT, SOFTMAX, ATTENTION, "normalisation_equivariant", "reduction_invariant", "extreme_of_visible",
    "scan_dependence", "lookup_equivariant",
}  # fmt: skip

SWALLOWED = Coarse(  # the one that is read off the runs
    "over the reals: what an infinite or huge number swallows by rounding is kept as a dependence",
    ("known",),
    where=lambda tried, claim: claim.large,
)
# What is true of the runs and not said, and why.
COARSE = [
    # Limits that were chosen: at any operator.
    SWALLOWED,
    Coarse(
        "an extreme, an order, an any or an all is not told from what is known of some entries",
        ("known",),
        where=lambda tried, claim: packet(tried) in EXTREMES and (claim.result or not masks_alone(tried)),
    ),
    Coarse(
        "a normalisation, a convolution and a write take nothing from known values",
        ("known",),
        where=lambda tried, claim: decides_in_vain(tried),
    ),
    Coarse(
        "of elementwise operators only some let one known operand decide; no other is told to be flat at a value",
        ("whole", "known", "cut"),
        where=lambda tried, claim: (
            lemma(tried) == "pointwise_equivariant" and packet(tried) not in ABSORBING and known_there(tried, claim)
        ),
    ),
    Coarse(
        "an operand moves as it is said to move, also where its known values would let it be still",
        ("known",),
        where=known_and_moved,
    ),
    Coarse(
        "the zeros of a constant are used where it is a mask to multiply with, not where it is a table or a weight",
        ("known",),
        where=lambda tried, claim: constant_zeros(tried) and (packet(tried) in MULTIPLY or lemma(tried) == PRODUCT),
    ),
    Coarse(
        "a line that may hold infinity or no number keeps all its dependences, and so does a sum over one",
        ("known",),
        where=lambda tried, claim: lemma(tried) in {PRODUCT, SOFTMAX, ATTENTION} and may_be_no_number(tried),
    ),
    Coarse(
        "a softmax with one visible entry is 1 there, and with none it is 0 or no number: the line is as any other",
        ("known", "cut"),
        where=lambda tried, claim: lemma(tried) in {SOFTMAX, ATTENTION} and one_visible(tried, claim),
    ),
    Coarse(
        "a line that is the same throughout is a line like any other, though its softmax is 1/n and its deviation 0",
        KINDS,
        where=lambda tried, claim: lemma(tried) in LINES and level_line(tried),
    ),
    Coarse(
        "an operator without a lemma depends everywhere on all that it reads",
        ("known", "cut"),
        where=lambda tried, claim: lemma(tried) == "pure_function_of_unmoved",
    ),
    # Lemmas that could still be found: at some operators.
    Coarse("an ordinary number is finite", ("whole", "known", "cut"), ("isfinite", "isinf", "isnan", "isneginf")),
    Coarse(
        "alpha=0 makes the other operand irrelevant",
        ("ordinary", "known", "cut"),
        ("add.Tensor",),
        lambda tried, claim: tried.sample.kwargs.get("alpha") == 0,
    ),
    Coarse(
        "a literal zero makes a product zero",
        ("ordinary", "known", "cut"),
        ("mul.Tensor",),
        lambda tried, claim: 0.0 in tried.sample.args,
    ),
    Coarse(
        "the integers 0 and -1 decide as False and True do",
        ("whole", "known", "cut"),
        ("bitwise_and.Tensor", "bitwise_or.Tensor", "logical_and"),
        lambda tried, claim: tried.sample.operands()[0].kind == "int",
    ),
    Coarse(
        "two branches that are known to be equal need no condition",
        ("known", "cut"),
        ("where.ScalarOther", "masked_fill.Scalar"),
        lambda tried, claim: values_known(tried),
    ),
    Coarse(
        "an index repeated in one operand",
        ("ordinary",),
        ("einsum",),
        lambda tried, claim: "ii" in tried.sample.args[0],
    ),
    Coarse("a roll of the flattened tensor", ("ordinary",), ("roll",)),
    Coarse("bits regrouped into elements of another width", ("whole",), ("view.dtype",)),
    Coarse(
        "several results of an elementwise operator",
        ("ordinary", "whole", "known"),
        ("log_sigmoid_forward", "frexp.Tensor"),
    ),
    Coarse("the functional form, as group_norm", ("ordinary", "known"), ("native_group_norm",)),
    Coarse("each group by itself, and groups of one channel, which may move", ("ordinary", "cut"), ("group_norm",)),
    Coarse("in training mode, a reduction over the batch", ("ordinary", "known"), ("batch_norm",)),
    Coarse("the moments depend on no weight", ("ordinary", "cut"), ("native_layer_norm", "_fused_rms_norm")),
    Coarse(
        "the values, where only their places depend on the order",
        ("whole",),
        ("max.dim", "sort", "sort.stable", "topk"),
    ),
    Coarse("the first place of a running extreme is its own", ("whole", "cut"), ("cummin", "cummax")),
    Coarse("a write over everything leaves nothing of what was there", ("ordinary", "known"), ("slice_scatter",)),
    Coarse(
        "over the reals: what a clamp makes of every ordinary number depends on what is none",
        ("ordinary", "cut"),
        ("clamp", "clamp_max", "hardtanh"),
        lambda tried, claim: beyond_the_ordinary(tried),
    ),
    Coarse(
        "each channel of a transposed convolution by itself, and each group",
        ("cut",),
        ("conv1d", "convolution"),
        lambda tried, claim: channels_by_themselves(tried),
    ),
    Coarse(
        "a window at the border reads not all of the weights",
        ("ordinary", "cut"),
        ("conv1d", "conv1d.padding", "convolution"),
        at_the_border,
    ),
    Coarse(
        "the channels of a convolution are summed as those of a product, and may move",
        ("ordinary",),
        ("conv1d", "conv1d.padding", "conv2d", "convolution"),
        channels_move,
    ),
    Coarse(
        "a coefficient of a transform may be zero, and the transform of what is the same throughout mostly is",
        ("ordinary", "whole", "cut"),
        TRANSFORMS,
        frequencies_without_a_part,
    ),
    Coarse(
        "a place of a map that is read anew is made of those near it, and taken to be made of all",
        ("ordinary", "known", "cut"),
        ("upsample_bilinear2d", "upsample_bilinear2d.vec", "upsample_bicubic2d", "grid_sampler_2d"),
    ),
    Coarse(
        "a write at known places is as a write at any place",
        ("whole", "known", "cut"),
        SCATTERS,
        lambda tried, claim: places_known(tried),
    ),
    Coarse(
        "the same written at several places forgets their order",
        ("whole", "known"),
        ("scatter.value", "scatter.value_reduce", "scatter_add", "scatter_reduce.two", "index_add", "index_put"),
        places_reordered,
    ),
    Coarse(
        "what is written is read only as far as places are given for it",
        ("cut",),
        ("scatter.src",),
        lambda tried, claim: source_longer(tried),
    ),
    Coarse(
        "constant indices of several dimensions, place by place; an index that moves, into a table that is constant",
        ("whole", "known", "cut"),
        ("index.Tensor", "_unsafe_index.Tensor", "gather", "embedding"),
    ),
]


def excused(tried: Trial, claim: Claim, *but: Coarse) -> Array:
    """The elements of a claim that some reason covers (but these)."""
    found = np.zeros_like(claim.open)
    for reason in COARSE:
        if reason not in but:
            found = found | reason.covers(tried, claim)
    return found


def asserted(tried: Trial) -> list[Claim]:
    """The claims that were refused, and that runs must deny: no reason covers all of one whatever the runs are."""
    return [c for c in unsaid(tried) if (c.open & ~excused(tried, c, SWALLOWED)).any()]


def refused_without_need(sample: Sample, count: int, pairs: int) -> Iterator[str]:
    """What is refused and no run denies, for no reason on the list."""
    for tried, rng in trials(sample, count, SAMPLES.index(sample)):
        for claim in undenied(tried, asserted(tried), rng, pairs):
            rest = claim.open & ~excused(tried, claim)
            if rest.any():
                said = f"result {claim.result}, case {claim.case}: {np.argwhere(rest)[0].tolist()} changes in no run"
                yield f"{said}, {tried.kind()}, moved as {[m.kind for m in claim.moves]}\n{tried.describe()}"


def is_needed(reason: Coarse, kinds: Sequence[str], operators: Sequence[str]) -> bool:
    """Whether this reason alone excuses some refusal without need, of these kinds and operators."""
    for sample in SAMPLES:
        if operators and sample.operator not in operators:
            continue
        for tried, rng in trials(sample, TRIED_LONG, SAMPLES.index(sample)):
            if tried.kind() in kinds:
                claims = [
                    c
                    for c in unsaid(tried)
                    if (c.open & reason.covers(tried, c) & ~excused(tried, c, reason, SWALLOWED)).any()
                ]
                for claim in undenied(tried, claims, rng, PAIRS_LONG):
                    if (claim.open & reason.covers(tried, claim) & ~excused(tried, claim, reason)).any():
                        return True
    return False


@pytest.mark.parametrize(
    ("name", "count", "pairs"),
    [
        *(pytest.param(name, TRIED, PAIRS, id=f"{name}-few") for name in dict.fromkeys(NAMES)),
        *(pytest.param(name, TRIED_LONG, PAIRS_LONG, id=name, marks=pytest.mark.slow) for name in dict.fromkeys(NAMES)),
    ],
)
def test_what_a_rule_refuses_is_really_false(name: str, count: int, pairs: int) -> None:
    for sample in SAMPLES:
        if sample.operator == name:
            for text in refused_without_need(sample, count, pairs):
                raise AssertionError(text)


REASONS = [  # those that hold of any operator take longer to find
    *(
        pytest.param(c, (k,), c.operators, id=f"{k}: {c.reason}", marks=() if c.operators else pytest.mark.slow)
        for c in COARSE
        for k in c.kinds
    ),
    *(pytest.param(c, c.kinds, (name,), id=f"{name}: {c.reason}") for c in COARSE for name in c.operators[1:]),
]


@pytest.mark.parametrize(("reason", "kinds", "operators"), REASONS)
def test_reason_to_say_less_is_still_needed(reason: Coarse, kinds: tuple[str, ...], operators: tuple[str, ...]) -> None:
    assert is_needed(reason, kinds, operators), "take it off the list"


def test_refusals_of_every_kind_are_many_and_often_held_against_runs() -> None:
    refused, held, operators = Counter[str](), Counter[str](), Counter[str]()
    for sample in SAMPLES[::3]:
        kinds = set()
        for tried, _ in trials(sample, TRIED, SAMPLES.index(sample)):
            refused[tried.kind()] += any(True for _ in unsaid(tried))
            if asserted(tried):
                held[tried.kind()] += 1
                kinds.add(tried.kind())
        operators.update(kinds)
    for kind in KINDS:
        assert held[kind] > 50
        assert held[kind] > refused[kind] / 3
        assert operators[kind] > 20
