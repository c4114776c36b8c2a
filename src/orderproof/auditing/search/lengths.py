"""Comparisons of a measured law at several lengths: one row for each comparison, and from which length on it fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from orderproof.adapter import ModelAdapter, Threshold
from orderproof.auditing.search.comparison_runs import ComparisonResult, run_comparison
from orderproof.auditing.search.low_rank_calls import LowRankCalls
from orderproof.errors import is_internal
from orderproof.laws.law import Law
from orderproof.laws.measured import CachedCalls, MeasuredLaw
from orderproof.laws.measured.lengths import measured_lengths, thresholds_near
from orderproof.recording.execution import relative_difference
from orderproof.records.audit import Verdict
from orderproof.seeded_random import seeded_random
from orderproof.tolerances import MAX_NOISE

_ORDER: tuple[Verdict, ...] = ("refuted", "undecided", "held", "not_applicable")


class Watch:
    """The progress of measured laws, of which this one shows nothing."""

    def begin(self, law: Law) -> None:
        """A law that applies begins."""

    def compared(self, done: int, planned: int) -> None:
        """Comparisons of it are done, of those that are planned."""


UNSEEN = Watch()


def run_at_lengths(
    law: MeasuredLaw, calls: CachedCalls, tolerance: float, watch: Watch = UNSEEN
) -> Iterator[ComparisonResult]:
    """The results of all comparisons of a law, at the default length first."""
    default = calls.default_length
    others = [n for n in measured_lengths(calls.adapter) if n != default] if law.every_length else []
    refuted: set[str] = set()  # groups
    replaced = LowRankCalls(law, calls, tolerance)
    done = planned = 0
    for length in (default, *others):
        try:
            comparisons = list(law.comparisons(calls.at_length(length)))
            random = length != default and bool(comparisons) and _draws_random_numbers(calls.at_length(length))
        except Exception as error:
            if length == default or is_internal(error):
                raise
            continue  # the law has no comparison at this length
        planned = planned or len(comparisons) * (1 + len(others))
        for comparison in comparisons if not random else ():
            group = comparison.group or comparison.description
            result = replaced.held(comparison, length)
            if result is None:
                result = run_comparison(comparison, calls, length, tolerance, law, refuted_before=group in refuted)
                replaced.note(result)
            if result.verdict == "refuted":
                refuted.add(group)
            done += 1
            watch.compared(done, max(done, planned))
            yield result


def _draws_random_numbers(calls: CachedCalls) -> bool:
    """True if the model as it was before its first call gives another output from another state of the generator.

    Reformer hashes at random from some length on. At the default length this is part of the noise of the model. The
    laws share the answer, so that each length is tried once.
    """
    if calls.draws_random_numbers is None:
        calls.draws_random_numbers = _differs_by_random_state(calls)
    return calls.draws_random_numbers


def _differs_by_random_state(calls: CachedCalls) -> bool:
    again, more = (_default_output(calls) for _ in range(2))
    if relative_difference(again, more) <= MAX_NOISE or not calls.remembers_first_state:
        return False
    outputs = []
    for seed in range(2):
        fresh = calls.as_before_the_first_call()
        assert fresh is not None
        with seeded_random(seed):
            outputs.append(_default_output(fresh.at_length(calls.default_length)))
    return relative_difference(*outputs) > MAX_NOISE


def _default_output(calls: CachedCalls) -> Tensor:
    return calls.uncached_call(calls.default_tokens, keep=False).output


def merge_lengths(results: Sequence[ComparisonResult], default: int) -> list[ComparisonResult]:
    """One result for each comparison: the violation at the default or the shortest length, else the largest difference.

    Its record names the lengths at which the comparison was made, and those at which it is refuted.
    """
    groups: dict[str, list[ComparisonResult]] = {}
    for result in results:
        groups.setdefault(result.comparison.group or result.comparison.description, []).append(result)
    return [_merge(group, default) for group in groups.values()]


def _merge(group: Sequence[ComparisonResult], default: int) -> ComparisonResult:
    made = [r for r in group if r.record.float32 is not None]
    default_first = [r for r in group if r.length == default] or list(group)
    chosen = min(made or default_first, key=lambda r: _rank(r, default))
    refuted = {r.length for r in made if r.verdict == "refuted"}
    lengths = tuple(sorted({r.length for r in made}))
    update: dict[str, Any] = {"lengths": lengths, "refuted_lengths": tuple(sorted(refuted))}
    if chosen.length != default and chosen.verdict != "held":
        update["description"] = f"{chosen.record.description}, at {chosen.length} tokens"
        update["reason"] = f"at {chosen.length} tokens: {chosen.record.reason}"
    elif chosen.length != default:
        first = next((r for r in group if r.length == default), chosen)
        update["description"] = first.record.description
    left_out = [r for r in group if r.record.float32 is None]
    if made and left_out and not chosen.record.reason:
        places = ", ".join(str(r.length) for r in left_out)
        update["reason"] = f"not made at {places} tokens: {left_out[0].record.reason}"
    return replace(chosen, record=chosen.record.model_copy(update=update))


def _rank(result: ComparisonResult, default: int) -> tuple[int, int, float]:
    size = result.record.float32 or 0.0
    place = (0 if result.length == default else result.length) if result.verdict != "held" else 0
    return _ORDER.index(result.verdict), place, size if result.comparison.expects_difference else -size


def onset(adapter: ModelAdapter, result: ComparisonResult) -> str:
    """From which length on a violation shows, and from which on with the default configuration; or an empty text."""
    refuted, made = result.record.refuted_lengths, result.record.lengths
    if not refuted or min(refuted) == min(made):
        return ""
    first = min(refuted)
    last = max(n for n in made if n < first)
    text = f"it holds at {last} tokens and fails from {first} tokens on"
    near = thresholds_near(adapter.thresholds, first)
    near = tuple(t for t in near if t.default is not None) or near[:1]
    return "; ".join([text, *(_default_onset(each, last, first) for each in near)])


def _default_onset(threshold: Threshold, last: int, first: int) -> str:
    """The threshold, and if the result changes just there: from which length on to expect the violation by default."""
    stated = f"{threshold.name} is {threshold.tokens}"
    if threshold.default is None or threshold.default == threshold.tokens:
        return stated
    stated += f" here and {threshold.default} by default"
    if last < threshold.tokens - 1:
        return stated
    return f"{stated}, so by default it fails from {threshold.default + first - threshold.tokens} tokens on"
