"""The interface of a form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from orderproof.recheck.algebra import FactAlgebra
from orderproof.recheck.binding import BoundCall
from orderproof.recheck.fact import Fact


class Form(Protocol):
    """How the facts about the results of a call follow from the facts about its operands."""

    @property
    def bounds_include_literals(self) -> bool:
        """True if the derived bounds account for numbers among the arguments, however large."""

    def derive(self, algebra: FactAlgebra, call: BoundCall, outputs: Sequence[Fact]) -> list[Fact]:
        """The derived facts. `outputs` are the claimed ones: they give shapes and dtypes, and the moves to check.

        Raises `CertificateError` if nothing follows.
        """
