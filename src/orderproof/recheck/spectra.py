"""Spectra: of which rows a tensor is the Fourier transform, and what an inverse transform makes of them.

The product of two transforms is the transform of a circular convolution, and a sum that of the sum of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from orderproof.recheck.algebra import FactAlgebra
from orderproof.recheck.binding import Argument, BoundCall, bind, facts_in
from orderproof.recheck.fact import ABSENT, INDEPENDENT, Array, Fact, Spectrum
from orderproof.recheck.forms.einsum import READ, WRITTEN, Einsum
from orderproof.recheck.reading import MAX_ARRAY_ELEMENTS

OF_WHOLE_ROWS = Einsum((READ,), WRITTEN, by_position=READ + WRITTEN)


def spectrum_of(operator: str, args: Sequence[Argument], kwargs: Mapping[str, Argument]) -> Spectrum | None:
    """The spectrum of an operator's result; None if it has none."""
    derive = _DERIVED.get(operator.removeprefix("aten.").split(".")[0].strip("_"))
    has_spectrum = any(f.spectrum is not None for f in facts_in([args, kwargs]))
    if derive is None or not (has_spectrum or derive is _forward):
        return None
    call = bind(operator, args, kwargs)
    usable = all(f.is_ordinary.all() and all(isinstance(m, str) for m in f.moves) for f in call.facts)
    usable = usable and all(abs(x) < 1e4 for x in call.numbers())
    return derive(call) if usable else None


def _forward(call: BoundCall) -> Spectrum | None:
    x = call.fact("self")
    dim = call.integer("dim") % len(x.shape)
    size = call.arguments["n"] or x.shape[dim]
    assert isinstance(size, int)
    rows = np.where((x.low == 0) & (x.high == 0), ABSENT, x.dependence)
    rows = _along(rows, dim, x.shape[dim])
    place = np.arange(size)
    inside = (place < x.shape[dim]).reshape([-1 if d == dim else 1 for d in range(len(x.shape))])
    rows = np.where(inside, rows.take(np.minimum(place, x.shape[dim] - 1), axis=dim), ABSENT)
    return Spectrum(dim, size, call.name == "fft_rfft", rows)


def _along(array: Array, dim: int, size: int) -> Array:
    """The array with its full size along one dimension."""
    return np.broadcast_to(array, [size if d == dim else n for d, n in enumerate(array.shape)])


def _broadcast(call: BoundCall, fact: Fact) -> Spectrum | None:
    """The spectrum of an operand that is aligned from the right with the result."""
    rank = max(len(f.shape) for f in call.facts)
    if fact.spectrum is None:
        return None
    added = rank - len(fact.shape)
    rows = fact.spectrum.dependence
    return fact.spectrum._replace(dim=fact.spectrum.dim + added, dependence=rows.reshape((1,) * added + rows.shape))


def _multiplied(call: BoundCall) -> Spectrum | None:
    spectra = [_broadcast(call, f) for f in call.facts]
    found = [s for s in spectra if s is not None]
    if len(found) == 2:
        return _convolved(*found) if call.name != "div" else None
    first_is_spectrum = bool(spectra) and spectra[0] is not None
    if len(found) != 1 or (call.name == "div" and not first_is_spectrum):
        return None
    (spectrum,) = found
    rows, place = spectrum.dependence, spectrum.dependence.ndim - spectrum.dim
    for f in call.facts:
        if f.spectrum is not None:
            continue
        if "complex" in f.dtype or (len(f.shape) >= place and f.shape[-place] != 1):
            return None
        rows = np.where(rows == ABSENT, ABSENT, np.maximum(rows, f.dependence))
    real = all(not isinstance(x, complex) for x in call.arguments.values())
    return spectrum._replace(dependence=rows) if real else None


def _convolved(a: Spectrum, b: Spectrum) -> Spectrum | None:
    """z[i] = sum over j of a[j] b[i - j], modulo the number of places."""
    if a[:3] != b[:3]:
        return None
    dim, size = a.dim, a.size
    left, right = (np.moveaxis(_along(s.dependence, dim, size), dim, -1) for s in (a, b))
    if np.prod(np.broadcast_shapes(left.shape, right.shape)) * size > 16 * MAX_ARRAY_ELEMENTS:
        return None
    place = np.arange(size)
    other = right[..., (place[:, None] - place[None, :]) % size]  # [.., i, j]
    one = left[..., None, :]
    product = np.where((one == ABSENT) | (other == ABSENT), ABSENT, np.maximum(one, other))
    return a._replace(dependence=np.moveaxis(product.max(axis=-1), -1, dim))


def _added(call: BoundCall) -> Spectrum | None:
    spectra = [_broadcast(call, f) for f in call.facts]
    if len(spectra) != 2 or call.arguments.get("alpha", 1) != 1:
        return None
    a, b = spectra
    if a is None or b is None or a[:3] != b[:3]:
        return None
    return a._replace(dependence=np.maximum(_along(a.dependence, a.dim, a.size), _along(b.dependence, b.dim, b.size)))


def _conjugated(call: BoundCall) -> Spectrum | None:
    spectrum = call.facts[0].spectrum
    if spectrum is None or not spectrum.half:
        return None
    rows = _along(spectrum.dependence, spectrum.dim, spectrum.size)
    return spectrum._replace(dependence=rows.take(-np.arange(spectrum.size) % spectrum.size, axis=spectrum.dim))


def _copied(call: BoundCall) -> Spectrum | None:
    (out,) = call.run_on_meta()
    x = call.facts[0]
    return x.spectrum if out.is_complex() and tuple(out.shape) == x.shape else None


def _unsqueezed(call: BoundCall) -> Spectrum | None:
    spectrum = call.facts[0].spectrum
    if spectrum is None:
        return None
    place = call.integer("dim") % (spectrum.dependence.ndim + 1)
    rows = np.expand_dims(spectrum.dependence, place)
    return spectrum._replace(dim=spectrum.dim + (place <= spectrum.dim), dependence=rows)


def _viewed(call: BoundCall) -> Spectrum | None:
    """A view in which only dimensions of size one are new, or missing."""
    (x,), (out,) = call.facts, call.run_on_meta()
    spectrum, shape = x.spectrum, tuple(out.shape)
    if spectrum is None or not out.is_complex() or x.shape[spectrum.dim] == 1:
        return None
    if [n for n in x.shape if n != 1] != [n for n in shape if n != 1]:
        return None
    kept = iter([n for size, n in zip(x.shape, spectrum.dependence.shape, strict=True) if size != 1])
    rows = spectrum.dependence.reshape([1 if size == 1 else next(kept) for size in shape])
    earlier = sum(size != 1 for size in x.shape[: spectrum.dim])
    places = [d for d, size in enumerate(shape) if size != 1]
    return spectrum._replace(dim=places[earlier], dependence=rows)


def _summed(call: BoundCall) -> Spectrum | None:
    """einsum, whose frequencies have one label in every operand and in the result."""
    equation = str(call.arguments["equation"]).replace(" ", "")
    left, arrow, result = equation.partition("->")
    terms = left.split(",")
    plain = bool(arrow) and "." not in equation and all(len(set(t)) == len(t) for t in terms)
    if not plain or any(f.spectrum is None for f in call.facts):
        return None
    pairs = [(f.spectrum, term) for f, term in zip(call.facts, terms, strict=True) if f.spectrum is not None]
    labels = {term[spectrum.dim] for spectrum, term in pairs}
    if len(labels) != 1 or not labels <= set(result):
        return None
    order = result + "".join(sorted(set("".join(terms)) - set(result)))
    found: Spectrum | None = None
    for spectrum, term in pairs:
        rows = spectrum.dependence.reshape(spectrum.dependence.shape + (1,) * (len(order) - len(term)))
        rows = np.moveaxis(rows, range(len(term)), [order.index(x) for x in term])
        placed = spectrum._replace(dim=order.index(min(labels)), dependence=rows)
        found = placed if found is None else _convolved(found, placed)
        if found is None:
            return None
    assert found is not None
    return found._replace(dependence=found.dependence.max(axis=tuple(range(len(result), len(order)))))


_DERIVED: dict[str, Callable[[BoundCall], Spectrum | None]] = {
    **dict.fromkeys(("fft_rfft", "fft_fft"), _forward),
    **dict.fromkeys(("mul", "multiply", "div", "true_divide"), _multiplied),
    **dict.fromkeys(("add", "sub"), _added),
    **dict.fromkeys(("conj", "conj_physical"), _conjugated),
    **dict.fromkeys(("clone", "contiguous", "alias", "detach", "to_copy", "to", "neg", "resolve_conj"), _copied),
    "einsum": _summed,
    "unsqueeze": _unsqueezed,
    **dict.fromkeys(("view", "reshape", "unsafe_view"), _viewed),
}


@dataclass(frozen=True)
class InverseTransform:
    """The rows of a spectrum; of a tensor without one, every place reads whole rows."""

    bounds_include_literals: bool = False

    def derive(self, algebra: FactAlgebra, call: BoundCall, outputs: Sequence[Fact]) -> list[Fact]:
        """See `Form`."""
        (whole,), x = OF_WHOLE_ROWS.derive(algebra, call, outputs), call.fact("self")
        spectrum, dim = x.spectrum, call.integer("dim") % len(x.shape)
        expected = (dim, whole.shape[dim], call.name == "fft_irfft")
        if spectrum is None or not algebra.exact_transforms_assumed or spectrum[:3] != expected:
            return [whole]
        rows = np.maximum(spectrum.dependence, INDEPENDENT)
        return [replace(whole, dependence=np.minimum(whole.dependence, rows))]
