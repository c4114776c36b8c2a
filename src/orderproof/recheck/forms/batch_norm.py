"""Batch normalization, with stored statistics or with those of the batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orderproof.recheck.algebra import FactAlgebra
from orderproof.recheck.binding import BoundCall
from orderproof.recheck.fact import DIMENSION_LABELS, Fact
from orderproof.recheck.forms.einsum import ALL, READ_LABELS, Einsum
from orderproof.recheck.labelled import labelled_fact
from orderproof.recheck.reading import require

CHANNEL = "1"


@dataclass(frozen=True)
class BatchNorm:
    """A scale and a shift of every channel; without stored statistics an element also reads its whole channel."""

    bounds_include_literals: bool = False

    def derive(self, algebra: FactAlgebra, call: BoundCall, outputs: Sequence[Fact]) -> list[Fact]:
        """See `Form`."""
        if not call.flag("training"):
            return Einsum((ALL, CHANNEL), ALL).derive(algebra, call, outputs)
        stored = [call.arguments.get(name) for name in ("running_mean", "running_var")]
        require(stored == [None, None], "it changes its stored statistics")
        x, *weights = call.facts
        own = DIMENSION_LABELS[: len(x.shape)]
        channel = READ_LABELS[0] + CHANNEL + READ_LABELS[2 : len(x.shape)]
        operands = [(x, own), (x, channel), *((weight, CHANNEL) for weight in weights)]
        return [labelled_fact(algebra, outputs[0], operands, own)]
