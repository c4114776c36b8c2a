"""One engine compared with one reference: the calls of all laws, and the explanation of each difference.

The engine reads the checkpoint that transformers saves. If it refuses the folder, or differs in a way that the keys of
older versions of transformers may explain, it runs once more with these keys added to config.json.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from orderproof.errors import first_line
from orderproof.laws.ports import PortCall, PortLaw
from orderproof.ports.call_failure import explained_failure
from orderproof.ports.causes.cause import Candidate
from orderproof.ports.causes.registry import candidates
from orderproof.ports.comparison import NotFiniteError, Profile, check_scores, profile, resolution, rounding, tolerance
from orderproof.ports.engine_process import EngineLimits, EngineRun, run_engine
from orderproof.ports.engine_side.serving import Output
from orderproof.ports.engines.engine import EngineError, InferenceEngine, Scores
from orderproof.ports.explanation import LEAST_TIME, TIME_LIMIT, Explanation, FoundCause, explain
from orderproof.ports.older_config import older_keys
from orderproof.ports.reference import Change, Reference
from orderproof.ports.reference_checks import (
    boundary_effect,
    control,
    decisive_call,
    nearer_output,
    own_cache_difference,
)
from orderproof.ports.refusal import refusal_explanation
from orderproof.ports.tokenizer import write_tokenizer
from orderproof.records.audit import Verdict

NOT_LOADED = "does not load the checkpoint"
OLDER_CAUSES = ("rotary base", "partial rotary", "scaling")  # whose settings have other names in older versions


@dataclass(frozen=True)
class PortResult:
    """The result of one law."""

    law: PortLaw
    verdict: Verdict
    reason: str = ""
    call: PortCall | None = None
    profile: Profile | None = None
    rounding: float | None = None  # of the reference, relative
    control: float | None = None  # the relative difference that another first token makes
    explanation: Explanation = field(default_factory=Explanation)
    with_older_keys: Profile | None = None
    older_explanation: Explanation = field(default_factory=Explanation)  # of what is left then
    notes: tuple[str, ...] = ()  # what the engine does not report
    beyond: str = ""  # the threshold beyond which the engine fails


@dataclass
class PortRun:
    """An engine and a reference."""

    reference: Reference
    engine: InferenceEngine
    laws: Sequence[PortLaw]
    limits: EngineLimits = field(default_factory=EngineLimits)
    explains: bool = True
    known_causes: list[Candidate] = field(default_factory=list)  # that explained an earlier law
    _searched: float = 0.0  # [s] of processor time of searches that explained nothing, or a part
    _taken: dict[int, bool] = field(default_factory=dict)  # lengths of prompts that were tried after a failure

    @cached_property
    def calls(self) -> dict[str, PortCall]:
        """The call of each law that the engine and the model can take, by the name of the law."""
        model, calls = self.reference.port_model, {}
        for law in self.laws:
            if law.reason_against(model, self._abilities) is None:
                if (call := law.call(model)) is not None:
                    calls[law.name] = decisive_call(self.reference, law, call) if law.may_shorten else call
        return calls

    @property
    def _abilities(self) -> frozenset[str]:
        return self.engine.abilities_for(self.reference.kind)

    @cached_property
    def older_keys(self) -> dict[str, Any]:
        """The keys of older versions that config.json lacks."""
        return older_keys(self.reference.config_json())

    @cached_property
    def first_run(self) -> EngineRun:
        """The calls on the checkpoint as it is saved."""
        if not self.engine.is_installed:
            return EngineRun(load_failure=self.engine.missing)
        return self._run({})

    @cached_property
    def older_run(self) -> EngineRun | None:
        """The calls with the keys of older versions; None if there are none, or the engine does not read the folder."""
        reads = self.engine.reads_config and self.engine.is_installed
        return self._run(self.older_keys) if self.older_keys and reads else None

    @property
    def needs_older_keys(self) -> bool:
        """True if the engine loads the checkpoint with the keys of older versions only."""
        return bool(self.first_run.load_failure) and self.older_run is not None and not self.older_run.load_failure

    def _run(self, extra_keys: dict[str, Any], calls: Sequence[PortCall] = ()) -> EngineRun:
        with self._checkpoint(extra_keys) as folder:
            calls = calls or list(dict.fromkeys(self.calls.values()))
            if not calls:  # loading is a law too
                calls = [PortCall("prefill", (self.reference.port_model.tokens(2),))]
            model_type, kind = self.reference.config.model_type, self.reference.kind
            return run_engine(self.engine, folder, model_type, calls, self.limits, kind)

    @contextmanager
    def _checkpoint(self, extra_keys: dict[str, Any]) -> Iterator[Path]:
        """The folder that the engine reads: the subject's own, or a temporary one."""
        if self.reference.engine_folder is not None and not extra_keys:
            yield self.reference.engine_folder
            return
        with TemporaryDirectory() as place:
            folder = Path(place)
            if self.reference.folder is not None:
                for file in self.reference.folder.glob("*token*"):
                    shutil.copy(file, folder)
            self.reference.save(folder, extra_keys)
            write_tokenizer(folder, self.reference.port_model.vocabulary)
            yield folder

    def result(self, law: PortLaw) -> PortResult:
        """The result of one law. Never raises for what the engine does."""
        run, model = self.first_run, self.reference.port_model
        if not self.engine.is_installed:
            return PortResult(law, "undecided", run.load_failure)
        if not run.knows:
            name = self.reference.config.model_type
            return PortResult(law, "not_applicable", f"{self.engine.version} has no implementation of {name}")
        if law.ability is None:
            own = PortResult(law, "not_applicable", f"{self.engine.name} has weights of its own")
            return self._load_result(law, run) if self.engine.reads_checkpoint else own
        if (reason := law.reason_against(model, self._abilities)) is not None:
            return PortResult(law, "not_applicable", reason)
        if not run.has_started:
            return PortResult(law, "undecided", run.load_failure)
        if run.load_failure and not self.needs_older_keys:
            why = "" if any(each.ability is None for each in self.laws) else f": {run.load_failure}"
            return PortResult(law, "undecided", f"{self.engine.name} {NOT_LOADED}{why}")
        output = self.output(law)
        if isinstance(output, str):
            return self._failed_call(law, output)
        try:
            return self._compared(law, output)
        except NotFiniteError as error:
            return PortResult(law, "refuted", f"{self.engine.name}: {error}", self.calls[law.name])
        except EngineError as error:
            return PortResult(law, "undecided", f"{self.engine.name}: {error}", self.calls[law.name])
        except Exception as error:  # noqa: BLE001 - third-party code: the reference may fail in any way
            return PortResult(law, "undecided", f"the reference raised {first_line(error)}", self.calls[law.name])

    @property
    def run(self) -> EngineRun:
        """The calls on the checkpoint that the engine loads, with the keys of older versions if it needs them."""
        return self.older_run if self.needs_older_keys and self.older_run is not None else self.first_run

    def output(self, law: PortLaw) -> Output | str:
        """The output of the call of a law, or why there is none; the engine has loaded the checkpoint."""
        return self.run.outputs[self.calls[law.name]]

    def _failed_call(self, law: PortLaw, failure: str) -> PortResult:
        """The result of a call that the engine does not make, with the cause if shorter ones show it."""
        call = self.calls[law.name]
        found = explained_failure(self.engine.name, failure, call, self.reference.port_model, self._takes)
        return PortResult(law, found.verdict, found.reason, call, beyond=found.boundary)

    def _takes(self, length: int) -> bool:
        """True if the engine returns scores for a prompt of this length [tokens]."""
        if length not in self._taken:
            model = self.reference.port_model
            near = [size + step for size in (model.window, model.context, model.stated) if size for step in (-1, 0, 1)]
            lengths = sorted({2, length, *(each for each in near if each > 0)} - self._taken.keys())
            calls = {each: PortCall("prefill", (model.tokens(each),)) for each in lengths}  # in one process
            run = self._run(self.older_keys if self.needs_older_keys else {}, list(calls.values()))
            self._taken |= {n: not isinstance(run.outputs.get(call, ""), str) for n, call in calls.items()}
        return self._taken[length]

    def _load_result(self, law: PortLaw, run: EngineRun) -> PortResult:
        if not run.load_failure:
            took = f"{run.seconds:.1f} s of processor time for it and {len(run.outputs)} calls"
            imported = round(self.engine.import_seconds)
            after = f", after an import of {imported} s" if imported else ""
            return PortResult(law, "held", f"{self.engine.version} loads it: {took}{after}")
        if not run.refused:
            return PortResult(law, "undecided", run.load_failure)
        keys = ", ".join(self.older_keys)
        if self.needs_older_keys:
            then = (
                f"it loads with {keys} added to config.json, as transformers wrote them before version 5, and the "
                "other laws are measured so: the version of the configuration is the cause, and not its arithmetic"
            )
        elif self.older_run is not None:
            again = self.older_run.load_failure
            same = "the same error" if again == run.load_failure else f"another one: it {again}"
            then = f"with {keys} added to config.json, as transformers wrote them before version 5, {same}"
        else:
            then = "no other law can be measured"
        found = Explanation()
        if self.explains and not self.needs_older_keys:
            found = refusal_explanation(self.reference, self.engine, run, self.limits)
        return PortResult(law, "refuted", f"{self.engine.name} {run.load_failure}; {then}", explanation=found)

    def _compared(self, law: PortLaw, output: Output) -> PortResult:
        call = self.calls[law.name]
        if call.kind == "greedy":
            return self._compared_tokens(law, call, [int(each) for each in output if not isinstance(each, Scores)])
        scores = [each for each in output if isinstance(each, Scores)]
        single, double = self.reference.outputs(call), self.reference.outputs(call, double=True)
        start = law.first_compared(self.reference.port_model, call)
        check_scores(scores, double)
        known = resolution(scores, self.reference.port_model.vocabulary)
        scale = max(float(abs(each).max()) for each in double)
        limit = max(tolerance(single, double), known.step / scale)
        found = profile(scores, double, limit, start=start)
        if call.kind == "chunks" and (own := own_cache_difference(self.reference, call)) > limit:
            note = f"the reference itself differs between calls with a cache and one call, by up to {own:.2g}"
            found, equal = nearer_output(self.reference, scores, call, found)
            if found.first is not None:
                return PortResult(law, "undecided", f"{note}; {self.engine.name} differs from both", call)
            known = replace(known, notes=(*known.notes, f"{note}: {self.engine.name} equals {equal}"))
        result = PortResult(
            law, "held" if found.first is None else "refuted", call=call, profile=found,
            rounding=rounding(single, double), control=control(self.reference, call, start), notes=known.notes,
        )  # fmt: skip
        if found.first is None or not self.explains:
            return result
        return self._explained(result, scores, found)

    def _explained(self, result: PortResult, scores: Sequence[Scores], found: Profile) -> PortResult:
        assert result.call is not None
        run = self.older_run if self.needs_older_keys else self.first_run
        explanation = self._explain(result.call, scores, found, {} if run is None else run.defaults)
        named = {cause.candidate.cause for cause in explanation.causes}
        explained = replace(result, explanation=explanation)
        if self.needs_older_keys or (explanation.is_complete and not named.intersection(OLDER_CAUSES)):
            return explained
        return self._with_older_keys(explained, result.call, found)

    def _explain(
        self, call: PortCall, scores: Sequence[Scores], found: Profile, defaults: Mapping[str, Any]
    ) -> Explanation:
        def profile_of(changes: Sequence[Change]) -> Profile:
            return profile(scores, self.reference.outputs(call, changes), found.tolerance, start=found.start)

        def boundary_of(changes: Sequence[Change], copies: int) -> Profile:
            return boundary_effect(self.reference, call, changes, found, copies)

        known = [each for each in self.known_causes if _suits(each, call)]
        suitable = [each for each in candidates(self.reference, defaults) if _suits(each, call)]
        began = time.process_time()
        explanation = explain(profile_of, boundary_of, found, suitable, known, self._seconds_left)
        if not explanation.is_complete:
            self._searched += time.process_time() - began
        new = (each.candidate for each in explanation.causes)
        self.known_causes.extend(each for each in new if each not in self.known_causes)
        return explanation

    @property
    def _seconds_left(self) -> float:
        """The processor time of the next search [s]."""
        return max(TIME_LIMIT - self._searched, LEAST_TIME)

    def _with_older_keys(self, result: PortResult, call: PortCall, found: Profile) -> PortResult:
        """The same with the differences of the run with the keys of older versions, and what explains these."""
        output = None if self.older_run is None else self.older_run.outputs.get(call)
        if self.older_run is None or output is None or isinstance(output, str):
            return result
        scores = [each for each in output if isinstance(each, Scores)]
        again = profile(scores, self.reference.outputs(call, double=True), found.tolerance, start=found.start)
        if again == found:
            return result  # the engine does not read them
        explanation = Explanation()
        if again.first is not None:
            explanation = self._explain(call, scores, again, self.older_run.defaults)
        return replace(result, with_older_keys=again, older_explanation=explanation)

    def _compared_tokens(self, law: PortLaw, call: PortCall, tokens: Sequence[int]) -> PortResult:
        steps = list(self.reference.greedy(call))
        single = self.reference.outputs(PortCall("prefill", call.rows))
        double = self.reference.outputs(PortCall("prefill", call.rows), double=True)
        limit = tolerance(single, double)
        for index, (token, gap) in enumerate(steps):
            actual = tokens[index] if index < len(tokens) else None
            if actual == token:
                continue
            if gap <= limit:
                reason = f"equal for {index} tokens; the two best logits of the next one differ by rounding"
                return PortResult(law, "held" if index else "undecided", reason, call)
            text = "no token" if actual is None else f"token {actual}"
            reason = f"after {index} equal tokens it generates {text}, and the reference token {token}"
            result = PortResult(law, "refuted", reason, call)
            return self._explained_tokens(result, call, tokens) if self.explains else result
        return PortResult(law, "held", f"{len(steps)} tokens are equal", call)

    def _explained_tokens(self, result: PortResult, call: PortCall, tokens: Sequence[int]) -> PortResult:
        """With the changes, if there are any, with which the reference generates the tokens of the engine."""
        known = [each for each in self.known_causes if _suits(each, call)]
        rest = [each for each in candidates(self.reference, self.first_run.defaults) if _suits(each, call)]
        end = time.process_time() + self._seconds_left
        for group in [known, *([each] for each in known), *([each] for each in rest)]:
            if time.process_time() > end:
                break
            if group and self._generates(call, tokens, [each.change for each in group]):
                left = Profile((0.0,), 0.0)  # token ids have no distance
                return replace(
                    result, explanation=Explanation(tuple(FoundCause(each, left) for each in group), is_complete=True)
                )
        return result

    def _generates(self, call: PortCall, tokens: Sequence[int], changes: Sequence[Change]) -> bool:
        try:
            steps = zip(tokens, self.reference.greedy(call, changes), strict=True)
            return all(actual == token for actual, (token, _) in steps)
        except Exception:  # noqa: BLE001 - third-party code: a model may refuse a changed configuration in any way
            return False


def _suits(candidate: Candidate, call: PortCall) -> bool:
    """True if a candidate can change a call of this kind."""
    return candidate.kind in (None, call.kind)
