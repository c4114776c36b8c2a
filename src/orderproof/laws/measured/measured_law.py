"""The base class of measured laws: two ways to compute the same numbers, and a control that must change them.

A law yields comparisons. Each compares two calls, or series of calls, of the model that should give equal outputs.
Repeating a comparison in float64 separates rounding from a difference. Equal outputs are evidence only if a positive
control, a change that must matter, changes the output.

A comparison may also be of two calls that must differ. A difference then needs no control. Equal outputs refute the law
only if the control changes the output.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from torch import Tensor

from orderproof.adapter import ModelAdapter
from orderproof.laws.law import Law
from orderproof.laws.measured.cached_calls import CachedCalls
from orderproof.laws.mixing_kinds import ATTENTION, POSITIONS, RECURRENCE
from orderproof.records.audit import Expectation, Remedy

OutputPair = tuple[Tensor, Tensor]  # the expected output and the actual one, of one shape
INPUT_NAMES = {
    "cache": "a cache",
    "positions": "position ids",
    "mask": "an attention mask",
    "documents": "packed documents",
}


class NotedOutputs(NamedTuple):
    """The expected and the actual output, and an observation in words: which positions are equal."""

    expected: Tensor
    actual: Tensor
    note: str


@dataclass(frozen=True)
class Comparison:
    """One comparison, by name; it can be run on calls of either precision."""

    description: str
    run: Callable[[CachedCalls], OutputPair | NotedOutputs]
    remedy: str = ""  # if it fails; without one, the remedy of the law
    informational: bool = False  # a difference is reported and decides nothing
    counts_tokens: bool = False  # the line of a difference is that of the operator that cuts tokens off
    from_positions: bool = False  # the line of a difference is that of the numbers that are made of positions
    note: str = ""  # of the report, if an informational comparison finds a difference
    expects_difference: bool = False  # the two outputs must not be equal
    of_token_ids: bool = False  # of chosen tokens: how far ids differ says nothing, so it is the last to decide
    of_weights: bool = False  # of numbers that are weights, as a table of positions: only those of the model show it
    group: str = ""  # comparisons of one group at several lengths are one row; by default those of one description


@dataclass(frozen=True, kw_only=True)
class MeasuredLaw(Law):
    """A law that is decided by calling the model: comparisons of outputs, and a positive control."""

    remedy: str
    diff: str = ""  # the remedy as lines of code, - before and + after
    required_inputs: frozenset[str] = field(default=frozenset())  # of `ModelAdapter.supported_inputs`

    remedies: Mapping[str, Remedy] = field(default_factory=dict)  # by mechanism of the model, the more special first
    remedies_by_mixing: Mapping[str, Remedy] = field(default_factory=dict)  # by the kind of the operator that differs
    line_change: Callable[[str], str] | None = None  # a line of attention that differs -> its change as lines of code

    zero_tolerance = False  # the outputs must be equal up to the last bits: nothing that may matter was changed
    inapplicable_if_unsupported = False  # an adapter that supports no comparison makes it not applicable, not undecided
    confirm_in_float64 = True  # a difference is repeated in float64; not if both outputs have the same rounding errors
    refutation_changes_model = False  # a model that breaks the law is not the same afterwards
    ignores_length = ""  # why the law does not use the chosen length; empty if it does
    may_raise = False  # a call of a comparison may raise, as past the end of a table: that is no fault
    of_any_weights = False  # a program keeps or breaks it with any weights: a large model is compared with others too
    every_length = True  # measured around every threshold; False: the comparisons reach the thresholds by position ids

    def inapplicable_reason(self, adapter: ModelAdapter) -> str | None:
        """Why the law has no meaning for a model; None if it has one."""
        if "positions" in self.required_inputs and not adapter.has_positions:
            return "it has no encoding of positions"
        missing = sorted(self.required_inputs - set(adapter.supported_inputs))
        names = " and no ".join(INPUT_NAMES[m].removeprefix("a ").removeprefix("an ") for m in missing)
        return f"it takes no {names}" if missing else None

    def expected_of(self, adapter: ModelAdapter, model_kind: str) -> Expectation:
        """The result expected for this model of a kind; an adapter may state more than its kind."""
        del adapter
        return self.expected(model_kind)

    def probe_failure(self, adapter: ModelAdapter) -> str:
        """The error of a trial call with the cache that the law needs: it shows neither that there is one nor none."""
        return adapter.probe_failures.get("cache", "") if "cache" in self.required_inputs else ""

    def remedy_for(self, adapter: ModelAdapter, kind: str = "", line: str = "") -> Remedy:
        """The remedy for the operator that differs, else for a mechanism of the model, else the one for every model.

        ``kind`` is that of the operator, and ``line`` its line of code; both are empty if they are not known. Attention
        is no recurrence, nor are positions.
        """
        own_mask = kind == ATTENTION and "window" in adapter.mechanisms and "window" in self.remedies
        if kind in self.remedies_by_mixing and not own_mask:
            remedy = self.remedies_by_mixing[kind]
            change = self.line_change(line) if self.line_change is not None and kind == ATTENTION else ""
            return remedy.model_copy(update={"diff": change}) if change else remedy
        unlike = {RECURRENCE} if kind in (ATTENTION, POSITIONS) else set()
        special = (remedy for name, remedy in self.remedies.items() if name in adapter.mechanisms - unlike)
        return next(special, Remedy(text=self.remedy, diff=self.diff))

    @abstractmethod
    def comparisons(self, calls: CachedCalls) -> Iterator[Comparison]:
        """The comparisons, the cheapest first."""

    @abstractmethod
    def control(self, calls: CachedCalls) -> OutputPair:
        """Two outputs that must differ: a change was made that must matter to what the comparisons compare."""
