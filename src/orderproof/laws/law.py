"""A law: a statement about a model, and the kinds of model for which it should hold.

Some laws are proved on a graph (`laws/proved`), others are measured by calling the model (`laws/measured`). The engine
reads the attributes of a law and never compares its name.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from orderproof.records.audit import Expectation, Kind


@dataclass(frozen=True, kw_only=True)
class Law(ABC):
    """Code, name, statement, and the kinds of model for which it should hold or fail."""

    code: str
    name: str
    statement: str
    trait: str  # a property of a model as a verb phrase: "sees token order"
    trait_if: Literal["holds", "fails"] = "holds"  # the result for a model that has the trait
    kind: Kind = "check"  # a check passes or fails; a property describes a model
    sequence_part: Literal["", "pads", "tokens"] = ""  # of a further sequence, for which it is decided too
    expectation: Mapping[str, Expectation]  # by kind of model; a missing kind expects nothing
    expected_of_documents: bool = False  # it should hold for encoders and decoders that take packed documents

    def call_mode_of_sequence(self, name: str, call_mode: str = "") -> str:
        """The call mode of a finding about a further sequence: `pads of memory`, or `tokens of tgt, padded`."""
        own = call_mode if self.sequence_part == "tokens" else ""
        return f"{self.sequence_part} of {name}{own and f', {own}'}"

    def expected(self, model_kind: str, *, named: bool = False) -> Expectation:
        """The result expected for this kind of model.

        A law that the user asks for by name (`named`) should hold where the kind of model expects nothing of it.
        """
        default = self.expectation.get(model_kind, "any")
        return "holds" if named and default == "any" else default
