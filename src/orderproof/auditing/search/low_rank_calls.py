"""Comparisons of a large model with matrices of low rank in the place of its own.

Whether a program decodes with a cache as it prefills does not depend on its weights, and a call on matrices of low rank
takes a fraction of the time. The first comparison that a law makes is of the model itself; laws of caches share it, if
they need equal inputs. The others are of such a copy, and of the model itself where that copy does not show that they
hold. One that is for information only is of the copy alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from orderproof.auditing.search.comparison_runs import ComparisonResult, control_difference, run_comparison
from orderproof.laws.measured import CachedCalls, Comparison, MeasuredLaw
from orderproof.tolerances import CONTROL_FACTOR

LOW_RANK = (
    "in a large model: comparisons after the first one, which laws of caches share, are made with matrices of low "
    "rank in place of its own, and again with its own if they do not hold"
)


@dataclass
class LowRankCalls:
    """The comparisons of one law that are made with matrices of low rank."""

    law: MeasuredLaw
    calls: CachedCalls
    tolerance: float
    began: bool = False  # a comparison of the model itself was made
    _comparisons: dict[int, dict[str, Comparison]] = field(default_factory=dict)  # by length and description

    def held(self, comparison: Comparison, length: int) -> ComparisonResult | None:
        """The result of a comparison that holds, or decides nothing; None if the model itself has to be compared."""
        began = self.began or self.law.required_inputs in self.calls.agreed_with_caches
        may_replace = self.law.of_any_weights and began and not comparison.of_weights
        replaced = self.calls.with_low_rank_weights if may_replace else None
        if replaced is None or not self._has_control(replaced):
            return None
        same = self._comparisons_at(replaced, length).get(comparison.description)
        if same is None:
            return None
        result = run_comparison(same, replaced, length, self.tolerance, self.law)
        held = comparison.informational or (result.verdict == "held" and not result.record.reason)
        if held and result.record.float32 is not None:
            return replace(result, comparison=comparison, has_low_rank=True)
        self.calls.restore_shared_state()
        return None

    def note(self, result: ComparisonResult) -> None:
        """Note a comparison of the model itself."""
        self.began |= result.record.float32 is not None and not result.comparison.informational
        if self.began and result.verdict == "held" and "cache" in self.law.required_inputs:
            self.calls.agreed_with_caches.add(self.law.required_inputs)

    def _has_control(self, replaced: CachedCalls) -> bool:
        """True if the positive control of the law moves the output with these weights."""

        def moves() -> bool:
            moved, _ = control_difference(self.law, replaced)
            return moved is not None and moved >= CONTROL_FACTOR * self.tolerance

        return replaced.memoize(f"control of {self.law.name}", moves)

    def _comparisons_at(self, replaced: CachedCalls, length: int) -> dict[str, Comparison]:
        if length not in self._comparisons:
            try:
                found = list(self.law.comparisons(replaced.at_length(length)))
            except Exception:  # noqa: BLE001 - third-party code: a call may fail in any way
                found = []
            self._comparisons[length] = {each.description: each for each in found}
        return self._comparisons[length]
