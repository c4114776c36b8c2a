"""The records of an audit, as plain data (schema version 2).

Nothing here computes and nothing here imports torch. Every renderer reads a `Report` and nothing else.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, computed_field, model_validator

from orderproof.records.document import Document, Record, schema_version
from orderproof.records.input_role import InputRole

Verdict = Literal["proved", "refuted", "undecided", "held", "not_applicable"]
Expectation = Literal["holds", "fails", "any"]
Kind = Literal["check", "property"]
Outcome = Literal["pass", "fail", "undecided", "yes", "no", "not_applicable"]
PortCauseName = Literal[
    "window", "rotary base", "rotary layout", "partial rotary", "scaling", "softcap", "sinks", "mask or pads",
    "cache offset", "norm or constant precision", "other",
]  # fmt: skip
SCHEMA_VERSION = 2
EXIT_INTERRUPTED = 130
_SETTINGS = (
    "in the recorded modes, settings, environment variables and Python state (attributes, caches, global variables), "
    "called without gradients, where no operator raises an error; assumes that the code does not act on being "
    "recorded; state is compared in the objects that the model owns"
)
RECORDED_CALL_ASSUMPTION = (  # of every proof
    f"over the real numbers, for finite activations, at the recorded shape, dtype, layout and device, {_SETTINGS}"
)
OPEN_CALL_ASSUMPTION = (  # of every theorem: the same without the shape
    f"over the real numbers, for finite activations, at the recorded dtype, layout and device, {_SETTINGS}"
)

SEPARATE_INPUTS_ASSUMPTION = "its inputs are different tensors"  # of a call with several
TRACED_ASSUMPTION = "as traced: parts of the model were replaced, because"  # and the reason


class Scope(Record):
    """The scope of a verdict: the recorded length [tokens], the weights, the values used and the assumptions."""

    length: int
    lengths: Literal["this", "every"] = "this"  # "every": the proof holds at every length that the model takes
    weights: Literal["all", "these"] = "all"
    tensors_read: tuple[str, ...] = ()  # parameters and buffers whose values the proof used
    compared_lengths: tuple[int, ...] = ()  # [tokens] not proved: runs at these lengths were compared and agree
    compared_masks: tuple[str, ...] = ()  # the same for these attention masks: "padded left"
    compared_rows: tuple[int, ...] = ()  # the same for these numbers of rows
    assumptions: tuple[str, ...] = ()


class Remedy(Record):
    """A remedy of a violation: in words, and if it is mechanical as lines of code, - before and + after."""

    text: str
    diff: str = ""


class Picture(Record):
    """A mask or a table as rows of characters.

    Of a mask a row is a query and a character a key: ``1`` seen, ``0`` hidden, ``!`` seen although the law forbids it.
    Of a table a row is a token and a character a feature: ``0`` for the least to ``9`` for the greatest value.
    """

    kind: Literal["mask", "table"]
    rows: tuple[str, ...]


class Entry(Record):
    """A place where order enters (equivariance laws) or a dependence leaks (independence laws)."""

    kind: Literal["constant", "operator"]
    operator: str  # aten.add.Tensor
    node_count: int = 1  # the nodes of this entry
    layer_count: int = 1  # the modules that they are in
    module: str = ""  # dotted module path; * is a layer number if the entry covers several layers
    source: str = ""  # modeling_bert.py:104
    source_line: str = ""  # the source line itself
    origin: str = ""  # the source of the constant or mask: a parameter, a buffer, arange ...
    origin_source: str = ""  # the line that computes it, if it is the model's: modeling_bert.py:88
    origin_module: str = ""  # the module of that line
    picture: Picture | None = None  # the mask that lets a token through, or the table of positions
    reason: str = ""


class ProofStep(Record):
    """One step of a proof: the operator, the lemma and the resulting fact."""

    node: str
    operator: str
    lemma: str
    fact: str
    module: str = ""
    source: str = ""


class Proof(Record):
    """A proof: the number of steps, the lemmas and the steps."""

    step_count: int
    distinct_step_count: int = 0  # without repetitions: identical layers are analysed once
    lemma_counts: dict[str, int]  # lemma -> number of uses
    steps: tuple[ProofStep, ...] = ()
    graph_fingerprint: str = ""  # of the graph that it is about


class Deviation(Record):
    """The largest relative difference between the expected and the actual output, in two precisions."""

    float32: float | None = None
    float64: float | None = None


class Witness(Record):
    """The smallest pair of runs found that violates the law."""

    tokens_before: tuple[str, ...]  # tokens of the first run, as text (or as x0, x1 ... for random vectors)
    tokens_after: tuple[str, ...]  # tokens of the second run
    change: str  # "swap tokens 0 and 1", "replace the tokens from 4 on"
    permutation: tuple[int, ...] | None = None
    output_index: tuple[int, ...] = ()  # of the largest difference
    expected_value: float | None = None  # by the law
    actual_value: float | None = None  # of the second run
    relative_difference: float  # the largest, in float64 if the model runs in it
    first_violating_module: str = ""  # the first module whose output violates the law
    first_violating_source: str = ""  # of a measured law: the line at which its two runs first differ
    onset: str = ""  # from which length on a measured law is violated; in which call a law is proved that this violates
    weights: Literal["given", "random"] = "given"  # "random": random weights were needed to show it
    seed: int = 0


class ComparisonRecord(Record):
    """One comparison of a measured law: two ways to compute the same numbers."""

    description: str  # "token-by-token decoding"
    float32: float | None = None  # the relative difference; None if the comparison could not be made
    float64: float | None = None  # the same in float64, if float32 did not decide
    verdict: Literal["held", "refuted", "undecided", "not_applicable"] = "undecided"  # of this comparison
    reason: str = ""  # why it could not be made or decided
    lengths: tuple[int, ...] = ()  # of the default calls in which it was made [tokens]
    refuted_lengths: tuple[int, ...] = ()  # those at which the outputs differ, or must and do not


class Measurement(Record):
    """The comparisons of a measured law, and its control."""

    tolerance: float  # the relative difference that is attributed to rounding
    control_difference: float | None = None  # the relative difference that the positive control makes
    comparisons: tuple[ComparisonRecord, ...] = ()


class PortCause(Record):
    """A setting that an engine computes in another way than the reference."""

    cause: PortCauseName
    setting: str  # the key of the configuration, or the part of the program: "sliding_window"
    stated: str  # the value of the reference
    assumed: str  # the value with which the reference computes what the engine computes
    remaining: float  # the relative difference that is left with this value and those of the causes before it
    engine: str = ""  # of two that are compared with each other: the one that computes it


class PortEvidence(Record):
    """An engine compared with the reference: where it differs, and the settings that explain it."""

    engine: str  # "mlx"; the second of two that are compared with each other
    first_engine: str = ""  # the first of two: "vllm@0.31.0"; empty if the engine is compared with the reference
    first_version: str = ""
    version: str = ""  # "mlx-lm 0.32.2"
    tokens: int = 0  # of the call
    rounding: float | None = None  # the relative difference of the reference in float32 and in float64
    first_token: int | None = None  # the first that differs
    growth: tuple[tuple[int, float], ...] = ()  # the largest difference of the first n tokens: (n, difference)
    causes: tuple[PortCause, ...] = ()
    explained: bool = False  # with these values the reference equals the engine
    older_keys: tuple[str, ...] = ()  # keys of older versions that were added to config.json for a second run
    with_older_keys: float | None = None  # the difference of that run; None if there was none
    older_causes: tuple[PortCause, ...] = ()  # that explain what is left of the difference in that run
    older_explained: bool = False  # with these values the reference equals the engine in that run
    needs_older_keys: bool = False  # the engine refuses the checkpoint without them
    seconds: float = 0.0  # of processor time of the engine, for the checkpoint and all calls [s]
    import_seconds: float = 0.0  # of the import before, in an environment of its own [s]


class Theorem(Record):
    """The law for every number of tokens and rows, and every value of the inputs that both runs share."""

    proved: bool
    least_length: int = 2  # [tokens]
    greatest_length: int | None = None  # [tokens]; None: no limit in the program
    open_length: bool = True  # False: for inputs of the recorded size, and every number of rows
    recorded_shapes: tuple[str, ...] = ()  # of the inputs, if the length is not open: "[batch, 3, 30, 30]"
    every_depth: bool = False  # for every number of layers with the code of the recorded ones
    covers: tuple[str, ...] = ()  # the inputs that both runs share: "every attention mask"
    conditions: tuple[str, ...] = ()  # on the sizes, besides the range of lengths
    assumptions: tuple[str, ...] = ()
    reason: str = ""  # why it is not proved, or not for every length

    @property
    def is_of_replaced_parts(self) -> bool:
        """True if parts of the model were replaced in a recording."""
        return any(text.startswith(TRACED_ASSUMPTION) for text in self.assumptions)


class Completion(Record):
    """The result for the graph with the constants of the entry map made uniform: the model without order."""

    verdict: Verdict
    uniform_operand_count: int  # operands that were made uniform
    scope: Scope
    proof: Proof | None = None
    deviation: Deviation = Deviation()
    reason: str = ""
    theorem: Theorem | None = None  # the same for every number of tokens and rows


class Finding(Record):
    """One law for one output of one subject: the verdict and its evidence."""

    code: str
    law: str
    statement: str = ""  # the law in one sentence
    kind: Kind = "check"  # a check passes or fails; a property describes the model
    trait: str = ""  # the subject of `yes` and `no`: "sees token order"
    outcome: Outcome = "undecided"
    verdict: Verdict  # how the outcome is known: by proof, witness or measurement
    expected: Expectation = "any"
    expected_because: str = (
        ""  # of a violated law: what in the model suggests the expectation, and how to state another one
    )
    expectation_met: bool = True
    scope: Scope
    entries_complete: bool | None = None
    vacuous: bool = False
    output: str = ""
    call_mode: str = ""  # "" with tokens only; padded, padded left ..., packed, blocked, labelled; decoder
    entries: tuple[Entry, ...] = ()
    witness: Witness | None = None
    deviation: Deviation = Deviation()
    proof: Proof | None = None
    theorem: Theorem | None = None  # for every length; None if the law is not proved at the recorded one
    completion: Completion | None = None
    measurement: Measurement | None = None  # of a measured law
    port: PortEvidence | None = None  # of a law of ports
    remedy: str = ""  # how to repair a violation
    remedy_diff: str = ""  # the remedy as lines of code, - before and + after
    script: str = ""  # Python code without orderproof that exits with 1 if the violation is there; see `repro`
    fix_source: str = ""  # the line of the model's own code to change: model.py:20
    fix_line: str = ""  # that line
    same_cause_as: str = ""  # the code of a law whose violation has the same cause, such as the same line
    reason: str = ""
    seconds: float = 0.0

    @property
    def untested_because(self) -> str:
        """Why it has no answer: "undecided: aten.foo has no rule"."""
        return f"{self.verdict.replace('_', ' ')}: {self.reason or 'no reason is recorded'}"


def outcome_of(kind: Kind, verdict: Verdict, *, met: bool, trait_if: Literal["holds", "fails"] = "holds") -> Outcome:
    """The outcome: for a check pass or fail, for a property whether the model has the trait."""
    if verdict in ("undecided", "not_applicable"):
        return verdict
    if kind == "check":
        return "pass" if met else "fail"
    holds = verdict != "refuted"
    return "yes" if holds == (trait_if == "holds") else "no"


class SubjectRecord(Record):
    """The audited model."""

    name: str
    kind: str
    parameters: int
    layers: int | None = None
    detail: str = ""  # attention backend, device, source
    configuration: dict[str, str] = Field(default_factory=dict)  # the values that differ from the default
    axes: dict[str, str] = Field(default_factory=dict)  # of each input and output, and how they are known
    inputs: tuple[InputRole, ...] = ()  # the role of each input, if the audit derives roles


class SentenceDistance(Record):
    """The distance of two sentences under one condition."""

    condition: str  # "with positions" | "without positions"
    dtype: str
    cosine: float
    max_abs_difference: float


class SentencePair(Record):
    """Two sentences with the same words in different order, and the distances of their outputs."""

    first: str
    second: str
    tokens_first: tuple[str, ...]
    tokens_second: tuple[str, ...]
    distances: tuple[SentenceDistance, ...]


class AttentionMap(Record):
    """The attention weights of one head: rows are queries, columns are keys."""

    title: str
    query_tokens: tuple[str, ...]
    key_tokens: tuple[str, ...]
    weights: tuple[tuple[float, ...], ...]


class Basis(Record):
    """Digests of the options, files, packages and settings that a report was made from."""

    options: dict[str, str] = Field(default_factory=dict)  # of the command, as JSON
    environment: str = ""  # of Python, the installed packages and the machine
    settings: dict[str, str] = Field(default_factory=dict)  # of variables that the model reads
    files: dict[str, dict[str, str]] = Field(default_factory=dict)  # by how they were looked at


class Report(Document):
    """The result of one audit."""

    schema_version: int = schema_version(SCHEMA_VERSION)
    orderproof_version: str
    subject: SubjectRecord
    findings: tuple[Finding, ...]
    sentence_pair: SentencePair | None = None
    attention_maps: tuple[AttentionMap, ...] = ()
    lemma_statements: dict[str, str] = Field(default_factory=dict)  # of the lemmas that the proofs use
    notes: tuple[str, ...] = ()
    interrupted: bool = False  # stopped before all laws were decided
    left: tuple[str, ...] = ()  # the laws that an audit that goes on with it decides: not reached, or out of time
    basis: Basis | None = None  # of a report with laws that are left: an audit of the same may go on with it
    strict: bool = False  # each law that is expected of the model must be tested: else the exit code is 3

    @model_validator(mode="before")
    @classmethod
    def _without_derived_fields(cls, data: Any) -> Any:
        """The fields of a file without those that follow from the findings."""
        return {k: v for k, v in data.items() if k != "not_checked"} if isinstance(data, dict) else data

    def with_undecided(self, planned: Report, reason: str) -> Report:
        """The report with the laws of a plan that it says nothing of, undecided for this reason."""
        decided = {finding.law for finding in self.findings}
        added = [f.model_copy(update={"reason": reason}) for f in planned.findings if f.law not in decided]
        left = (*self.left, *(f.law for f in added))
        return self.model_copy(update={"findings": (*self.findings, *added), "left": tuple(dict.fromkeys(left))})

    @computed_field  # type: ignore[prop-decorator]
    @property
    def not_checked(self) -> dict[str, list[str]]:
        """Reason -> the laws that are expected of the model and were not tested: "OP202 padding"."""
        laws: dict[str, list[str]] = {}
        for f in self.untested:
            laws.setdefault(f.untested_because, []).append(f"{f.code} {f.law}")
        return {reason: list(dict.fromkeys(names)) for reason, names in laws.items()}

    @property
    def proved(self) -> tuple[Finding | Completion, ...]:
        """Findings that are proved, and the models without order of their entry maps."""
        parts = [part for f in self.findings for part in (f, f.completion) if part is not None]
        return tuple(part for part in parts if part.verdict == "proved")

    @property
    def proved_at_one_length(self) -> tuple[Finding | Completion, ...]:
        """The proofs without a theorem, which have no certificate and cannot be rechecked."""
        return tuple(part for part in self.proved if part.theorem is None or not part.theorem.proved)

    @property
    def violations(self) -> tuple[Finding, ...]:
        """Findings that are decided and not as expected."""
        return tuple(f for f in self.findings if not f.expectation_met and f.verdict != "undecided")

    @property
    def undecided(self) -> tuple[Finding, ...]:
        """Findings with an expectation that were not decided."""
        return tuple(f for f in self.findings if not f.expectation_met and f.verdict == "undecided")

    @property
    def untested(self) -> tuple[Finding, ...]:
        """Findings of laws that are expected of the model: undecided, or of a law that applies to no call of it."""
        applied = {f.law for f in self.findings if f.verdict != "not_applicable"}
        return tuple(
            f
            for f in self.findings
            if (f.verdict == "undecided" and not f.expectation_met)
            or (f.verdict == "not_applicable" and f.expected != "any" and f.law not in applied)
        )

    @property
    def unmet(self) -> tuple[Finding, ...]:
        """Findings that are not as expected: violations, undecided ones, and with `strict` all untested ones."""
        untested = {id(f) for f in self.untested} if self.strict else set()
        return tuple(f for f in self.findings if not f.expectation_met or id(f) in untested)

    @property
    def decided(self) -> bool:
        """True if at least one law was decided."""
        return any(f.verdict not in ("undecided", "not_applicable") for f in self.findings)

    @property
    def exit_code(self) -> int:
        """0: all expectations met; 1: a violation; 3: no violation, but not checked; 130: interrupted.

        Not checked: an undecided finding, no law that was decided, or with `strict` an untested law.
        """
        if self.interrupted:
            return EXIT_INTERRUPTED
        if self.violations:
            return 1
        return 3 if self.unmet or not self.decided else 0
