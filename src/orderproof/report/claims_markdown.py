"""Claims as Markdown: a table of verdicts, then each with what is true exactly and what shows it."""

from __future__ import annotations

from orderproof.claim_record import ClaimRecord, ClaimsRecord, GroundRecord
from orderproof.report.claims_text import VERDICTS, how, surprise
from orderproof.report.markdown import escaped


def render_claims_markdown(found: ClaimsRecord) -> str:
    """The claims as text."""
    rows = [f"| {claim.number} | {escaped(claim.statement)} | {_verdict(claim)} |" for claim in found.claims]
    table = "\n".join(["| claim | as people say it | verdict |", "| --- | --- | --- |", *rows])
    versions = ", ".join(f"{escaped(name)} {escaped(version)}" for name, version in found.versions.items())
    parts = ["# Claims about token order", table, *map(_claim, found.claims), f"Versions: {versions}"]
    return "\n\n".join(parts) + "\n"


def _verdict(claim: ClaimRecord) -> str:
    word = VERDICTS[claim.verdict].lower()
    return word if claim.met else f"**{word}** (documented: {VERDICTS[claim.documented].lower()})"


def _claim(claim: ClaimRecord) -> str:
    lines = [f"## {claim.number}. {escaped(claim.statement)}", f"**{VERDICTS[claim.verdict].capitalize()}.** "]
    lines[-1] += escaped(claim.exact)
    lines.append("\n".join(f"- {escaped(each)}" for each in claim.conditions))
    lines.append("\n".join(map(_ground, claim.grounds)))
    lines.append(f"Source: {escaped(claim.source)}")
    return "\n\n".join(line for line in lines if line)


def _ground(ground: GroundRecord) -> str:
    why = surprise(ground)
    found = VERDICTS[ground.found].lower()
    head = f"- {escaped(ground.what)}: {found if not why else f'**{found}**, {why}'} ({escaped(how(ground))})"
    return "\n".join(
        [head, f"    - {escaped(ground.subject)}", *(f"    - {escaped(each)}" for each in ground.evidence)]
    )
