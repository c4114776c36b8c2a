"""A row of the atlas: the findings of the audit of one tiny architecture, or why the audit failed.

Rows are plain data. `make_row` never raises: a failure is recorded in the row, with a category and the error text.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Literal

import torch

from orderproof.auditing.api import audit_context
from orderproof.auditing.decide.sandbox import LAW_TIMEOUT
from orderproof.auditing.record.context import AuditContext
from orderproof.auditing.run import run_audit
from orderproof.errors import OrderproofError, SubjectError
from orderproof.laws import entry_map_law, measured_laws
from orderproof.library_messages import suppress_warnings
from orderproof.models import load
from orderproof.models.hf.architectures import default_config, known_architectures
from orderproof.models.input_spec import NoTokenInputError
from orderproof.records.audit import (
    RECORDED_CALL_ASSUMPTION,
    Deviation,
    Entry,
    Expectation,
    Finding,
    Kind,
    Outcome,
    Report,
    Verdict,
)
from orderproof.records.document import Record, versions
from orderproof.report import phrases
from orderproof.subject_spec import ARCH_PREFIX
from orderproof.time_limit import TimeAllowed

Category = Literal[
    "no base model",
    "no token input",
    "not text or vision",
    "not installed",
    "cannot be built",
    "cannot be run",
    "cannot be recorded",
    "timeout",
    "memory",
    "crash",
]
CATEGORIES: dict[Category, str] = {
    "no base model": "part of another model: transformers has no model class for its configuration alone",
    "no token input": "no input was found that the laws speak of: neither text, nor an image that is split into one "
    "row of patches, nor audio in a shape that the model takes",
    "not text or vision": "the input is none of text, an image, a waveform or a spectrogram",
    "not installed": "a required package is not installed",
    "cannot be built": "the default configuration, or its tiny version, cannot be built",
    "cannot be run": "the model was built, and calling it failed",
    "cannot be recorded": "the model runs, and its graph cannot be recorded",
    "timeout": "the audit exceeded the time limit",
    "memory": "the audit exceeded the memory limit",
    "crash": "the process died, or the audit itself failed",
}
SCHEMA_VERSION: Literal[4] = 4
MAX_REASON_CHARS = 400
_MEMORY = re.compile(
    r"can't allocate memory|cannot allocate memory|MemoryError|bad_alloc|not enough memory|out of memory", re.IGNORECASE
)
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{4,}")
# The folders of a Python file, or of any absolute path; the end of the path may be truncated.
_FOLDERS = re.compile(r"(?:/[\w.+-]+)+/(?=[\w-]+\.py)|(?<![\w.)\]])(?:/[\w.+-]+){2,}/(?=[\w-])")
_NO_TOKEN_INPUT_MESSAGES = (
    "takes neither inputs_embeds nor input_ids",
    "has no patch embedding",
    "the image reaches the output of",
    "has no attribute 'image_size'",
    "has no attribute 'patch_size'",
)

Key = tuple[str, str, str, str, str]


class LawResult(Record):
    """One law on one output."""

    code: str
    law: str
    call_mode: str = ""
    output: str
    kind: Kind = "check"
    outcome: Outcome
    verdict: Verdict
    expected: Expectation
    expectation_met: bool
    vacuous: bool = False
    weights: Literal["all", "these"] = "all"
    lengths: Literal["this", "every"] = "this"
    theorem: Literal["yes", "no", ""] = ""  # proved for every length; empty if not proved, or in rows without it
    theorem_reason: str = ""  # why it is not proved for every length
    entries_complete: bool | None = None
    assumptions: tuple[str, ...] = ()
    stopped_at_operator: str = ""  # the operator at which the proof stopped
    stop_reason: str = ""  # the premise that was not established there
    reason: str = ""
    witness: str = ""  # one line: the change of the inputs, the difference, the first violating module
    deviation: Deviation = Deviation()


class AuditFailure(Record):
    """Why an architecture has no findings, or none from its recorded graph."""

    category: Category
    reason: str  # the error text, at most `MAX_REASON_CHARS`
    limit: float | None = None  # the limit that was exceeded: [s] for a timeout, [GiB] for memory


class AtlasRow(Record):
    """The audit of one architecture."""

    atlas: int = SCHEMA_VERSION
    name: str
    attention_backend: str  # as requested: sdpa, eager, or default: SDPA if the model supports it
    orderproof: str
    torch: str
    transformers: str
    alias_of: str = ""  # another name of the same configuration class, whose row holds the findings
    model_kind: str = ""
    load_summary: str = ""
    parameters: int = 0
    layers: int | None = None
    length: int | None = None
    laws: tuple[LawResult, ...] = ()  # on the first output
    other_output_laws: tuple[LawResult, ...] = ()  # on the other outputs
    entries: tuple[Entry, ...] = ()  # where order enters the first output
    operators: tuple[str, ...] = ()  # of the recorded graph, each once
    notes: tuple[str, ...] = ()
    failure: AuditFailure | None = None
    processor_seconds: float = 0.0  # [s] user and system time of the worker and its children
    finished_on: str = ""  # date, UTC

    @property
    def key(self) -> Key:
        """Name, attention backend and versions: a run with the same key reuses the row."""
        return (self.name, self.attention_backend, self.orderproof, self.torch, self.transformers)

    def to_json(self) -> str:
        """One line of JSON without default values."""
        return self.model_dump_json(exclude_defaults=True)

    def to_line(self) -> str:
        """The JSON with the schema version, for the store."""
        return f'{{"atlas":{self.atlas},{self.to_json()[1:]}'


def empty_row(name: str, attention: str | None) -> AtlasRow:
    """A row with nothing but its key and today's date."""
    import transformers

    installed = versions()
    return AtlasRow(
        name=name,
        attention_backend=attention or "default",
        orderproof=installed["orderproof"],
        torch=installed["torch"],
        transformers=str(transformers.__version__),
        finished_on=dt.datetime.now(dt.UTC).date().isoformat(),
    )


def with_failure(row: AtlasRow, category: Category, reason: str, *, limit: float | None = None) -> AtlasRow:
    """The row of an architecture that failed."""
    return row.model_copy(update={"failure": AuditFailure(category=category, reason=one_line(reason), limit=limit)})


def one_line(text: str) -> str:
    """The text in one line, without memory addresses and folders, so that it is the same on every machine."""
    text = " ".join(phrases.escape_control_characters(" ".join(text.split())).split())
    text = _FOLDERS.sub("", _ADDRESS.sub("0x...", text))
    return text if len(text) <= MAX_REASON_CHARS else text[: MAX_REASON_CHARS - 4] + " ..."


def make_row(name: str, attention: str | None, law_seconds: float = LAW_TIMEOUT) -> AtlasRow:
    """Audit one tiny architecture; `law_seconds` is the time limit of each law [s]."""
    row = empty_row(name, attention)
    try:
        row = _audited(row, attention, law_seconds)
    except MemoryError:
        row = with_failure(row, "memory", "MemoryError")
    except Exception as error:  # noqa: BLE001 - a third-party model may raise anything; the run continues
        row = with_failure(row, "crash", f"{type(error).__name__}: {error}")
    return _as_memory_failure(row)


def _audited(row: AtlasRow, attention: str | None, law_seconds: float) -> AtlasRow:
    try:
        other = alias_of(row.name)
        if other:
            return row.model_copy(update={"alias_of": other})
        subject = load(ARCH_PREFIX + row.name, tiny=True, attention=attention)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a third-party constructor may raise anything
        own = isinstance(error, OrderproofError)
        return with_failure(
            row, _load_failure_category(error), str(error) if own else f"{type(error).__name__}: {error}"
        )
    row = row.model_copy(
        update={
            "model_kind": subject.model_kind, "load_summary": subject.load_summary,
            "parameters": subject.parameter_count, "layers": subject.layer_count, "length": subject.default_length,
        }
    )  # fmt: skip
    try:
        context = audit_context(subject)
        # A variant is measured; the proofs, which take half of the time, are of the default configuration.
        chosen = None if "?" not in row.name else [law.name for law in measured_laws()]
        *_, report = run_audit(context, chosen=chosen, allowed=TimeAllowed(law_seconds))
    except SubjectError as error:
        return with_failure(row, "cannot be run", str(error))
    row = _with_findings(row, context, report)
    return row if chosen else _with_recording(row, context)


def alias_of(name: str) -> str:
    """Another name of the same configuration class, if transformers lists it under both; else empty."""
    if "?" in name:
        return ""
    with suppress_warnings():
        config_class = type(default_config(name))
        other = str(getattr(config_class, "model_type", ""))
        if other == name or other not in known_architectures():
            return ""
        return other if type(default_config(other)) is config_class else ""


def _load_failure_category(error: Exception) -> Category:
    """A category guessed from the error text; the row keeps the text itself."""
    text = str(error)
    if "transformers has no base model" in text or text.startswith("Could not find"):
        return "no base model"
    if "neither text nor images" in text:
        return "not text or vision"
    if "ImportError: " in text and "not found in your environment" in text:
        return "not installed"
    if isinstance(error, NoTokenInputError) or any(sign in text for sign in _NO_TOKEN_INPUT_MESSAGES):
        return "no token input"
    if "the model could not be called" in text or "the model returned none of" in text:
        return "cannot be run"
    if isinstance(error, OrderproofError):
        return "cannot be built"
    return "cannot be run"  # it was built, and its first call raised


def _with_findings(row: AtlasRow, context: AuditContext, report: Report) -> AtlasRow:
    output = next((f.output for f in report.findings if f.output), "")
    measured = {law.name for law in measured_laws()}  # always on the first output: the one that the adapter compares
    main = [f for f in report.findings if f.output in (output, "") or f.law in measured]
    mapped = next((f for f in main if f.law == entry_map_law().name), None)
    return row.model_copy(
        update={
            "length": context.length,
            "laws": tuple(summarize_finding(f) for f in main),
            "other_output_laws": tuple(summarize_finding(f) for f in report.findings if f not in main),
            "entries": tuple(e.model_copy(update={"source_line": ""}) for e in mapped.entries) if mapped else (),
            "notes": tuple(one_line(n) for n in report.notes),
        }
    )


def _with_recording(row: AtlasRow, context: AuditContext) -> AtlasRow:
    """The row with the operators of the recorded graph, or with the reason why it could not be recorded."""
    failure = context.export_failure
    if failure is None:
        return row.model_copy(update={"length": context.token_count, "operators": tuple(sorted(operators(context)))})
    notes = tuple(note for note in row.notes if note != one_line(failure))
    return with_failure(row.model_copy(update={"notes": notes}), "cannot be recorded", failure)


def operators(context: AuditContext) -> set[str]:
    """The names of the operators of the recorded graph."""
    targets = (n.target for n in context.captured.graph.nodes if n.op == "call_function")
    return {str(target) for target in targets if isinstance(target, torch._ops.OperatorBase)}


def summarize_finding(finding: Finding) -> LawResult:
    """A finding as it is stored in the atlas."""
    entry = finding.entries[0] if finding.entries else None
    stop = entry if entry is not None and finding.reason.startswith(entry.operator) else None
    witness = finding.witness
    shown = ""
    if witness is not None:
        shown = f"{witness.change}: differs by {phrases.format_difference(witness.relative_difference)}"
        shown += f", first seen in {witness.first_violating_module}" if witness.first_violating_module else ""
    stated_on_page = RECORDED_CALL_ASSUMPTION.split(",")[0]  # an assumption of every proof
    return LawResult(
        code=finding.code, law=finding.law, call_mode=finding.call_mode, output=finding.output, kind=finding.kind,
        outcome=finding.outcome, verdict=finding.verdict, expected=finding.expected,
        expectation_met=finding.expectation_met, vacuous=finding.vacuous, weights=finding.scope.weights,
        lengths=finding.scope.lengths, theorem=_theorem(finding),
        theorem_reason=one_line(finding.theorem.reason) if finding.theorem else "",
        entries_complete=finding.entries_complete,
        assumptions=tuple(text for text in finding.scope.assumptions if not text.startswith(stated_on_page)),
        stopped_at_operator=stop.operator if stop else "", stop_reason=one_line(stop.reason) if stop else "",
        reason=one_line(finding.reason), deviation=finding.deviation, witness=shown,
    )  # fmt: skip


def _theorem(finding: Finding) -> Literal["yes", "no", ""]:
    """Yes, if the law is proved for every length from the least to the greatest that the theorem names."""
    if finding.theorem is None:
        return ""
    return "yes" if finding.theorem.proved else "no"


def _as_memory_failure(row: AtlasRow) -> AtlasRow:
    """A row with an out-of-memory error in a reason becomes a memory failure; its findings are not reliable."""
    reasons = [row.failure.reason] if row.failure else [each.reason for each in (*row.laws, *row.other_output_laws)]
    out_of_memory = next((text for text in reasons if _MEMORY.search(text)), None)
    if out_of_memory is None or (row.failure and row.failure.category == "memory"):
        return row
    return with_failure(
        row.model_copy(update={"laws": (), "other_output_laws": (), "entries": (), "notes": ()}),
        "memory",
        out_of_memory,
    )
