"""The report as one HTML page that needs nothing but itself: no network, no script that reads a token."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from functools import cache
from pathlib import Path

import jinja2

from orderproof.record import HeatMap, Report
from orderproof.report import destination, words
from orderproof.report.colour import LEVELS, ramp_css
from orderproof.report.proof_view import ProofView, proof_views

LIMIT = 2_000_000  # [bytes] of a page
PROOF_BUDGET = 1_000_000  # [bytes] of proof lines
EMBEDDED_BUDGET = 500_000  # [bytes] of embedded JSON
CELLS = 48  # rows and columns of a heat map shown
ALL_CELLS = 16_000  # cells of all heat maps together
TOKENS_SHOWN = 200
TRIALS_SHOWN = 64  # comparisons of one measured law


def write_html(report: Report, target: str | Path) -> None:
    """Write the page to a file in one step, or to standard output when the target is ``-``."""
    destination.write(render_html(report), target)


def render_html(report: Report) -> str:
    """The page as text, at most 2 MB of it."""
    page = ""
    for budget in (PROOF_BUDGET, PROOF_BUDGET // 4, 0):
        page = _page(report, proof_views(report, budget))
        if len(page.encode()) <= LIMIT:
            break
    return page


def _page(report: Report, proofs: tuple[ProofView, ...]) -> str:
    script = source("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return _template().render(
        report=report,
        words=words,
        proofs=proofs,
        data=embedded(report),
        script=script,
        script_hash=f"sha256-{digest}",
        style=source("style.css") + ramp_css(),
        heat_maps=_heat_maps(report),
        scale=max((abs(v) for m in report.heat_maps for row in m.values for v in row), default=0.0) or 1.0,
        cells=CELLS,
        levels=LEVELS,
        tokens_shown=TOKENS_SHOWN,
        trials_shown=TRIALS_SHOWN,
        ladder=_ladder(report),
        used_lemmas=_used_lemmas(report),
    )


def environment() -> jinja2.Environment:
    """What templates are read in: everything put into a page is escaped, and control characters are spelt out."""
    return jinja2.Environment(
        autoescape=True,
        finalize=lambda value: words.visible(value) if type(value) is str else value,
        keep_trailing_newline=True,
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
    )


@cache
def _template() -> jinja2.Template:
    made = environment()
    made.filters["level"] = _level
    made.filters["decade"] = decade
    return made.from_string(source("template.html"))


@cache
def source(name: str) -> str:
    """The text of a file of this folder."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def embedded(report: Report) -> str:
    """The report's JSON, safe inside a script element; proof lines stand in the page and are left out here."""
    data = _without_lines(report).model_dump(mode="json", by_alias=True)
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    if len(text) > EMBEDDED_BUDGET:
        data["heat_maps"] = []
        text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    if len(text) > EMBEDDED_BUDGET:
        text = "null"
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


_NO_LINES = {"lines": ()}


def _without_lines(report: Report) -> Report:
    """The same report, its proofs as counts only."""
    findings = []
    for f in report.findings:
        proof = f.proof and f.proof.model_copy(update=_NO_LINES)
        done = f.completion
        if done and done.proof:
            done = done.model_copy(update={"proof": done.proof.model_copy(update=_NO_LINES)})
        findings.append(f.model_copy(update={"proof": proof, "completion": done}))
    return report.model_copy(update={"findings": tuple(findings)})


def _level(value: float, scale: float) -> int:
    """The step of the colour ramp a value gets."""
    return 0 if not math.isfinite(value) else round(min(max(value / scale, 0.0), 1.0) * (LEVELS - 1))


def decade(value: float | None) -> float:
    """Where a difference stands on an axis from 1e-18 (0) to 10 (100); an exact zero stands at 0."""
    if not value or value < 0:
        return 0.0
    return round(min(max((math.log10(value) + 18) / 19, 0.0), 1.0) * 100, 1) if math.isfinite(value) else 100.0


def _heat_maps(report: Report) -> tuple[HeatMap, ...]:
    """The first heat maps, as many as a page carries."""
    left = ALL_CELLS
    for i, heat_map in enumerate(report.heat_maps):
        left -= min(len(heat_map.rows), CELLS) * min(len(heat_map.columns), CELLS)
        if left < 0:
            return report.heat_maps[:i]
    return report.heat_maps


def _ladder(report: Report) -> list[dict[str, object]]:
    """The rows of the precision ladder: what was compared, and the difference in either precision."""
    rows: list[dict[str, object]] = []
    for f in report.findings:
        done = f.completion
        if f.deviation.float32 is not None or f.deviation.float64 is not None:
            rows.append({"name": words.name(f), "verdict": f.verdict, "deviation": f.deviation})
        if done and (done.deviation.float32 is not None or done.deviation.float64 is not None):
            title = f"{words.name(f)}, entries made uniform"
            rows.append({"name": title, "verdict": done.verdict, "deviation": done.deviation})
    return rows


def _used_lemmas(report: Report) -> list[tuple[str, int, str]]:
    """Every lemma of every proof, how often it was used, and what it says where the report tells."""
    total: dict[str, int] = {}
    for f in report.findings:
        for proof in (f.proof, f.completion.proof if f.completion else None):
            for lemma, uses in (proof.lemmas if proof else {}).items():
                total[lemma] = total.get(lemma, 0) + uses
    ordered = sorted(total.items(), key=lambda item: (-item[1], item[0]))
    return [(lemma, uses, report.lemmas.get(lemma, "")) for lemma, uses in ordered]
