"""Reading and writing at positions that a tensor gives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from orderproof.recheck.algebra import FactAlgebra
from orderproof.recheck.binding import BoundCall, facts_in
from orderproof.recheck.fact import DIMENSION_LABELS, INDEPENDENT, UNIFORM, Fact
from orderproof.recheck.forms.einsum import ALL, ALONG, READ, WRITTEN, Einsum
from orderproof.recheck.forms.movement import Movement, movement_facts
from orderproof.recheck.labelled import labelled_fact
from orderproof.recheck.reading import require


@dataclass(frozen=True)
class Index:
    """x[indices], or x[indices] = values. Along an indexed dimension, and along written values, nothing may move."""

    bounds_include_literals: bool = False

    def derive(self, algebra: FactAlgebra, call: BoundCall, outputs: Sequence[Fact]) -> list[Fact]:
        """See `Form`."""
        x = call.fact("self")
        values = [call.fact("values")] if "values" in call.arguments else []
        if not values and all(f.constant_value is not None for f in call.facts if f is not x):
            return Movement().derive(algebra, call, outputs)
        if values and _writes_once(call, facts_in(call.arguments["indices"])):
            return movement_facts(algebra, [x, *values], outputs, call.run)
        indices = _indices(call, x)
        labels = DIMENSION_LABELS[: len(x.shape)]
        if any(f.dtype in ("bool", "uint8") for f in indices.values()):
            return [_masked_write(algebra, outputs[0], x, indices, values)]

        read = sorted(indices)
        index_labels = "stuvwxyz"[: max(len(f.shape) for f in indices.values())]
        kept = "".join(labels[d] for d in range(len(labels)) if d not in indices)
        adjacent = read[-1] - read[0] < len(read)  # otherwise the indexed dimensions come first
        first = read[0] if adjacent else 0
        indexed = kept[:first] + index_labels + kept[first:]
        by_position = "".join(labels[d] for d in read) + (index_labels if values else "")
        operands = [(x, labels), *((indices[d], index_labels) for d in read), *((f, indexed) for f in values)]
        if not values:
            operands[0] = (replace(x, dependence=np.full((1,) * len(labels), INDEPENDENT)), labels)
            operands.append((_entries_read(x, indices, outputs[0]), indexed))
        operands = [(f, own[len(own) - len(f.shape) :]) for f, own in operands]
        return [labelled_fact(algebra, outputs[0], operands, labels if values else indexed, by_position)]


def _writes_once(call: BoundCall, indices: Sequence[Fact]) -> bool:
    """True if elements are replaced at constant positions, none of them twice."""
    adds = call.flag("accumulate") or any(f.constant_value is None or f.dtype in ("bool", "uint8") for f in indices)
    if adds:
        return False
    x = torch.zeros(call.fact("self").shape)
    given = call.arguments["indices"]
    assert isinstance(given, list | tuple)
    known = [f.constant_value if isinstance(f, Fact) else None for f in given]
    places = [None if value is None else value.long() for value in known]
    return bool(torch.ops.aten.index_put(x, places, torch.ones(()), True).max() <= 1)


@dataclass(frozen=True)
class IndexCopy:
    """One dimension written at positions that a tensor gives."""

    bounds_include_literals: bool = False

    def derive(self, algebra: FactAlgebra, call: BoundCall, outputs: Sequence[Fact]) -> list[Fact]:
        """See `Form`."""
        index, x = call.fact("index").constant_value, call.fact("self")
        if index is not None and x.shape and len(set((index % x.shape[call.integer("dim")]).tolist())) == index.numel():
            return movement_facts(algebra, [x, call.fact("source")], outputs, call.run)
        return INDEX_COPY.derive(algebra, call, outputs)


def _entries_read(x: Fact, indices: dict[int, Fact], out: Fact) -> Fact:
    """The fact about the entries that are read: a constant index reads one of them, another index any."""
    unknown = tuple(d for d, f in indices.items() if f.constant_value is None)
    dependence = torch.from_numpy(x.dependence.max(axis=unknown, keepdims=True).copy())
    read: list[slice | Tensor] = [slice(None)] * len(x.shape)
    for d, index in indices.items():
        read[d] = torch.zeros((1,) * len(index.shape), dtype=torch.int64)
        if index.constant_value is not None and dependence.shape[d] > 1:
            read[d] = index.constant_value.long()
    rank = (1,) * len(out.shape)
    moves = (UNIFORM,) * len(out.shape)  # the operands themselves say how it moves
    return replace(out, moves=moves, dependence=dependence[tuple(read)].numpy(), low=-np.ones(rank), high=np.ones(rank))


def _indices(call: BoundCall, x: Fact) -> dict[int, Fact]:
    """The index tensor of each indexed dimension."""
    if "index" in call.arguments:  # index_select
        index = call.fact("index")
        require(len(x.shape) > 0 and len(index.shape) == 1, "it selects from a scalar, or by one")
        return {call.integer("dim") % len(x.shape): index}
    indices = call.arguments["indices"]
    require(isinstance(indices, list | tuple), "expected a list of indices")
    assert isinstance(indices, list | tuple)
    return {d: f for d, f in enumerate(indices) if isinstance(f, Fact)}


def _masked_write(algebra: FactAlgebra, out: Fact, x: Fact, indices: dict[int, Fact], values: Sequence[Fact]) -> Fact:
    """x[mask] = number."""
    one_number = len(values) == len(indices) == 1 and math.prod(values[0].shape) == 1
    require(one_number, "it has a boolean index, and does not write a single number")
    ((d, mask),), (number,) = indices.items(), values
    labels = DIMENSION_LABELS[: len(x.shape)]
    mask_labels, number_labels = labels[d:][: len(mask.shape)], "qrstuvwxyz"[: len(number.shape)]
    return labelled_fact(algebra, out, [(x, labels), (mask, mask_labels), (number, number_labels)], labels)


INDEX_COPY = Einsum((ALL, "y", WRITTEN), ALL, by_position=ALONG + "y" + WRITTEN)
SCATTER = Einsum((ALL, READ, WRITTEN), ALL, by_position=ALONG + READ + WRITTEN, equal_lines=True)


@dataclass(frozen=True)
class ScatterWrite:
    """A scatter that replaces elements: each is the old one or a written one."""

    bounds_include_literals: bool = True

    def derive(self, algebra: FactAlgebra, call: BoundCall, outputs: Sequence[Fact]) -> list[Fact]:
        """See `Form`."""
        (fact,), x, index = SCATTER.derive(algebra, call, outputs), call.fact("self"), call.fact("index")
        written = call.arguments["src"] if "src" in call.arguments else call.arguments["value"]
        if isinstance(written, Fact):
            written_low, written_high = written.low.min(), written.high.max()
        else:
            require(isinstance(written, int | float), "expected a tensor or a number to write")
            written_low = written_high = np.asarray(written)
        shape = fact.dependence.shape
        low = np.full(shape, np.minimum(x.low.min(), written_low))  # NaN stays NaN
        high = np.full(shape, np.maximum(x.high.max(), written_high))
        if index.index_coverage is not None and not isinstance(written, Fact):
            dim, covered = index.index_coverage
            same_dim = len(x.shape) > 0 and dim == call.integer("dim") % len(x.shape)
            if same_dim and covered.shape[dim] == x.shape[dim]:  # the index was computed from lines of this length
                low, high = (np.where(covered, written_low, bound) for bound in (low, high))
        return [algebra.derived(fact, fact.dependence, low, high)]
