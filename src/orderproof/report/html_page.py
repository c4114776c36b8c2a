"""The report as one self-contained HTML page: no request, and no script that reads a text of the model."""

from __future__ import annotations

import base64
import hashlib
import math
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from orderproof._version import __version__
from orderproof.records.audit import AttentionMap, Deviation, Finding, Report, SubjectRecord
from orderproof.report import entry_map_phrases, file_output, law_groups, phrases, place, summary, witness_phrases
from orderproof.report.colour_ramp import LEVELS, ramp_css
from orderproof.report.json_output import script_safe_json
from orderproof.report.proof_view import ProofView, proof_views

if TYPE_CHECKING:
    import jinja2  # most commands write no page, and it takes a tenth of their start

PAGE_LIMIT_BYTES = 2_000_000  # [bytes] of a page
PROOF_BUDGET = 1_000_000  # [bytes] of proof lines
EMBEDDED_BUDGET = 500_000  # [bytes] of embedded JSON
HEAT_MAP_SIDE = 48  # rows and columns of a heat map shown
MAX_HEAT_MAP_CELLS = 16_000  # cells of all heat maps together
TOKENS_SHOWN = 200
COMPARISONS_SHOWN = 64  # comparisons of one measured law


def write_html(report: Report, target: str | Path) -> None:
    """Write the page to a file in one step, or to standard output when the target is ``-``."""
    file_output.write_file(render_html(report), target)


def render_html(report: Report) -> str:
    """The page as text, at most 2 MB of it."""
    page = ""
    for budget in (PROOF_BUDGET, PROOF_BUDGET // 4, 0):
        page = _render(report, proof_views(report, budget))
        if len(page.encode()) <= PAGE_LIMIT_BYTES:
            break
    return page


def _render(report: Report, proofs: tuple[ProofView, ...], template: str = "audit_page.html") -> str:
    script = read_asset("audit_page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return _template(template).render(
        report=report,
        phrases=phrases,
        entry_map_phrases=entry_map_phrases,
        witness_phrases=witness_phrases,
        summary=summary,
        law_groups=law_groups,
        place=place,
        proofs=proofs,
        data=embedded_json(report),
        script=script,
        script_hash=f"sha256-{digest}",
        style=read_asset("page.css") + read_asset("audit_page.css") + ramp_css(),
        attention_maps=_shown_attention_maps(report),
        scale_maximum=max((abs(v) for m in report.attention_maps for row in m.weights for v in row), default=0.0)
        or 1.0,
        map_side=HEAT_MAP_SIDE,
        levels=LEVELS,
        tokens_shown=TOKENS_SHOWN,
        comparisons_shown=COMPARISONS_SHOWN,
        deviations=_deviation_rows(report),
        used_lemmas=_used_lemmas(report),
    )


def render_finding_html(finding: Finding) -> str:
    """The page of one finding as text: what failed, or the row of its law, unfolded."""
    report = Report(
        orderproof_version=__version__, findings=(finding,),
        subject=SubjectRecord(name=phrases.law_title(finding), kind="", parameters=0),
    )  # fmt: skip
    return _render(report, proof_views(report, PROOF_BUDGET // 4), template="finding_page.html")


def template_environment() -> jinja2.Environment:
    """The environment of all templates: values are escaped for HTML, and control characters become escape sequences."""
    import jinja2

    return jinja2.Environment(
        autoescape=True,
        finalize=lambda value: phrases.escape_control_characters(value) if type(value) is str else value,
        keep_trailing_newline=True,
        loader=jinja2.FunctionLoader(read_asset),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
    )


@cache
def _template(name: str) -> jinja2.Template:
    environment = template_environment()
    environment.filters["ramp_step"] = _ramp_step
    environment.filters["log_axis_percent"] = log_axis_percent
    return environment.get_template(name)


@cache
def read_asset(name: str) -> str:
    """The text of a file of this folder."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def embedded_json(report: Report) -> str:
    """The report as JSON for a script element, without the steps of proofs; ``null`` where it is too large."""
    data = _without_proof_steps(report).model_dump(mode="json", by_alias=True)
    text = script_safe_json(data)
    if len(text) > EMBEDDED_BUDGET:
        text = script_safe_json({**data, "attention_maps": []})
    return text if len(text) <= EMBEDDED_BUDGET else "null"


_NO_STEPS = {"steps": ()}


def _without_proof_steps(report: Report) -> Report:
    """The same report with proofs as counts only."""
    findings = []
    for f in report.findings:
        proof = f.proof and f.proof.model_copy(update=_NO_STEPS)
        done = f.completion
        if done and done.proof:
            done = done.model_copy(update={"proof": done.proof.model_copy(update=_NO_STEPS)})
        findings.append(f.model_copy(update={"proof": proof, "completion": done}))
    return report.model_copy(update={"findings": tuple(findings)})


def _ramp_step(value: float, scale: float) -> int:
    """The step of the colour ramp for a value."""
    return 0 if not math.isfinite(value) else round(min(max(value / scale, 0.0), 1.0) * (LEVELS - 1))


def log_axis_percent(value: float | None) -> float:
    """The place of a difference on a logarithmic axis from 1e-18 (0) to 10 (100) [percent]; an exact zero is at 0."""
    if not value or value < 0:
        return 0.0
    return round(min(max((math.log10(value) + 18) / 19, 0.0), 1.0) * 100, 1) if math.isfinite(value) else 100.0


def _shown_attention_maps(report: Report) -> tuple[AttentionMap, ...]:
    """The first attention maps, up to the limit of a page."""
    left = MAX_HEAT_MAP_CELLS
    for i, heat_map in enumerate(report.attention_maps):
        left -= min(len(heat_map.query_tokens), HEAT_MAP_SIDE) * min(len(heat_map.key_tokens), HEAT_MAP_SIDE)
        if left < 0:
            return report.attention_maps[:i]
    return report.attention_maps


def _deviation_rows(report: Report) -> list[tuple[str, Deviation]]:
    """The rows of the precision table: what was compared, and its difference in both precisions."""
    rows = []
    for f in report.findings:
        rows.append((phrases.law_title(f), f.deviation))
        if f.completion:
            rows.append((f"{phrases.law_title(f)}, without positions", f.completion.deviation))
    return [row for row in rows if row[1] != Deviation()]


def _used_lemmas(report: Report) -> list[tuple[str, int, str]]:
    """Every lemma of every proof with its number of uses and, where the report has it, its statement."""
    uses_by_lemma: dict[str, int] = {}
    for f in report.findings:
        for proof in (f.proof, f.completion.proof if f.completion else None):
            for lemma, uses in (proof.lemma_counts if proof else {}).items():
                uses_by_lemma[lemma] = uses_by_lemma.get(lemma, 0) + uses
    ordered = sorted(uses_by_lemma.items(), key=lambda item: (-item[1], item[0]))
    return [(lemma, uses, report.lemma_statements.get(lemma, "")) for lemma, uses in ordered]
