"""Conditions on a trial under which a rule makes no statement although one is true."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from orderproof.diagnosis.domain.fact import compress
from orderproof.diagnosis.domain.move import FREE, is_permuted
from orderproof.diagnosis.domain.values import ValueRanges
from orderproof.number_limits import MASKING_THRESHOLD
from tests.diagnosis.sampling.claims import Claim
from tests.diagnosis.sampling.operands import ORDINARY, Array, Given, filled
from tests.diagnosis.sampling.trials import Trial, apply


def lemma(tried: Trial) -> str:
    return tried.walk.lemmas[tried.node]


def packet(tried: Trial) -> str:
    return tried.sample.operator.split(".")[0]


def contents(given: Given) -> ValueRanges | None:
    """The known values of an operand; all values of a buffer."""
    if given.buffer is not None:
        return ValueRanges(given.buffer, given.buffer)
    return given.fact.ranges if given.fact is not None else None


def ordinary(known: ValueRanges) -> Array:
    """The elements with the interval of ordinary numbers."""
    found: Array = (known.low == -1) & (known.high == 1)
    return found


def values_known(tried: Trial) -> bool:
    return any(contents(g) is not None for g in tried.roles)


def known_there(tried: Trial, claim: Claim) -> Array:
    """The elements of an elementwise result at which something is known of an operand."""
    found = np.zeros_like(claim.open)
    for given in tried.roles[: 1 if packet(tried) == "type_as" else None]:  # the other lends its type alone
        known = contents(given)
        if known is not None:
            found = found | np.broadcast_to(~ordinary(known), given.operand.shape)
    return found


def known_and_moved(tried: Trial, claim: Claim) -> bool:
    """True if an operand that moves is known: all of it, or some of it for the claim that nothing moves."""
    still = not any(is_permuted(m) for m in claim.moves)
    operand_ranges = [g.fact.ranges for g in tried.roles if g.fact is not None and not g.fact.has_no_moves]
    exact = [known.exact for known in operand_ranges if known is not None]
    return claim.together and any(x.any() if still else x.all() for x in exact)


def level_line(tried: Trial) -> bool:
    """True if an operand is constant along some dimension."""
    free = any(g.fact is not None and any(m is FREE for m in g.fact.moves) for g in tried.roles)
    return free or any(g.buffer is not None and compress(g.buffer).size < g.buffer.size for g in tried.roles)


def masks_alone(tried: Trial) -> bool:
    """True if the only known entries of an extreme's operand are masks, which its lemma drops."""
    known = contents(tried.roles[0])
    dropped = lemma(tried) == "extreme_of_visible" and known is not None
    return dropped and bool((~known.exact & (ordinary(known) | (known.high <= -MASKING_THRESHOLD))).all())


def constant_zeros(tried: Trial) -> bool:
    return any(g.buffer is not None and (g.buffer == 0).any() for g in tried.roles)


def may_be_no_number(tried: Trial) -> bool:
    """True if a softmax may read +inf or NaN, or a sum of products a number as large as a mask."""
    if lemma(tried) != "softmax_equivariant":
        return any(g.wild for g in tried.roles[:3])
    known = contents(tried.roles[0])
    ill = known is not None and ~(known.high < np.inf)
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
    hidden = known.exact & ~known.low.astype(bool) if boolean else known.high <= -MASKING_THRESHOLD
    axis = -1 if attention else int(tried.sample.args[1])
    full = np.broadcast_to(~hidden, roles[0].operand.shape)
    return np.broadcast_to(full.sum(axis=axis, keepdims=True) <= 1, shape)


def zero_times_masked(tried: Trial, claim: Claim) -> Array:
    """The elements of a product of which one factor is zero, and the other a finite number that is masked."""
    found = np.zeros_like(claim.open)
    for one, other in itertools.permutations([contents(given) for given in tried.roles], 2):
        if one is not None and other is not None:
            found = found | (one.exactly(0) & np.isfinite(other.low) & (other.high <= -MASKING_THRESHOLD))
    return found


def given_as(tried: Trial, *names: str) -> Any:
    """The value of one argument, under the first of these names that the operator has, or its default."""
    schema = tried.sample.target._schema.arguments
    supply = iter(tried.roles)
    given = filled((tried.sample.args, tried.sample.kwargs), supply)
    bound = {x.name: x.default_value for x in schema} | {x.name: v for x, v in zip(schema, given[0], strict=False)}
    return next((v for k, v in (bound | given[1]).items() if k in names), None)


def decides_in_vain(tried: Trial) -> bool:
    """True if a real operand has known values that the rule does not use."""
    named = packet(tried) in CONVOLUTIONS or lemma(tried) in {"normalisation_equivariant", "dense_dependence"}
    return named and any(g.operand.kind == "real" and contents(g) is not None for g in tried.roles)


def beyond_the_ordinary(tried: Trial) -> bool:
    """True if every ordinary number is beyond one of the bounds of a clamp."""
    low, high = given_as(tried, "min", "min_val"), given_as(tried, "max", "max_val")
    return bool((low is not None and low >= ORDINARY) or (high is not None and high <= -ORDINARY))


def frequencies_without_a_part(tried: Trial, claim: Claim) -> Array | bool:
    """The elements of a transform in whose line something changes, all of it with coefficient zero."""
    (given,) = tried.roles
    assert given.fact is not None
    shape, free = given.operand.shape, [m is FREE for m in given.fact.moves]
    changed = np.broadcast_to(given.fact.dependence, shape) >= claim.case
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
    return given.fact is not None and any(given.fact.dependence.shape[d] > 1 for d in dims)


def channels_by_themselves(tried: Trial) -> bool:
    """True if a convolution is transposed or grouped and its channels depend on different tokens."""
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
    """True if channels of a convolution's operands are exchanged."""
    x, weight, *bias = tried.roles
    first = len(x.operand.shape) + 1 - len(weight.operand.shape)
    channels = [(x, first), (weight, 0), (weight, 1), *((b, 0) for b in bias)]
    return claim.together and any(g.fact is not None and is_permuted(g.fact.moves[d]) for g, d in channels)


def places(tried: Trial) -> list[Given]:
    """The indices of a write."""
    found = given_as(tried, "index", "indices")
    return [g for g in (found if isinstance(found, list) else [found]) if g is not None]


def places_known(tried: Trial) -> bool:
    """True if some of the indices of a write are known."""
    return any(known is not None and known.exact.any() for known in map(contents, places(tried)))


def places_reordered(tried: Trial, claim: Claim) -> bool:
    """True if indices are exchanged at which the same value is written."""
    if not claim.together or all(g.fact is None or g.fact.has_no_moves for g in places(tried)):
        return False
    source, dim = given_as(tried, "value", "values", "src", "source"), given_as(tried, "dim")
    if not isinstance(source, Given):
        return True
    shape = source.operand.shape
    dims = [d for d, s in enumerate(shape) if s == tried.relation.size] if dim is None else [dim % len(shape)]
    known = contents(source)
    level = (
        set()
        if known is None or ordinary(known).any()
        else {d for d in dims if compress(known.low).shape[d] == compress(known.high).shape[d] == 1}
    )
    free = source.fact.moves if source.fact is not None else ()
    return all(d in level or (free and free[d] is FREE) for d in dims)


def source_longer(tried: Trial) -> bool:
    """True if the source of a write is longer than its index."""
    (index,), source, dim = places(tried), given_as(tried, "src"), given_as(tried, "dim")
    return bool(source.operand.shape[dim] > index.operand.shape[dim])


PRODUCT, SOFTMAX, ATTENTION = "contraction_equivariant", "softmax_equivariant", "attention_equivariant"

EXTREMES = {
    "all", "any", "amax", "amin", "max", "min", "argmax", "argmin", "median", "mode", "kthvalue", "logsumexp",
    "logcumsumexp", "cummax", "cummin", "sort", "argsort", "topk", "msort", "max_pool2d_with_indices",
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


def equal_coefficients(tried: Trial) -> bool:
    """True if the rows or columns of a system are uniform."""
    system = tried.roles[0]
    if system.buffer is not None:
        return any(1 < n != size for n, size in zip(system.buffer.shape, compress(system.buffer).shape, strict=True))
    return system.fact is not None and FREE in system.fact.moves
