"""Decide one relation between two runs for one output: prove it, find a witness, or state why neither could be done.

strict walk -> proved: measure the deviation of two runs as well
            -> not proved: search for a witness, map where order enters, and prove the graph without that order
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

from orderproof.auditing.decide.completion import complete_entry_map
from orderproof.auditing.decide.contradiction import (
    NOT_REPEATABLE,
    contradiction_reason,
    other_program_in_float64,
)
from orderproof.auditing.decide.proof import build_proof, proof_scope, uniform_assumption
from orderproof.auditing.explain.findings import finding_of
from orderproof.auditing.explain.implied_expectation import KIND_OF_UNKNOWN_MODELS, with_implied_expectation
from orderproof.auditing.explain.lost_positions import line_of_lost_positions
from orderproof.auditing.explain.mask_hints import mask_hint
from orderproof.auditing.explain.undecided_reasons import in_words_of_undecided
from orderproof.auditing.explain.uniform_entries import make_entries_uniform
from orderproof.auditing.explain.violated_places import ViolatedPlaces, find_violated_places
from orderproof.auditing.record.assumptions import first_names
from orderproof.auditing.record.context import AuditContext
from orderproof.auditing.record.law_walk import LawWalk, Weights, walk_graph
from orderproof.auditing.record.output_axes import token_layouts
from orderproof.auditing.search.deviation import measured_deviation
from orderproof.auditing.search.node_facts import first_violating_node
from orderproof.auditing.search.witness import WitnessSearch
from orderproof.errors import INTERNAL_ERROR
from orderproof.laws import ProvedLaw, TokenDim
from orderproof.recording.captured_graph import CapturedGraph, ancestors, module_path
from orderproof.records.audit import Completion, Deviation, Expectation, Finding, Scope, Verdict, Witness


@dataclass(frozen=True)
class ProofOptions:
    """How a law is proved."""

    weights: Weights = "all"
    expect: Expectation | None = None
    uniform_entries: tuple[str, ...] = ()  # entries to make uniform first, by origin or module (shell patterns)
    search_witness: bool = True
    every_length: bool = True  # also prove for every length what is proved at one
    other_calls: bool = True  # also run what is proved in calls of other lengths, rows and masks
    theorem_seconds: float | None = None  # for what is proved for every length, apart from a time limit of the law [s]

    @property
    def states_nothing(self) -> bool:
        """True if the model itself is proved, and its user states no expectation."""
        return self.expect is None and not self.uniform_entries


AS_GIVEN = ProofOptions()
_NO_RULE = "has no rule"  # of an operator, in the reason of a walk


@dataclass(frozen=True)
class Decision:
    """The verdict on a relation for one output, and what it rests on."""

    verdict: Verdict
    reason: str
    scope: Scope
    deviation: Deviation = field(default_factory=Deviation)
    proof: LawWalk | None = None  # the walk that proves the relation, also where runs contradict it
    vacuous: bool = False
    witness: Witness | None = None
    places: ViolatedPlaces = field(default_factory=ViolatedPlaces)
    completion: Completion | None = None


@dataclass
class Relation:
    """One relation between two runs of a call, to be decided for each output."""

    context: AuditContext
    law: ProvedLaw
    options: ProofOptions
    without_rule: set[str] = field(default_factory=set)  # outputs for which only a rule at this length is missing

    @cached_property
    def captured(self) -> CapturedGraph | None:
        """The graph, with the entries made uniform that the options name; None if there is none."""
        if self.context.export_failure is not None:
            return None
        graph, patterns = self.context.captured, self.options.uniform_entries
        return make_entries_uniform(self.context, self.law, graph, patterns) if patterns else graph

    @cached_property
    def strict(self) -> LawWalk | None:
        """The walk that may prove the relation; None without a graph."""
        if self.captured is None:
            return None
        return walk_graph(self.context, self.law, self.captured, weights=self.options.weights)

    @cached_property
    def repaired(self) -> LawWalk | None:
        """The walk that goes on behind each place at which order enters; None if the law does not permute tokens."""
        if self.captured is None or not self.law.permutes_tokens:
            return None
        return walk_graph(self.context, self.law, self.captured, weights=self.options.weights, repairing=True)

    def findings(self, expected: Expectation) -> list[Finding]:
        """The finding for each output."""
        context = self.context
        if context.export_failure is not None and context.subject.patch_embedding_path is not None:
            # The tokens are inside the graph: without one they cannot be changed.
            return [self._finding("", Decision("undecided", context.export_failure, self._scope), expected)]
        _ = self.strict  # a pattern that matches no entry is refused before anything runs
        return [self._finding(output, self.decide(output), expected) for output in context.output_dims]

    def finding_of_theorem(self, output: str, expected: Expectation) -> Finding:
        """The finding for an output that lacks only a rule, where a theorem is proved: runs have to agree with it."""
        assert self.strict is not None
        search = WitnessSearch(self.context, self.law, output, self.context.dims_for(self.law, output), None)
        return self._finding(output, replace(self._proved(self.strict, search), proof=None), expected)

    def decide(self, output: str) -> Decision:
        """The decision for one output."""
        if no_meaning := self._no_meaning(output):
            return Decision(*no_meaning, self._scope)
        strict, dims, missing = self.strict, self.context.dims_for(self.law, output), self.context.export_failure or ""
        if strict is not None:
            dims, missing = self._best_token_layout(strict, output, dims)
            missing = strict.walk.internal_error(ancestors([strict.captured.outputs[output]])) or missing
        graph = self.captured if self.options.uniform_entries else None
        search = WitnessSearch(self.context, self.law, output, dims, graph)
        if strict is not None and not missing and strict.captured.branches and search.search_other_branches():
            missing = f"a branch depends on the tokens: {strict.captured.branches[0].place}"
        return self._proved(strict, search) if strict is not None and not missing else self._not_proved(search, missing)

    def _no_meaning(self, output: str) -> tuple[Verdict, str] | None:
        """The verdict for an output of which the law says nothing, or whose axes are not known, and why."""
        context, law = self.context, self.law
        axes, dims = context.output_axes[output], context.dims_for(law, output)
        unknown = "" if law.replaces_whole_rows else axes.unknown_tokens
        if unknown := unknown or (axes.unknown_rows if law.reads_rows else ""):
            return "undecided", unknown
        rows, tokens = context.batch_size, context.token_count
        inapplicable = law.inapplicable_reason(dims)
        if inapplicable is None and law.permutes_tokens and not dims and self._only_others_read_tokens(output):
            inapplicable = "this output reads no token, and others do"
        if inapplicable is None and not list(law.input_changes(tokens, rows)):
            inapplicable = f"there is nothing to replace in a batch of {rows} with {tokens} tokens"
        if inapplicable is None and law.reads_rows and axes.row is None:
            inapplicable = "no axis of the output runs over rows"
        if inapplicable is not None:
            return "not_applicable", f"{inapplicable}{self._hint_at_inputs(dims)}"
        if any(t.prefix_length < 0 for t in dims):
            return "undecided", (
                "the output has fewer entries than there are tokens: which token each belongs to is not known"
            )
        return None

    def _hint_at_inputs(self, dims: tuple[TokenDim, ...]) -> str:
        """For a decoder that computes the output of one token only, the inputs that may ask for those of all tokens."""
        subject, law = self.context.subject, self.law
        if dims or law.permutes_tokens or law.replaces_whole_rows or subject.model_kind != "causal_lm":
            return ""
        names = first_names(subject.inputs_left_out)
        return f"; give it inputs with which it has one output per token (not given: {names})" if names else ""

    def _only_others_read_tokens(self, output: str) -> bool:
        """True for an output that no token reaches, while they reach another: lengths that are returned."""
        if self.captured is None:
            return False
        inputs = zip(self.captured.inputs, self.context.subject.token_axes, strict=False)
        tokens = {node for node, axis in inputs if axis is not None}
        reached = {name: bool(tokens & ancestors([node])) for name, node in self.captured.outputs.items()}
        return not reached[output] and any(reached.values())

    def _best_token_layout(
        self, strict: LawWalk, output: str, dims: tuple[TokenDim, ...]
    ) -> tuple[tuple[TokenDim, ...], str]:
        """The layout of an output for which the law is proved, or the first layout and what it lacks.

        Whether the entries that are no tokens precede the tokens or follow them is not known. An output that is
        permuted in one of these layouts is permuted. Which tokens an entry must not depend on differs by layout, and
        so does which entry is of the last token, so other laws must hold in both.
        """
        context, law = self.context, self.law
        fact = strict.walk.fact(strict.captured.outputs[output])
        layouts = token_layouts(dims)
        missing = {r: law.missing_property(fact, r, context.token_count) for r in layouts}
        proved = [layout for layout, lack in missing.items() if lack is None]
        if len(layouts) > 1:
            context.note(
                f"output {output!r} has more entries than tokens: taken to precede the tokens, or to follow them"
            )
        if proved and ((law.permutes_tokens and not law.last_token_only) or len(proved) == len(missing)):
            return proved[0], ""
        return dims, missing[dims] or next(lack for lack in missing.values() if lack is not None)

    def _proved(self, strict: LawWalk, search: WitnessSearch) -> Decision:
        """The decision where the walk proves the relation: runs and the module must agree with it."""
        deviation, contradicts = measured_deviation(search, of_all_weights=strict.covered_weights == "all")
        scope, mismatch = proof_scope(self.context, strict), self.context.graph_mismatch
        if mismatch is not None or contradicts:
            return Decision("undecided", mismatch or contradiction_reason(search, deviation), scope, deviation, strict)
        known = scope.weights == "all" and search.stand_in is not None  # tokens are mixed in it
        vacuous = self.law.requires_token_mixing and bool(search.dims) and not (known or search.mixes_tokens())
        reason = "vacuous: no token's output depends on another token" if vacuous else ""
        return Decision("proved", reason, scope, deviation, strict, vacuous)

    def _not_proved(self, search: WitnessSearch, missing: str) -> Decision:
        """The decision where the walk does not prove the relation: a witness refutes it."""
        places, completion = ViolatedPlaces(), None
        if self.strict is not None:
            places = find_violated_places(self.context, self.strict, self.repaired, search.output)
            if self.repaired is not None and self.law.maps_entries:
                completion = complete_entry_map(self.context, self.strict, search.output, search.dims, places.breaks)
        weights = self.options.weights
        evidence = search.search(weights) if self.options.search_witness else None
        repeatable = evidence is None or search.is_repeatable(evidence)
        if not repeatable:
            search = search.with_restored_state()
            evidence = search.search(weights)
            evidence = evidence if evidence is not None and search.is_repeatable(evidence) else None
        if evidence is not None and len(layouts := token_layouts(search.dims)) > 1:
            # Entries that are no tokens may precede or follow them: a witness must hold in both layouts.
            other_layout = WitnessSearch(self.context, self.law, search.output, layouts[-1], search.graph)
            evidence = other_layout.search(weights) and evidence
        reason = places.reason or missing
        if evidence is None:
            has_rules = self.strict is not None and not self.strict.captured.branches and INTERNAL_ERROR not in reason
            if repeatable and has_rules:
                self.without_rule.add(search.output)
            reason = self._reason_without_witness(in_words_of_undecided(reason), search, repeatable=repeatable)
            return Decision("undecided", reason, self._scope_without_proof(), places=places, completion=completion)
        witness, assumptions = search.witness(evidence), search.evidence_assumptions(evidence)
        if where := first_violating_node(search, self.repaired, places.needed) or places.first_node:
            witness = witness.model_copy(update={"first_violating_module": module_path(where)})
        if search.context is not self.context:
            twin = search.context.subject.load_summary
            assumptions = (f"the witness was found on a tiny twin with random weights: {twin}", *assumptions)
        return Decision(
            "refuted", reason, self._scope_without_proof(assumptions),
            Deviation(float32=evidence.float32, float64=evidence.float64),
            witness=witness, places=places, completion=completion,
        )  # fmt: skip

    def _reason_without_witness(self, reason: str, search: WitnessSearch, *, repeatable: bool) -> str:
        if not repeatable:
            return f"{self.context.graph_mismatch or reason}; {NOT_REPEATABLE}"
        if self.context.graph_mismatch is not None or not self.options.search_witness:
            return self.context.graph_mismatch or reason
        if self.options.weights == "all" and self.captured is not None:
            hint = mask_hint(self.context.subject.module, self.captured)
            reason = f"{reason}; {hint}" if hint else reason
        program = other_program_in_float64(search) if search.disagreeing else ""
        reason = f"{program}: {reason}" if program else reason
        to_try = "" if _NO_RULE in reason else f": {self._what_to_try()}"  # other weights need the rule too
        return f"{reason}; no witness was found{to_try}"

    def _what_to_try(self) -> str:
        """Advice for a law that no rule shows and no run violates."""
        mask = "" if self.law.permutes_tokens else "; or hide with -inf or zero what the line must not read"
        if self.options.weights == "all":
            return f"`orderproof prove --weights these` may prove it for the weights of the model{mask}"
        return f"another `--length` may show one{mask}"

    @property
    def _scope(self) -> Scope:
        return Scope(length=self.context.token_count)

    def _scope_without_proof(self, assumptions: tuple[str, ...] = ()) -> Scope:
        """The scope of a decision that is not a proof, with the assumptions of a witness."""
        other = uniform_assumption(self.strict)
        return Scope(length=self.context.token_count, weights=self.options.weights, assumptions=(*assumptions, *other))

    def _finding(self, output: str, decision: Decision, expected: Expectation) -> Finding:
        done, places, completion = decision.proof, decision.places, decision.completion
        complete = None if completion is None else completion.verdict == "proved"
        if done is not None and self.law.permutes_tokens:
            complete = True
        line = places.line
        if done is not None and decision.verdict == "proved" and expected == "fails" and self.law.permutes_tokens:
            line = line_of_lost_positions(done, output, self.context.token_count)
        finding = finding_of(
            self.law, decision.verdict, decision.reason, expected=expected, scope=decision.scope, output=output,
            entries_complete=complete, vacuous=decision.vacuous, entries=places.entries, witness=decision.witness,
            deviation=decision.deviation, completion=completion, fix_source=line.source,
            fix_line=line.text, remedy=places.remedy.text, remedy_diff=places.remedy.diff,
            proof=build_proof(done, output) if done is not None and decision.verdict == "proved" else None,
        )  # fmt: skip
        unstated = self.options.states_nothing and self.context.subject.model_kind == KIND_OF_UNKNOWN_MODELS
        return with_implied_expectation(finding, self.law, places.masks, unstated=unstated)
