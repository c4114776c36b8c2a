"""Write a script that shows a violation without this package, and the text of an issue about it."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from orderproof.auditing.decide.sandbox import DECODER_PART
from orderproof.errors import OrderproofError, ReproductionError, UsageError, first_line
from orderproof.laws import find_law
from orderproof.library_messages import suppress_warnings
from orderproof.models import Subject
from orderproof.models.hf.decoder_adapter import base_model_class, has_text_decoder
from orderproof.records.audit import Finding, Report
from orderproof.reproduction.call_code import CallWriter, needed_events, rows_alone
from orderproof.reproduction.issue import issue_text
from orderproof.reproduction.model_code import ModelCode, from_config, from_folder
from orderproof.reproduction.script import MAX_LINES, script_text, threshold
from orderproof.reproduction.violations import ShownViolation, inner_model, violations
from orderproof.subject_spec import check_spec

NOISE_LEVELS = (0.0, 0.1, 0.3)  # of the weights: without it, some defects are hidden behind zeros and ones


@dataclass(frozen=True)
class Reproduction:
    """A violation that was found again: the script that shows it, and the text of an issue."""

    finding: Finding
    script: str
    issue: str


def with_scripts(subject: Subject, report: Report) -> Report:
    """The report with a script for each failed check that one can be written for."""
    return report.model_copy(update={"findings": tuple(_with_script(subject, finding) for finding in report.findings)})


def _with_script(subject: Subject, finding: Finding) -> Finding:
    if finding.outcome != "fail" or finding.verdict != "refuted":
        return finding
    try:
        return finding.model_copy(update={"script": reproduce(subject, finding).script})
    except OrderproofError:
        return finding


def reproduce(subject: Subject, finding: Finding) -> Reproduction:
    """The script and the issue of a refuted check. Raises `UsageError`, `ReproductionError`."""
    if finding.verdict != "refuted":
        raise UsageError(f"expected a refuted law; {finding.code} {finding.law} is {finding.verdict}")
    law = find_law(finding.law)
    failures: list[str] = []
    with suppress_warnings():
        for noise in NOISE_LEVELS:
            try:
                code = _model_code(subject, finding, noise)
                candidates = list(violations(code, subject, finding, law))
            except ReproductionError as error:
                failures.append(str(error))
                continue
            for shown in candidates:
                try:
                    script = _script(code, shown, f"{subject.name}: {finding.law} ({finding.code}), {shown.what}")
                except ReproductionError as error:
                    failures.append(str(error))
                    continue
                return Reproduction(finding, script, issue_text(finding, subject, script))
    reasons = "; ".join(dict.fromkeys(failures)) or "the violation was not found again with other weights"
    raise ReproductionError(f"no script for {finding.code} {finding.law}: {reasons}")


def _script(code: ModelCode, shown: ShownViolation, title: str) -> str:
    """The script; with the row of each vector alone, and with fewer values, if that shows the violation too."""
    wanted = [shown.expected.call, shown.actual.call]
    events = list(shown.recorder.events) if shown.every_call else needed_events(shown.recorder.events, wanted)
    places = {"expected": shown.expected, "actual": shown.actual}
    failures: list[str] = []
    for single_rows in (True, False):
        try:
            chosen, results = rows_alone(events, places) if single_rows else (events, places)
            writer = CallWriter(shown.recorder, chosen, results)
            lines = writer.lines()
            inputs = [*writer.model_lines, *writer.variables.lines]
            limit = threshold(exact=shown.every_call)
            write = partial(script_text, title, inputs=inputs, calls=lines, limit=limit, must_differ=shown.must_differ)
            return _shortest(code, write)
        except ReproductionError as error:
            failures.append(str(error))
    raise ReproductionError("; ".join(dict.fromkeys(failures)))


def _shortest(code: ModelCode, write: Callable[[ModelCode], str]) -> str:
    """The script with as few values of the configuration as show the violation. Raises `ReproductionError`."""
    check_outcome(write(code))
    while True:
        for shorter in code.fewer():
            if run_script(write(shorter)) == 1:
                code = shorter
                break
        else:
            break
    script = write(code)
    count = sum(bool(line.strip()) for line in script.splitlines())
    if count > MAX_LINES:
        raise ReproductionError(f"the script has {count} lines, more than {MAX_LINES}")
    return script


def check_outcome(script: str) -> None:
    """Raise `ReproductionError` for a script that was run and does not show the violation."""
    if (outcome := run_script(script)) != 1:
        raise ReproductionError(f"the script was run and does not show it ({outcome})")


def run_script(script: str) -> int | str:
    """The exit code of a script, run in this process, or its error."""
    with contextlib.redirect_stdout(io.StringIO()), suppress_warnings(), torch.random.fork_rng(devices=[]):
        try:
            exec(compile(script, "script", "exec"), {"__name__": "__main__"})
        except SystemExit as stop:
            return int(stop.code or 0)
        except Exception as error:  # noqa: BLE001 - third-party code: anything may come
            return first_line(error)
    return 0


# ---------------------------------------------------------------- the model of the script


def _model_code(subject: Subject, finding: Finding, noise: float) -> ModelCode:
    model, whole = inner_model(subject.module), subject.original_config
    if model is None and whole is None:
        raise ReproductionError("scripts are written for models of transformers only")
    if _form(subject.name) in ("folder", "hub"):
        if noise:
            raise ReproductionError("its own weights do not show it in a script")
        return from_folder(subject.name, type(model))
    config = whole if model is None else model.config
    kind: Any = type(model)
    if model is None or (whole is not None and (finding.call_mode == DECODER_PART or has_text_decoder(whole))):
        kind = base_model_class(whole)
        if kind is None:
            raise ReproductionError("transformers has no base model for this configuration")
    return from_config(whole or config, kind, attention=config._attn_implementation, noise=noise)


def _form(name: str) -> str:
    with contextlib.suppress(OrderproofError):
        return check_spec(name)
    return ""
