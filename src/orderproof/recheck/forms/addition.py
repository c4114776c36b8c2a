"""A matrix product that is added to a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from orderproof.recheck.algebra import FactAlgebra
from orderproof.recheck.binding import BoundCall
from orderproof.recheck.fact import Fact
from orderproof.recheck.forms.einsum import ALL, Einsum
from orderproof.recheck.labelled import Combination, elementwise_fact

SCALED = Einsum((ALL + "xz", ALL + "xy", ALL + "yz"), ALL + "xz")
PRODUCT = Einsum((ALL + "xy", ALL + "yz"), ALL + "xz", factors=2)


@dataclass(frozen=True)
class AddedProduct:
    """C + A B, where C may mask; with factors beta and alpha nothing is known of masked entries."""

    bounds_include_literals: bool = False

    def derive(self, algebra: FactAlgebra, call: BoundCall, outputs: Sequence[Fact]) -> list[Fact]:
        """See `Form`."""
        if {call.arguments["beta"], call.arguments["alpha"]} != {1} or 0 in outputs[0].shape:
            return SCALED.derive(algebra, call, outputs)
        (product,) = PRODUCT.of_facts(algebra, call, outputs, call.facts[1:])
        added = Combination(torch.add, "monotone")
        return [elementwise_fact(algebra, outputs[0], added, product, call.fact("self"))]
