"""Reports that a later audit uses again: kept ones of configured subjects, and those that an audit goes on with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orderproof.configuration.basis import changes, options_text
from orderproof.configuration.kept_reports import KeptReports
from orderproof.errors import UsageError
from orderproof.records.audit import Report
from orderproof.report.json_input import read_report

SUBJECT_NAME = "orderproof.subject"  # the key of a context for the name of the subject in the configuration
_OF_NO_RESULT = frozenset(
    {
        "json",
        "junit",
        "sarif",
        "markdown",
        "certificate",
        "strict",
        "details",
        "quiet",
        "jobs",
        "no_cache",
        "watch",
        "baseline",
        "write_baseline",
        "budget",
        "resume",
    }
)
_OF_OTHER_LAWS = frozenset({"html", "timeout"})  # they change no law that is decided


@dataclass(frozen=True)
class Determined:
    """The options that determine a report, and the files and folders that the subject names itself."""

    options: Mapping[str, Any]
    stated: tuple[Path, ...] = ()

    @classmethod
    def of(cls, ctx: Any, folder: Path) -> Determined:
        """That of a command whose subject is named from this folder."""
        options = {key: value for key, value in ctx.params.items() if key not in _OF_NO_RESULT}
        options["html"] = ctx.params["html"] is not None  # a page has scripts
        return cls(options, () if ctx.params["subject"] is None else _stated(folder / ctx.params["subject"]))

    @property
    def of_each_law(self) -> dict[str, str]:
        """The options that determine what is decided of a law."""
        return options_text({key: value for key, value in self.options.items() if key not in _OF_OTHER_LAWS})


def with_accepted_left(report: Report, as_found: Report) -> Report:
    """The report; an audit that goes on with it decides again what a baseline accepted, which may change."""
    accepted = [f.law for f, found in zip(report.findings, as_found.findings, strict=True) if f != found]
    return report if report.basis is None else report.model_copy(update={"left": (*report.left, *accepted)})


def report_before(file: Path | None, determined: Determined) -> Report | None:
    """The report with which an audit goes on. Raises `UsageError` if it is of something else, or complete."""
    if file is None:
        return None
    report = read_report(file)
    if not report.left:
        raise UsageError(
            f"{file}: expected a report with laws that are left; every law of it is done; leave --resume out"
        )
    if report.basis is None:
        raise UsageError(f"{file}: expected a report that says what it was made from; audit again without --resume")
    for change in changes(report.basis, determined.of_each_law):
        raise UsageError(f"{file}: expected a report of the same audit; {change}; audit again without --resume")
    return report


def kept_reports(ctx: Any, folder: Path) -> KeptReports | None:
    """Those of the subject in this folder that a context names; None where an audit must be made.

    Certificates need the recording, and engines run in processes whose files are not followed.
    """
    options, name = ctx.params, ctx.meta.get(SUBJECT_NAME)
    if name is None or options["no_cache"] or options["certificate"] is not None or options["against"]:
        return None
    return KeptReports(folder, name, Determined.of(ctx, folder).options)


def _stated(place: Path) -> tuple[Path, ...]:
    """A checkpoint folder, or an ONNX file and those next to it that share its name."""
    if place.is_dir():
        return (place,)
    return tuple(place.parent.glob(f"{place.stem}*")) if place.is_file() else ()


def finished(report: Report, ctx: Any, *, interrupted: bool = False) -> Report:
    """The report as it is shown: under the name of its subject in the configuration."""
    named = report.subject.model_copy(update={"name": ctx.meta.get(SUBJECT_NAME, report.subject.name)})
    return report.model_copy(update={"subject": named, "interrupted": interrupted, "strict": ctx.params["strict"]})
