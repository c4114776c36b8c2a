"""The spectrum of a node's result: of which rows it is the Fourier transform.

A transform of rows makes a spectrum. A product of two spectra is the spectrum of the circular convolution of their
rows, a sum that of the sum; conjugation reverses real rows, and a real factor for each row scales it. Every other
operator loses the spectrum, and its result reads whole rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from torch import Tensor
from torch.fx import Node

from orderproof.diagnosis.domain.axis_labels import align_to_labels
from orderproof.diagnosis.domain.fact import ABSENT, NEVER, DependenceArray, Fact, Spectrum, compress
from orderproof.diagnosis.domain.spectrum import circle_of
from orderproof.diagnosis.rule import Facts, OperatorCall, RuleNotApplicable, dtype_of, shape_of
from orderproof.diagnosis.rules.contraction import parse_einsum

FORWARD = {"fft_rfft": True, "fft_fft": False}  # operator -> half


def with_spectrum(call: OperatorCall, facts: Facts) -> Facts:
    """The facts about a result, with its spectrum if it has one."""
    value = call.node.meta.get("val")
    if not isinstance(facts, Fact) or not isinstance(value, Tensor) or not value.is_complex() or not facts.has_no_moves:
        return facts
    operator = call.target.removeprefix("aten.").split(".")[0]
    derive = _DERIVATIONS.get(operator)
    operands = call.node.all_input_nodes
    if derive is None or 0 in facts.shape or any(n not in call.facts or call.may_mask(n) for n in operands):
        return facts
    known = [f for n in operands if isinstance(f := call.facts[n], Fact)]
    if len(known) < len(operands) or not (operator in FORWARD or any(f.spectrum is not None for f in known)):
        return facts
    spectrum = derive(call)
    return facts if spectrum is None else replace(facts, spectrum=spectrum)


def _transformed(call: OperatorCall) -> Spectrum | None:
    """F(x), of rows that are cut or padded with zeros to `n` places."""
    fact, node = call.fact(call.args[0]), call.args[0]
    half = FORWARD[call.target.removeprefix("aten.").split(".")[0]]
    rank = len(fact.shape)
    dim = int(call.argument(2, "dim", -1)) % rank
    size = int(call.argument(1, "n") or fact.shape[dim])
    if not fact.has_no_moves:
        return None
    rows = np.broadcast_to(
        fact.dependence, (*fact.dependence.shape[:dim], fact.shape[dim], *fact.dependence.shape[dim + 1 :])
    )
    zero = _zeros(call, node, fact)
    if zero is not None:
        rows = np.where(zero, ABSENT, rows)
    rows = rows.take(np.arange(min(size, fact.shape[dim])), axis=dim)
    widths = [(0, size - rows.shape[dim]) if d == dim else (0, 0) for d in range(rank)]
    return Spectrum(dim, size, half, compress(np.pad(rows, widths, constant_values=ABSENT)))


def _zeros(call: OperatorCall, node: Node, fact: Fact) -> Any:
    """The elements of a row that are zero in both runs; None if there are none."""
    if fact.ranges is not None:
        return fact.zeros(fact.moves)
    array = call.constants.array(node) if node in call.constants else None
    if array is None or not (array == 0).any():
        return None
    call.constants.mark_used(node)
    return array == 0


def _operands(call: OperatorCall) -> list[tuple[Node, Fact]]:
    return [(n, call.fact(n)) for n in call.args if isinstance(n, Node)]


def _factor(call: OperatorCall) -> Spectrum | None:
    """A product or a quotient: of two spectra, or of a spectrum and a factor of each row."""
    operands = _operands(call)
    if len(operands) == 2 and all(f.spectrum is not None for _, f in operands):
        if "div" in call.target:
            return None
        return _product([_labelled(f, call.shape) for _, f in operands])
    spectra = [f for _, f in operands if f.spectrum is not None]
    others = [(n, f) for n, f in operands if f.spectrum is None]
    if len(spectra) != 1 or len(others) > 1 or ("div" in call.target and operands[0][1].spectrum is None):
        return None
    if any(isinstance(x, complex) for x in call.args):
        return None
    spectrum = _labelled(spectra[0], call.shape)
    for node, other in others:
        distance = len(call.shape) - spectrum.dim
        per_row = len(other.shape) < distance or other.shape[-distance] == 1
        if dtype_of(node).is_complex or not per_row or not other.has_no_moves:
            return None
        factor = other.dependence.reshape((1,) * (len(call.shape) - other.dependence.ndim) + other.dependence.shape)
        rows = spectrum.dependence
        spectrum = replace(spectrum, dependence=np.where(rows == ABSENT, ABSENT, np.maximum(rows, factor)))
    return spectrum


def _sum(call: OperatorCall) -> Spectrum | None:
    """A sum or a difference of spectra."""
    operands = [f for _, f in _operands(call)]
    if len(operands) != 2 or any(f.spectrum is None for f in operands) or call.argument(2, "alpha", 1) != 1:
        return None
    a, b = (_labelled(f, call.shape) for f in operands)
    return replace(a, dependence=np.maximum(a.dependence, b.dependence)) if _same_circle(a, b) else None


def _same_circle(a: Spectrum, b: Spectrum) -> bool:
    return (a.dim, a.size, a.half) == (b.dim, b.size, b.half)


def _labelled(fact: Fact, shape: Sequence[int]) -> Spectrum:
    """The spectrum of an operand that is broadcast to a shape."""
    spectrum = fact.spectrum
    assert spectrum is not None
    added = len(shape) - len(fact.shape)
    rows = spectrum.dependence.reshape((1,) * added + spectrum.dependence.shape)
    return replace(spectrum, dim=spectrum.dim + added, dependence=rows)


def _product(factors: Sequence[Spectrum]) -> Spectrum | None:
    """The spectrum of a circular convolution."""
    first, *others = factors
    for other in others:
        if not _same_circle(first, other):
            return None
        rows = circle_of(first).convolved(first.dependence, other.dependence)
        if rows is None:
            return None
        first = replace(first, dependence=rows)
    return first


def _einsum(call: OperatorCall) -> Spectrum | None:
    """A sum of products in which the frequencies are one label of every operand and of the result."""
    nodes = call.args[1]
    facts = [call.fact(n) for n in nodes]
    if any(f.spectrum is None for f in facts):
        return None
    try:
        terms, output = parse_einsum(str(call.args[0]), [len(f.shape) for f in facts])
    except RuleNotApplicable:
        return None
    if any(len(set(t)) != len(t) for t in terms):
        return None
    frequencies = {term[f.spectrum.dim] for f, term in zip(facts, terms, strict=True) if f.spectrum is not None}
    if len(frequencies) != 1 or not frequencies <= set(output):
        return None
    labels = [*output, *dict.fromkeys(x for t in terms for x in t if x not in output)]
    dim = output.index(min(frequencies))
    placed = []
    for f, term in zip(facts, terms, strict=True):
        assert f.spectrum is not None
        rows: Any = align_to_labels(f.spectrum.dependence, tuple(term), labels)
        placed.append(replace(f.spectrum, dim=dim, dependence=rows))
    found = _product(placed)
    if found is None:
        return None
    summed = tuple(range(len(output), len(labels)))
    return replace(found, dependence=found.dependence.max(axis=summed) if summed else found.dependence)


def _conjugate(call: OperatorCall) -> Spectrum | None:
    """The spectrum of real rows in reverse."""
    spectrum = call.fact(call.args[0]).spectrum
    if spectrum is None or not spectrum.half:
        return None
    return replace(spectrum, dependence=circle_of(spectrum).reversed(spectrum.dependence))


def _copy(call: OperatorCall) -> Spectrum | None:
    same_shape = shape_of(call.args[0]) == call.shape and dtype_of(call.args[0]).is_complex
    return call.fact(call.args[0]).spectrum if same_shape else None


def _unsqueeze(call: OperatorCall) -> Spectrum | None:
    spectrum = call.fact(call.args[0]).spectrum
    if spectrum is None:
        return None
    place = int(call.args[1]) % len(call.shape)
    dim = spectrum.dim + (place <= spectrum.dim)
    return replace(spectrum, dim=dim, dependence=np.expand_dims(spectrum.dependence, place))


def _view(call: OperatorCall) -> Spectrum | None:
    """A view that adds or removes dimensions of size one only."""
    source, spectrum = call.fact(call.args[0]), call.fact(call.args[0]).spectrum
    if spectrum is None or source.shape[spectrum.dim] == 1:
        return None
    before, after = ([d for d, size in enumerate(shape) if size != 1] for shape in (source.shape, call.shape))
    if [source.shape[d] for d in before] != [call.shape[d] for d in after] or not dtype_of(call.args[0]).is_complex:
        return None
    sizes = dict(zip(after, (spectrum.dependence.shape[d] for d in before), strict=True))
    rows = spectrum.dependence.reshape([sizes.get(d, 1) for d in range(len(call.shape))])
    return replace(spectrum, dim=after[before.index(spectrum.dim)], dependence=rows)


_DERIVATIONS: dict[str, Callable[[OperatorCall], Spectrum | None]] = {
    **dict.fromkeys(FORWARD, _transformed),
    **dict.fromkeys(("mul", "multiply", "div", "true_divide"), _factor),
    **dict.fromkeys(("add", "sub"), _sum),
    **dict.fromkeys(("conj", "_conj", "conj_physical", "_conj_physical"), _conjugate),
    **dict.fromkeys(("clone", "contiguous", "alias", "detach", "_to_copy", "to", "neg", "resolve_conj"), _copy),
    "einsum": _einsum,
    "unsqueeze": _unsqueeze,
    **dict.fromkeys(("view", "reshape", "_unsafe_view"), _view),
}


def rows_of_inverse(call: OperatorCall, fact: Fact) -> DependenceArray | None:
    """The dependence of an inverse transform's result, place by place; None if it reads whole rows."""
    operand = call.fact(call.args[0])
    spectrum, half = operand.spectrum, "irfft" in call.target
    dim = int(call.argument(2, "dim", -1)) % len(operand.shape)
    if spectrum is None or spectrum.half != half or spectrum.dim != dim or spectrum.size != fact.shape[dim]:
        return None
    return np.maximum(spectrum.dependence, NEVER)
