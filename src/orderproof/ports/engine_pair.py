"""Two engines, or two versions of one, compared with each other on the calls of the laws of ports.

    difference_t = max |B(x)_t - A(x)_t| / max |A(x)|

Each may differ from the reference f by its own rounding, so that two that equal f may differ by twice the tolerance of
one. Where A and B differ, each is compared with f, and the settings are named that explain the difference of each: a
setting of B alone is what changed from A to B.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from orderproof.laws.ports import PortCall, PortLaw
from orderproof.ports import phrases
from orderproof.ports.comparison import (
    NotFiniteError,
    Profile,
    check_scores,
    log_softmax,
    profile,
    resolution,
    tolerance,
)
from orderproof.ports.engine_process import EngineLimits
from orderproof.ports.engine_side.serving import Output
from orderproof.ports.engines.engine import EngineError, InferenceEngine, Scores
from orderproof.ports.explanation import Explanation, FoundCause
from orderproof.ports.port_run import PortResult, PortRun
from orderproof.ports.reference import Reference
from orderproof.records.audit import Verdict

NOT_DONE = "was not done"  # the failure of a call with a limit of time


@dataclass(frozen=True)
class EnginePair:
    """Two engines, in the order in which they were named."""

    first: InferenceEngine
    second: InferenceEngine

    @property
    def name(self) -> str:
        """Both names: "vllm@0.31.0, vllm@0.32.0"."""
        return f"{self.first.name}, {self.second.name}"

    @property
    def engines(self) -> tuple[InferenceEngine, InferenceEngine]:
        """Both."""
        return self.first, self.second


@dataclass(frozen=True)
class PairResult:
    """The result of one law: its verdict is that on the two engines, whatever the reference computes."""

    verdict: Verdict
    reason: str
    call: PortCall | None = None
    profile: Profile | None = None  # of the second against the first
    results: tuple[PortResult, ...] = ()  # of each against the reference, if they differ
    with_older_keys: bool = False  # they differ on a checkpoint with the keys of older versions

    @property
    def explanations(self) -> tuple[Explanation, ...]:
        """The explanation of the difference of each engine from the reference."""
        reads = [self.with_older_keys and each.with_older_keys is not None for each in self.results]
        pairs = zip(self.results, reads, strict=True)
        return tuple(each.older_explanation if older else each.explanation for each, older in pairs)

    @property
    def differing(self) -> tuple[int, ...]:
        """The indices of the engines that differ from the reference."""
        left = [(self.with_older_keys and each.with_older_keys) or each.profile for each in self.results]
        refuted = [each.verdict == "refuted" for each in self.results]
        return tuple(i for i, each in enumerate(left) if refuted[i] and (each is None or each.first is not None))

    @property
    def changed(self) -> tuple[tuple[int, FoundCause], ...]:
        """The settings that explain the difference of one engine alone, with its index."""
        found = self.explanations
        settings = [{_setting(each) for each in explanation.causes} for explanation in found]
        return tuple(
            (index, each)
            for index, explanation in enumerate(found)
            for each in explanation.causes
            if _setting(each) not in settings[1 - index]
        )


def _setting(cause: FoundCause) -> tuple[str, str]:
    return cause.candidate.setting, cause.candidate.assumed


@dataclass
class PairRun:
    """A pair and a reference."""

    reference: Reference
    pair: EnginePair
    laws: Sequence[PortLaw]
    limits: EngineLimits = field(default_factory=EngineLimits)

    @cached_property
    def runs(self) -> tuple[PortRun, PortRun]:
        """The comparison of each engine with the reference, which is made only where the two differ."""
        first, second = (PortRun(self.reference, each, self.laws, self.limits) for each in self.pair.engines)
        return first, second

    def result(self, law: PortLaw) -> PairResult:
        """The result of one law. Never raises for what the engines do."""
        missing = [each.missing for each in self.pair.engines if not each.is_installed]
        if missing:
            return PairResult("undecided", "; ".join(missing))
        unknown = [run.engine.name for run in self.runs if not run.first_run.knows]
        if unknown:
            kind = self.reference.config.model_type
            return PairResult("not_applicable", f"no implementation of {kind} in {' and '.join(unknown)}")
        if law.ability is None:
            return self._loading(law)
        for run in self.runs:
            if law.name not in run.calls:
                return PairResult("not_applicable", run.result(law).reason)
        if any(_is_refused(run) for run in self.runs):
            names = " and ".join(run.engine.name for run in self.runs if _is_refused(run))
            return PairResult("undecided", f"the checkpoint is not loaded by {names}")
        return self._call_result(law, self.runs[0].calls[law.name])

    def _loading(self, law: PortLaw) -> PairResult:
        """Both load a checkpoint, or neither does."""
        texts = [_load_text(run) for run in self.runs]
        said = "; ".join(f"{run.engine.name} {text}" for run, text in zip(self.runs, texts, strict=True))
        if all(_is_refused(run) for run in self.runs):
            return PairResult("undecided", f"nothing is compared: {said}")
        if any(run.first_run.load_failure and not run.first_run.refused for run in self.runs):
            return PairResult("undecided", said)  # an engine died, hung or is not there
        same = [(_is_refused(run), run.needs_older_keys) for run in self.runs]
        if same[0] == same[1]:
            return PairResult("held", said)
        return PairResult("refuted", said, results=tuple(run.result(law) for run in self.runs))

    def _call_result(self, law: PortLaw, call: PortCall) -> PairResult:
        """The result on the checkpoint as it is saved, or with the keys of older versions, which an engine may read."""
        result = self._compared(law, call, [run.output(law) for run in self.runs])
        runs = [None if run.needs_older_keys else run.older_run for run in self.runs]
        older = [run.outputs[call] for run in runs if run is not None and call in run.outputs]
        if result.verdict != "held" or len(older) < 2:
            return result
        again = self._compared(law, call, older)
        if again.verdict != "refuted":
            return result
        keys = ", ".join(self.runs[0].older_keys)
        return replace(again, with_older_keys=True, reason=f"with {keys} added to config.json, {again.reason}")

    def _compared(self, law: PortLaw, call: PortCall, outputs: Sequence[Output | str]) -> PairResult:
        failed = [output for output in outputs if isinstance(output, str)]
        if failed:
            said = [
                f"{run.engine.name} {output if isinstance(output, str) else 'answers'}"
                for run, output in zip(self.runs, outputs, strict=True)
            ]
            alone = [run.result(law) for run in self.runs] if len(failed) == 2 else []
            if alone and all(each.verdict == "not_applicable" for each in alone):  # beyond the context of both
                return PairResult("not_applicable", alone[0].reason, call)
            is_open = bool(alone) or failed[0].startswith(NOT_DONE)
            reason = f"{phrases.call_text(call)}: {'; '.join(said)}"
            return PairResult("undecided" if is_open else "refuted", reason, call)
        if call.kind == "greedy":
            first, second = ([int(each) for each in output if not isinstance(each, Scores)] for output in outputs)
            return self._tokens_result(law, call, first, second)
        scores = [[each for each in output if isinstance(each, Scores)] for output in outputs]
        try:
            found = self._profile(law, call, *scores)
        except NotFiniteError:  # of one, or of both
            results = tuple(run.result(law) for run in self.runs)
            same = results[0].reason.partition(":")[2] == results[1].reason.partition(":")[2]
            return PairResult(
                "held" if same else "refuted",
                self._both(call, "values that are not finite", results),
                call,
                None,
                results,
            )
        except EngineError as error:
            return PairResult("undecided", str(error), call)
        return self._profiled(law, call, found)

    def _profile(self, law: PortLaw, call: PortCall, first: Sequence[Scores], second: Sequence[Scores]) -> Profile:
        single, double = self.reference.outputs(call), self.reference.outputs(call, double=True)
        for each in (first, second):
            check_scores(each, double)
        scale = max(float(abs(each).max()) for each in double)
        vocabulary = self.reference.port_model.vocabulary
        step = max(resolution(each, vocabulary).step for each in (first, second))
        limit = 2 * max(tolerance(single, double), step / scale)
        if any(each.candidates is not None for each in first):
            first, second = second, first
        if any(each.candidates is not None for each in first):
            raise EngineError("both return some log-probabilities only: compare each with the reference")
        if first[0].normalised:
            second = [each if each.normalised else _normalised(each) for each in second]
        expected = [each.values.astype(np.float64) for each in first]
        start = law.first_compared(self.reference.port_model, call)
        return profile(second, expected, limit, start=start)

    def _profiled(self, law: PortLaw, call: PortCall, found: Profile) -> PairResult:
        if found.first is None:
            return PairResult(
                "held", f"{phrases.call_text(call)}: equal to each other to {found.largest:.1e}", call, found
            )
        results = tuple(run.result(law) for run in self.runs)
        first, second = self.pair.engines
        where = f"from token {found.first} on" if found.first else "from the first token on"
        text = f"{second.name} differs from {first.name} {where}, by up to {found.largest:.2g}"
        return PairResult("refuted", self._both(call, text, results), call, found, results)

    def _tokens_result(self, law: PortLaw, call: PortCall, first: list[int], second: list[int]) -> PairResult:
        same = next((index for index, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), None)
        if same is None and len(first) == len(second):
            return PairResult("held", f"{phrases.call_text(call)}: {len(first)} tokens are equal", call)
        results = tuple(run.result(law) for run in self.runs)
        text = f"they generate other tokens after {min(len(first), len(second)) if same is None else same} equal ones"
        one_alone = len({each.verdict == "refuted" for each in results}) == 2
        return PairResult("refuted" if one_alone else "undecided", self._both(call, text, results), call, None, results)

    def _both(self, call: PortCall, text: str, results: Sequence[PortResult]) -> str:
        """One line: how they differ, and what the reference says of each."""
        said = []
        for run, result in zip(self.runs, results, strict=True):
            own = phrases.result_text(run, result).removeprefix(f"{phrases.call_text(call)}: ")
            said.append(f"{run.engine.name} against the reference: {own.removeprefix(f'{run.engine.name}: ')}")
        return "; ".join([f"{phrases.call_text(call)}: {text}", *said])


def _normalised(scores: Scores) -> Scores:
    values = log_softmax(scores.values.astype(np.float64)).astype(np.float32)
    return Scores(values, scores.candidates, normalised=True)


def _is_refused(run: PortRun) -> bool:
    return bool(run.first_run.load_failure) and not run.needs_older_keys


def _load_text(run: PortRun) -> str:
    if run.needs_older_keys:
        return f"loads it with {', '.join(run.older_keys)} added to config.json"
    return run.first_run.load_failure or "loads it"
