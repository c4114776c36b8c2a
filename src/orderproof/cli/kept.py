"""The kept reports of configured subjects, and what the options add to a report that may be kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from orderproof.configuration.kept_reports import KeptReports
from orderproof.records.audit import Report

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
        "baseline",
        "write_baseline",
    }
)


def kept_reports(ctx: Any, folder: Path) -> KeptReports | None:
    """Those of the subject in this folder that a context names; None where an audit must be made.

    Certificates need the recording, and engines run in processes whose files are not followed.
    """
    options, name = ctx.params, ctx.meta.get(SUBJECT_NAME)
    if name is None or options["no_cache"] or options["certificate"] is not None or options["against"]:
        return None
    determining = {key: value for key, value in options.items() if key not in _OF_NO_RESULT}
    determining["html"] = options["html"] is not None  # a page has scripts
    place = folder / options["subject"]
    return KeptReports(folder, name, determining, _stated(place))


def _stated(place: Path) -> tuple[Path, ...]:
    """A checkpoint folder, or an ONNX file and those next to it that share its name."""
    if place.is_dir():
        return (place,)
    return tuple(place.parent.glob(f"{place.stem}*")) if place.is_file() else ()


def finished(report: Report, ctx: Any, *, interrupted: bool = False) -> Report:
    """The report as it is shown: under the name of its subject in the configuration."""
    named = report.subject.model_copy(update={"name": ctx.meta.get(SUBJECT_NAME, report.subject.name)})
    return report.model_copy(update={"subject": named, "interrupted": interrupted, "strict": ctx.params["strict"]})
