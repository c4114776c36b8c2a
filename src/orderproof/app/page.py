"""The page as one file: its modules, its style, and the report and the study it shows, all inside it.

The policy in its head lets its one script and its one style run, by their SHA-256, and nothing else: no other script,
no markup made of strings, no request, except of the page that a server gives, which may ask that server.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from orderproof import __version__
from orderproof.app.bundle import bundle
from orderproof.app.study import Study
from orderproof.claim_record import ClaimsRecord
from orderproof.errors import UsageError
from orderproof.record import Report
from orderproof.report import destination
from orderproof.report.colour import ramp_css
from orderproof.report.html import embedded

STATIC = Path(__file__).with_name("static")
LIMIT = 1_000_000  # [bytes] of a page
_NONE = "null"


def write_page(target: str | Path, *, report: Report | None = None, study: Study | None = None) -> None:
    """Write the page to a file in one step, or to standard output when the target is ``-``. Raises `UsageError`."""
    destination.write(page(report=report, study=study), target)


def page(*, report: Report | None = None, study: Study | None = None, live: bool = False) -> str:
    """The page as text, at most 1 MB; ``live`` where a server stands behind it. Raises `UsageError`."""
    script, style = _script(), _style()
    text = _template().render(
        script=script, style=style, policy=_policy(script, style, live=live), version=__version__, live=live,
        report=_NONE if report is None else _fitting(report),
        claims=_claims().claims,
        study=_NONE if study is None else _safe(study.model_dump(mode="json", by_alias=True)),
    )  # fmt: skip
    if len(text.encode()) > LIMIT:
        raise UsageError(
            f"the page would be {len(text.encode()):,} bytes, expected at most {LIMIT:,}; "
            "write it without --study and load the study in panel 7"
        )
    return text


def _fitting(report: Report) -> str:
    text = embedded(report)
    if text == _NONE:
        raise UsageError(
            f"the report of {report.subject.name!r} is too large for a page; "
            "write it without --report and load the report in panel 6"
        )
    return text


def _safe(data: dict[str, Any]) -> str:
    """JSON that can stand in a script element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _policy(script: str, style: str, *, live: bool) -> str:
    return "; ".join((
        "default-src 'none'",
        f"script-src '{_digest(script)}'",
        f"style-src '{_digest(style)}'",
        "img-src data:",  # the empty icon, so that no browser asks for one
        f"connect-src {chr(39)}{'self' if live else 'none'}{chr(39)}",
        "base-uri 'none'",
        "form-action 'none'",
        "require-trusted-types-for 'script'",
    ))  # fmt: skip


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _script() -> str:
    modules = {file.stem: file.read_text(encoding="utf-8") for file in sorted(STATIC.glob("*.js"))}
    return bundle(modules, "main")


@cache
def _claims() -> ClaimsRecord:
    """What `orderproof claims` found when the page was made."""
    return ClaimsRecord.from_json((STATIC / "claims.json").read_text(encoding="utf-8"))


@cache
def _style() -> str:
    report = (STATIC.parent.parent / "report" / "style.css").read_text(encoding="utf-8")
    return report + ramp_css() + (STATIC / "page.css").read_text(encoding="utf-8")


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True,
        keep_trailing_newline=True,
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.from_string((STATIC / "page.html").read_text(encoding="utf-8"))
