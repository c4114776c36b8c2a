"""Plain results: what an audit found, as data that prints, compares and serialises.

Nothing here computes and nothing here imports torch. The JSON of a `Report` is the one source
every renderer reads (schema version 1).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Verdict = Literal["proved", "refuted", "undecided", "held", "not_applicable"]
Expectation = Literal["holds", "fails", "any"]
SCHEMA = 1
INTERRUPTED = 130


class Record(BaseModel):
    """A frozen value with a strict schema."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Scope(Record):
    """What a verdict covers: the exported length, the weights, the values used and the assumptions."""

    length: int
    lengths: Literal["this", "every"] = "this"  # whether the proof is the same at every length the model takes
    weights: Literal["all", "these"] = "all"
    consulted: tuple[str, ...] = ()  # parameters and buffers whose values the proof used
    assumptions: tuple[str, ...] = ()


class Remedy(Record):
    """What to do about a violation: in words, and where it is mechanical as lines of code, - before and + after."""

    text: str
    diff: str = ""


class Entry(Record):
    """A place where order enters (permutation laws) or leaks (influence laws)."""

    kind: Literal["constant", "operator"]
    operator: str  # aten.add.Tensor
    sites: int = 1  # how many nodes this entry stands for
    module: str = ""  # dotted module path; * stands for a layer number when sites are folded
    source: str = ""  # modeling_bert.py:104
    text: str = ""  # the source line itself
    origin: str = ""  # what the constant, or the mask, comes from: a parameter, a buffer, arange ...
    made_at: str = ""  # the line that made it, where the model's own code did: modeling_bert.py:88
    made_in: str = ""  # the module in which it did
    reason: str = ""


class Step(Record):
    """One line of a proof: this operator, by this lemma, gives this fact."""

    node: str
    operator: str
    lemma: str
    fact: str
    module: str = ""
    source: str = ""


class Proof(Record):
    """A proof, as counts and as lines."""

    steps: int
    distinct: int = 0  # of them, those that do not repeat another: identical layers are interpreted once
    lemmas: dict[str, int]  # lemma -> how often it was used
    lines: tuple[Step, ...] = ()
    fingerprint: str = ""  # of the graph it is about


class Deviation(Record):
    """The largest relative difference seen between the two sides of a law, run in two precisions."""

    float32: float | None = None
    float64: float | None = None


class Witness(Record):
    """The smallest pair of runs found whose outputs break the law."""

    before: tuple[str, ...]  # tokens of the first run, as text (or as x0, x1 ... for random vectors)
    after: tuple[str, ...]  # tokens of the second run
    change: str  # what was done: "swap tokens 0 and 1", "replace tokens from 4 on"
    permutation: tuple[int, ...] | None = None
    output_index: tuple[int, ...] = ()  # where the outputs differ most
    expected: float | None = None  # the value the law asks for there
    found: float | None = None  # the value that came
    difference: float  # largest relative difference, float64 when it could be run
    module: str = ""  # the earliest module whose output already breaks the law
    weights: Literal["given", "random"] = "given"  # whether the weights had to be drawn anew to show it
    seed: int = 0


class TrialRecord(Record):
    """One comparison of a measured law: two ways of working out the same numbers."""

    what: str  # "one token at a time"
    float32: float | None = None  # relative difference; None where the comparison could not be made
    float64: float | None = None  # the same in float64, where float32 left a doubt
    verdict: Literal["held", "refuted", "undecided", "not_applicable"] = "undecided"  # of this comparison alone
    reason: str = ""  # why it could not be made, or what is in doubt


class Measurement(Record):
    """How a measured law was measured."""

    tolerance: float  # relative; what the model's own noise allows
    signal: float | None = None  # how far the control moved the output: a measurement that nothing moves is none
    trials: tuple[TrialRecord, ...] = ()


class Completion(Record):
    """The same graph with the constants of the entry map made uniform: the model without order."""

    verdict: Verdict
    uniform: int  # how many operands were made uniform
    scope: Scope
    proof: Proof | None = None
    deviation: Deviation = Deviation()
    reason: str = ""


class Finding(Record):
    """One law, one output of one subject: the verdict and everything that supports it."""

    code: str
    law: str
    statement: str = ""  # the law in one sentence
    verdict: Verdict
    expected: Expectation = "any"
    met: bool = True
    scope: Scope
    entries_complete: bool | None = None
    vacuous: bool = False
    output: str = ""
    setting: str = ""  # how the model was called: "" with tokens alone, or padded, packed, blocked, labelled; decoder
    entries: tuple[Entry, ...] = ()
    witness: Witness | None = None
    deviation: Deviation = Deviation()
    proof: Proof | None = None
    completion: Completion | None = None
    measurement: Measurement | None = None  # of a measured law
    fix: str = ""  # what to do about a violation
    diff: str = ""  # the same as lines of code, - before and + after, where it is mechanical
    reason: str = ""
    seconds: float = 0.0


class SubjectRecord(Record):
    """What was audited."""

    name: str
    kind: str
    parameters: int
    layers: int | None = None
    detail: str = ""  # attention backend, device, where it came from


class SwapRow(Record):
    """One row of the swap demonstration: distance of the two sentences under one condition."""

    condition: str  # "with positions" | "without positions"
    dtype: str
    cosine: float
    largest_difference: float


class Swap(Record):
    """Two sentences with the same words in another order, and how far apart the model puts them."""

    first: str
    second: str
    tokens_first: tuple[str, ...]
    tokens_second: tuple[str, ...]
    rows: tuple[SwapRow, ...]


class HeatMap(Record):
    """Attention of one head, for the report's picture: rows are queries, columns are keys."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]


class Report(Record):
    """Everything one audit found."""

    schema_version: int = Field(default=SCHEMA, alias="schema", serialization_alias="schema")
    orderproof: str
    subject: SubjectRecord
    findings: tuple[Finding, ...]
    swap: Swap | None = None
    heat_maps: tuple[HeatMap, ...] = ()
    lemmas: dict[str, str] = {}  # lemma -> what it says, in one sentence; for the lemmas the proofs used
    notes: tuple[str, ...] = ()
    interrupted: bool = False  # whether it was stopped before every law was asked about
    versions: dict[str, str] = {}
    seconds: float = 0.0

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    def to_json(self, *, indent: int | None = 2) -> str:
        """The report as JSON, schema version 1."""
        return self.model_dump_json(by_alias=True, indent=indent)

    def _repr_html_(self) -> str:
        """The report as a notebook shows it: its page, in a frame."""
        # A notebook asks the value itself what it looks like; nothing else of a record knows of its renderers.
        framed: Callable[[Report], str] = importlib.import_module("orderproof.report.notebook").framed
        return framed(self)

    @classmethod
    def from_json(cls, text: str) -> Report:
        """Read a report back from its JSON."""
        return cls.model_validate_json(text)

    @property
    def violations(self) -> tuple[Finding, ...]:
        """Findings that are decided and are not what was expected."""
        return tuple(f for f in self.findings if not f.met and f.verdict != "undecided")

    @property
    def undecided(self) -> tuple[Finding, ...]:
        """Findings that should have been decided and were not."""
        return tuple(f for f in self.findings if not f.met and f.verdict == "undecided")

    @property
    def exit_code(self) -> int:
        """0 every expectation met; 1 a violation; 3 nothing violated, but something undecided; 130 interrupted."""
        if self.interrupted:
            return INTERRUPTED
        return 1 if self.violations else 3 if self.undecided else 0
