"""A row of the atlas: what the audit of one tiny architecture found, or why there is nothing to find.

The rows are plain data. `make_row` never raises: what goes wrong with an architecture is a row of its own,
under one of the categories of `CATEGORIES`.
"""

from __future__ import annotations

import datetime as dt
import re
import time
from typing import Literal

import torch

from orderproof.auditing.api import examination
from orderproof.auditing.attempt import REALS
from orderproof.auditing.examine import Examination
from orderproof.auditing.steps import audit_steps, versions
from orderproof.errors import OrderproofError, SubjectError
from orderproof.laws.measured import measured_laws
from orderproof.record import Deviation, Entry, Expectation, Finding, Record, Report, Verdict
from orderproof.report import words
from orderproof.subjects import load
from orderproof.subjects.architectures import PREFIX, default_config, known_architectures
from orderproof.subjects.images import NoTokens
from orderproof.subjects.quieting import silence

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
    "no base model": "a part of another model: transformers has no model that is built from its configuration alone",
    "no token input": "it reads no row of tokens: neither text nor an image by way of one row of patches or of places",
    "not text or vision": "it reads audio, a time series or something else that is neither text nor an image",
    "not installed": "it needs a package that is not installed",
    "cannot be built": "its default configuration, or the tiny one made from it, cannot be built",
    "cannot be run": "it was built and could not be called",
    "cannot be recorded": "it runs, and its graph cannot be recorded",
    "timeout": "it took longer than the time limit",
    "memory": "it needed more memory than the limit",
    "crash": "its process ended on its own, or the audit itself failed",
}
SCHEMA = 2
LONGEST = 400  # characters of a reason
_MEMORY = re.compile(
    r"can't allocate memory|cannot allocate memory|MemoryError|bad_alloc|not enough memory|out of memory", re.IGNORECASE
)
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{4,}")
# A file of Python, or any path from the root; its end may have been cut off.
_FOLDERS = re.compile(r"(?:/[\w.+-]+)+/(?=[\w-]+\.py)|(?<![\w.)\]])(?:/[\w.+-]+){2,}/(?=[\w-])")
_UNREADABLE = (
    "takes neither inputs_embeds nor input_ids",
    "has no patch embedding",
    "the image reaches the output of",
    "has no attribute 'image_size'",
    "has no attribute 'patch_size'",
)

Key = tuple[str, str, str, str, str]


class LawRow(Record):
    """One law on one output."""

    code: str
    law: str
    setting: str = ""
    output: str
    verdict: Verdict
    expected: Expectation
    met: bool
    vacuous: bool = False
    weights: Literal["all", "these"] = "all"
    lengths: Literal["this", "every"] = "this"
    entries_complete: bool | None = None
    assumptions: tuple[str, ...] = ()
    operator: str = ""  # where the proof ended: the operator, and what it lacks
    cause: str = ""
    reason: str = ""
    witness: str = ""  # in short
    deviation: Deviation = Deviation()


class Failure(Record):
    """Why an architecture has no verdicts, or none that rest on its graph."""

    category: Category
    reason: str
    limit: float | None = None  # the limit in force: [s] for a timeout, [GiB] for memory


class Row(Record):
    """What was found of one architecture."""

    atlas: int = SCHEMA
    name: str
    attention: str  # as asked: sdpa, eager, or default: SDPA where the model has it
    orderproof: str
    torch: str
    transformers: str
    same_as: str = ""  # the name under which this very model stands in the atlas
    kind: str = ""
    detail: str = ""
    parameters: int = 0
    layers: int | None = None
    length: int | None = None
    laws: tuple[LawRow, ...] = ()  # of the first output
    others: tuple[LawRow, ...] = ()  # of the others
    entries: tuple[Entry, ...] = ()  # where order enters the first output
    operators: tuple[str, ...] = ()  # those of the recorded graph, each once
    notes: tuple[str, ...] = ()
    failed: Failure | None = None
    seconds: float = 0.0
    finished: str = ""  # date, UTC

    @property
    def key(self) -> Key:
        """What makes a row the answer to a question."""
        return (self.name, self.attention, self.orderproof, self.torch, self.transformers)

    def to_line(self) -> str:
        """One line of JSON, what is empty left out."""
        text = self.model_copy(update={"seconds": round(self.seconds, 2)}).model_dump_json(exclude_defaults=True)
        return f'{{"atlas":{self.atlas},{text[1:]}'


def blank(name: str, attention: str | None) -> Row:
    """A row with nothing but its key and today's date."""
    import transformers

    found = versions()
    return Row(
        name=name,
        attention=attention or "default",
        orderproof=found["orderproof"],
        torch=found["torch"],
        transformers=str(transformers.__version__),
        finished=dt.datetime.now(dt.UTC).date().isoformat(),
    )


def failure(row: Row, category: Category, reason: str, *, limit: float | None = None) -> Row:
    """The row of an architecture that failed."""
    return row.model_copy(update={"failed": Failure(category=category, reason=one_line(reason), limit=limit)})


def one_line(text: str) -> str:
    """A reason in one line, the same on every machine: without addresses and folders."""
    text = " ".join(words.visible(" ".join(text.split())).split())
    text = _FOLDERS.sub("", _ADDRESS.sub("0x...", text))
    return text if len(text) <= LONGEST else text[: LONGEST - 4] + " ..."


def make_row(name: str, attention: str | None) -> Row:
    """Audit one tiny architecture."""
    began = time.perf_counter()
    row = blank(name, attention)
    try:
        row = _audited(row, attention)
    except MemoryError:
        row = failure(row, "memory", "MemoryError")
    except Exception as error:  # noqa: BLE001 - the models are not ours, and one of them costs one row
        row = failure(row, "crash", f"{type(error).__name__}: {error}")
    return _short_of_memory(row).model_copy(update={"seconds": time.perf_counter() - began})


def _audited(row: Row, attention: str | None) -> Row:
    try:
        other = same_as(row.name)
        if other:
            return row.model_copy(update={"same_as": other})
        subject = load(PREFIX + row.name, tiny=True, attention=attention)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a third-party constructor: anything may come
        own = isinstance(error, OrderproofError)
        return failure(row, _why_not_loaded(error), str(error) if own else f"{type(error).__name__}: {error}")
    row = row.model_copy(
        update={
            "kind": subject.kind, "detail": subject.detail, "parameters": subject.parameters,
            "layers": subject.layers, "length": subject.length,
        }
    )  # fmt: skip
    try:
        exam = examination(subject)
        *_, report = audit_steps(exam)
    except SubjectError as error:
        return failure(row, "cannot be run", str(error))
    return _filled(row, exam, report)


def same_as(name: str) -> str:
    """The other name of the very same configuration class, where transformers lists it under its own name too."""
    with silence():
        chosen = type(default_config(name))
        other = str(getattr(chosen, "model_type", ""))
        if other == name or other not in known_architectures():
            return ""
        return other if type(default_config(other)) is chosen else ""


def _why_not_loaded(error: Exception) -> Category:
    text = str(error)
    if "transformers has no base model" in text or text.startswith("Could not find"):
        return "no base model"
    if "neither text nor images" in text:
        return "not text or vision"
    if "ImportError: " in text and "not found in your environment" in text:
        return "not installed"
    if isinstance(error, NoTokens) or any(sign in text for sign in _UNREADABLE):
        return "no token input"
    if "the model could not be called" in text or "the model returned none of" in text:
        return "cannot be run"
    if isinstance(error, OrderproofError):
        return "cannot be built"
    return "cannot be run"  # it was built, and the first look at it raised


def _filled(row: Row, exam: Examination, report: Report) -> Row:
    output = next((f.output for f in report.findings if f.output), "")
    behaviour = {law.name for law in measured_laws()}  # of the output that the driver compares, which is the first
    main = [f for f in report.findings if f.output in (output, "") or f.law in behaviour]
    blind = next((f for f in main if f.law == "order_blind"), None)
    filled = row.model_copy(
        update={
            "length": exam.length if exam.failure is not None else exam.tokens,
            "laws": tuple(law_row(f) for f in main),
            "others": tuple(law_row(f) for f in report.findings if f not in main),
            "entries": tuple(e.model_copy(update={"text": ""}) for e in blind.entries) if blind else (),
            "operators": tuple(sorted(operators(exam))) if exam.failure is None else (),
            "notes": tuple(one_line(n) for n in report.notes if n != exam.failure),
        }
    )
    return filled if exam.failure is None else failure(filled, "cannot be recorded", exam.failure)


def operators(exam: Examination) -> set[str]:
    """The operators of a recorded graph, by name."""
    called = (n.target for n in exam.captured.graph.nodes if n.op == "call_function")
    return {str(target) for target in called if isinstance(target, torch._ops.OperatorBase)}


def law_row(finding: Finding) -> LawRow:
    """A finding, in short."""
    entry = finding.entries[0] if finding.entries else None
    ended = entry if entry is not None and finding.reason.startswith(entry.operator) else None
    seen = finding.witness
    where = f", first seen in {seen.module}" if seen and seen.module else ""
    return LawRow(
        code=finding.code, law=finding.law, setting=finding.setting, output=finding.output, verdict=finding.verdict,
        expected=finding.expected, met=finding.met, vacuous=finding.vacuous, weights=finding.scope.weights,
        lengths=finding.scope.lengths, entries_complete=finding.entries_complete,
        assumptions=tuple(text for text in finding.scope.assumptions if not text.startswith(REALS.split(",")[0])),
        operator=ended.operator if ended else "", cause=one_line(ended.reason) if ended else "",
        reason=one_line(finding.reason), deviation=finding.deviation,
        witness=f"{seen.change}: differs by {words.size(seen.difference)}{where}" if seen else "",
    )  # fmt: skip


def _short_of_memory(row: Row) -> Row:
    """A row whose reasons speak of memory says so, and says nothing else: its verdicts are those of a lame run."""
    reasons = [row.failed.reason] if row.failed else [each.reason for each in (*row.laws, *row.others)]
    short = next((text for text in reasons if _MEMORY.search(text)), None)
    if short is None or (row.failed and row.failed.category == "memory"):
        return row
    return failure(row.model_copy(update={"laws": (), "others": (), "entries": (), "notes": ()}), "memory", short)
