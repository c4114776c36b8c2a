"""The page as one file that contains its modules, its style, and the report and the study that it shows.

The content security policy in its head allows one script and one style, by their SHA-256: no other script, no markup
from strings, and no request, except that a page from the local server may send requests to that server.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from orderproof._version import __version__
from orderproof.errors import UsageError
from orderproof.explain.js_bundle import bundle_modules
from orderproof.explain.study_input import PageStudy
from orderproof.records.audit import Report
from orderproof.records.claims import ClaimsReport
from orderproof.report import file_output
from orderproof.report.colour_ramp import ramp_css
from orderproof.report.html_page import embedded_json, read_asset
from orderproof.report.json_output import script_safe_json

STATIC = Path(__file__).with_name("static")
PAGE_LIMIT_BYTES = 1_000_000  # [bytes] of a page
_NULL_JSON = "null"


def write_page(target: str | Path, *, report: Report | None = None, study: PageStudy | None = None) -> None:
    """Write the page to a file in one step, or to standard output when the target is ``-``. Raises `UsageError`."""
    file_output.write_file(render_page(report=report, study=study), target)


def render_page(*, report: Report | None = None, study: PageStudy | None = None, live: bool = False) -> str:
    """The page as text of at most 1 MB; ``live`` for a page that a server delivers. Raises `UsageError`."""
    script, style = _script(), _style()
    text = _template().render(
        script=script, style=style, policy=_content_security_policy(script, style, live=live), version=__version__,
        live=live,
        report=_NULL_JSON if report is None else _embedded_report(report),
        claims=_claims().claims,
        trained=trained_model(),
        shown=script_safe_json({key: trained_model()[key] for key in ("pairs", "heads", "texts")}),
        next_token=script_safe_json(next_token()),
        study=_NULL_JSON if study is None else script_safe_json(study.model_dump(mode="json", by_alias=True)),
    )  # fmt: skip
    if len(text.encode()) > PAGE_LIMIT_BYTES:
        raise UsageError(
            f"the page would be {len(text.encode()):,} bytes, expected at most {PAGE_LIMIT_BYTES:,}; "
            "write it without --study and load the study at the step #lab"
        )
    return text


def _embedded_report(report: Report) -> str:
    text = embedded_json(report)
    if text == _NULL_JSON:
        raise UsageError(
            f"the report of {report.subject.name!r} is too large for a page; "
            "write it without --report and load the report at the step #model"
        )
    return text


def _content_security_policy(script: str, style: str, *, live: bool) -> str:
    return "; ".join((
        "default-src 'none'",
        f"script-src '{_digest(script)}'",
        f"style-src '{_digest(style)}'",
        "img-src data:",  # an empty icon, so that no browser requests one
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
    return bundle_modules(modules, "main")


@cache
def _claims() -> ClaimsReport:
    """The results of `orderproof claims`, stored with the package."""
    return ClaimsReport.from_json((STATIC / "claims.json").read_text(encoding="utf-8"))


@cache
def trained_model() -> dict[str, Any]:
    """Pairs of sentences through the trained model, and proofs on models' graphs, from `tools/page_results.py`."""
    results: dict[str, Any] = json.loads((STATIC / "trained_model.json").read_text(encoding="utf-8"))
    return results


@cache
def next_token() -> dict[str, Any]:
    """Small trained decoders, from `tools/next_token.py`."""
    results: dict[str, Any] = json.loads((STATIC / "next_token.json").read_text(encoding="utf-8"))
    return results


@cache
def _style() -> str:
    report = read_asset("page.css")
    return report + ramp_css() + (STATIC / "explain.css").read_text(encoding="utf-8")


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True,
        loader=jinja2.FileSystemLoader(STATIC),
        keep_trailing_newline=True,
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template("explain.html")
