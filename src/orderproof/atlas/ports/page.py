"""The Markdown page of the atlas of ports. The same document gives the same page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from orderproof.atlas.counts import code_span
from orderproof.atlas.ports.document import PortsDocument
from orderproof.atlas.ports.groups import DifferenceGroup, difference_groups
from orderproof.atlas.ports.row import PortLawResult, PortRow
from orderproof.atlas.ports.script import has_script
from orderproof.atlas.ports.trial import trial
from orderproof.atlas.ports.variants import PLAIN
from orderproof.laws import port_laws
from orderproof.ports.engines.registry import engines
from orderproof.ports.port_run import NOT_LOADED
from orderproof.report.markdown_table import markdown_table
from orderproof.tolerances import PORT_FACTOR

INTRODUCTION = f"""# Ports of transformers

Written by `orderproof ports`; not edited by hand. [How to compare a port](../../how_to/audit_a_port.md).

Each row compares one architecture of transformers with another implementation, an *engine*, that reads the checkpoint
that transformers saves: the same weights, the same tokens, both on the CPU in float32. The models are tiny (2 layers of
width 64, or 128 for an engine that takes no narrower heads, or as many layers as the pattern of their types has), their
weights are random, and a window is 6 tokens, so that a prompt of 20 tokens is longer than it. A difference is relative
to the largest logit. A law fails if a difference exceeds {PORT_FACTOR} times the distance of transformers from float32
to float64 on the same tokens.

A difference is *explained* if transformers with another value of the named setting computes what the engine computes,
up to rounding. `transformers` 5 writes `rope_parameters` to `config.json`; versions before 5 wrote `rope_theta` and
`rope_scaling`. An engine that reads the old keys is run a second time with these keys added. A difference that
disappears then is one of the *configuration of another version*, and not of the arithmetic of the engine. It still
changes what a checkpoint saved today computes. Every other difference is called a *difference of the port*: this page
does not say whether it is intended. What upstream says is in the column *stated upstream*; a dash means that nothing
was looked up."""

STATED_UPSTREAM = {  # by engine and setting: where a project speaks of a difference
    ("mlx", "rope_parameters.rope_theta"): "[mlx-lm pull request 953](https://github.com/ml-explore/mlx-lm/pull/953)",
    ("mlx", "rope_parameters.rope_type"): "[mlx-lm pull request 953](https://github.com/ml-explore/mlx-lm/pull/953)",
    ("mlx", "sliding_window"): "[mlx-lm pull request 44](https://github.com/ml-explore/mlx-lm/pull/44), closed",
    ("llamacpp", "sliding_window"): "[llama.cpp issue 3377](https://github.com/ggml-org/llama.cpp/issues/3377), closed",
    ("llamacpp", "activation"): "[llama.cpp issue 29252](https://github.com/ggml-org/llama.cpp/issues/29252)",
    ("llamacpp", "norm_topk_prob"): (
        "[transformers issue 41151](https://github.com/huggingface/transformers/issues/41151), closed"
    ),
    ("vllm", "sliding_window"): (
        "a comment of vLLM 0.32.0 in `commandr.py`: the window of the training is `sliding_window` + 1 tokens"
    ),
    ("ctranslate2", "rope_parameters.rope_type"): (
        "[CTranslate2 issue 1764](https://github.com/OpenNMT/CTranslate2/issues/1764)"
    ),
}
_CALL_ERROR = re.compile(r"\S+ (raised |ended its process|was not done)")  # by the engine, in a call of a law
_SIGNS = {"held": "same", "undecided": "?", "not_applicable": "-"}


def page(document: PortsDocument) -> str:
    """The page of a document."""
    names = sorted({row.engine for row in document.rows})
    parts = [INTRODUCTION, _facts(document), "## Summary", _summary(document.rows, names)]
    parts += ["## Differences", _differences(document.rows), *trial(document.rows)]
    for name in names:
        rows = [row for row in document.rows if row.engine == name]
        parts += [f"## {engines()[name].title}", *_engine_sections(rows)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _facts(document: PortsDocument) -> str:
    versions = sorted({row.engine_version for row in document.rows})
    seconds = sum(row.processor_seconds for row in document.rows)
    library = ", ".join(sorted({row.transformers for row in document.rows}))
    plain = [row for row in document.rows if row.variant == PLAIN]
    asked = [
        f"{name}: {sum(row.engine == name for row in plain)} architectures, of which it has "
        f"{sum(row.engine == name and row.known for row in plain)}"
        for name in sorted({row.engine for row in plain})
    ]
    return (
        f"transformers {library}; {', '.join(versions)}; {document.date}; {document.machine}; "
        f"{len(document.rows):,} rows, {seconds / 60:.0f} minutes of processor time. Asked for {'; '.join(asked)}. "
        "The scalings of an architecture that is not in the summary were not measured."
    )


def _summary(rows: Sequence[PortRow], names: Iterable[str]) -> str:
    head = (
        "engine", "configuration", "known", "same in all laws", "differs", "refused, then same",
        "refused, then differs", "refused", "error in a call", "undecided",
    )  # fmt: skip
    lines = []
    for name in names:
        variants = list(dict.fromkeys(row.variant for row in rows if row.engine == name))
        for variant in variants:
            chosen = [
                row for row in rows if (row.engine, row.variant) == (name, variant) and row.known and not row.failure
            ]
            kinds = [_kind(row) for row in chosen]
            counts = [str(kinds.count(kind)) for kind in head[3:]]
            lines.append((name, variant, str(len(chosen)), *counts))
    return markdown_table(head, lines, right=range(2, len(head)))


def _kind(row: PortRow) -> str:
    loaded = row.law("loads_checkpoint")
    if row.needs_older_keys:
        return "refused, then differs" if _fails(row) else "refused, then same"
    if loaded is not None and loaded.verdict != "held":
        return "refused"
    if _fails(row):
        return "differs"
    undecided = [law.reason for law in row.laws if law.verdict == "undecided"]
    if any(not _CALL_ERROR.match(reason) for reason in undecided):
        return "undecided"
    return "error in a call" if undecided else "same in all laws"


def _fails(row: PortRow) -> bool:
    return any(law.verdict == "refuted" and law.law != "loads_checkpoint" for law in row.laws)


def _differences(rows: Sequence[PortRow]) -> str:
    head = (
        "engine", "configuration", "cause", "setting: reference, port", "kind", "first token", "largest",
        "architectures", "stated upstream", "script",
    )  # fmt: skip
    lines = [_difference_line(group) for group in difference_groups(rows)]
    return markdown_table(head, lines) if lines else "None."


def _difference_line(group: DifferenceGroup) -> tuple[str, ...]:
    each, shown = group.cause, group.clearest
    setting = "not explained" if each is None else f"{code_span(each.setting)}: {each.stated}, {each.assumed}"
    stated = "-" if each is None else STATED_UPSTREAM.get((group.engine, each.setting), "-")
    firsts = sorted({law.first_token for _, law in shown if law.first_token is not None})
    sizes = [law.difference for _, law in shown if law.difference is not None]
    names = ", ".join(f"{name} (in part)" if name in group.partly else name for name in group.names)
    return (
        group.engine, group.variant, "-" if each is None else each.cause, setting, group.status,
        ", ".join(map(str, firsts[:4])), f"{max(sizes):.2g}" if sizes else "other tokens", names, stated,
        f"[{group.script}](scripts/{group.script})" if has_script(group) else "-",
    )  # fmt: skip


def _engine_sections(rows: Sequence[PortRow]) -> list[str]:
    plain = [row for row in rows if row.variant == PLAIN and row.known and not row.failure]
    laws = [law for law in port_laws() if any(row.law(law.name) is not None for row in plain)]
    head = ("architecture", *(f"{law.code} {law.name}" for law in laws))
    signs = "A number is a difference; *same* means a difference that is rounding; ? undecided; - not measured."
    table = markdown_table(head, [(row.name, *(_cell(row.law(law.name), row) for law in laws)) for row in plain])
    refused = [(row.name, row.law("loads_checkpoint")) for row in plain if _kind(row).startswith("refused")]
    lines = [f"- {name}: {law.reason}" for name, law in refused if law is not None]
    others = sorted({row.name for row in rows if row.variant == PLAIN and not row.known})
    failed = [f"- {row.name}: {row.failure}" for row in rows if row.failure]
    undecided = [
        f"- {row.name}, {law.law}: {law.reason}"
        for row in plain for law in row.laws
        if law.verdict == "undecided" and NOT_LOADED not in law.reason
    ]  # fmt: skip
    listings = {"Refused": lines, "Undecided": undecided, "No reference": failed}
    sections = [signs, table]
    for title, listed in listings.items():
        if listed:
            sections += [f"### {title}", "\n".join(map(_escaped, listed))]
    if others:
        sections.append(f"Without an implementation in the engine: {', '.join(others)}.")
    return sections


def _cell(law: PortLawResult | None, row: PortRow) -> str:
    if law is None:
        return "-"
    if law.verdict == "refuted":
        if law.law == "loads_checkpoint":
            return "with older keys" if row.needs_older_keys else "refused"
        since = "" if law.first_token is None else f" from {law.first_token}"
        return f"**{law.difference:.1g}**{since}" if law.difference is not None else "**other tokens**"
    return _SIGNS.get(law.verdict, law.verdict)


def _escaped(text: str) -> str:
    """Markdown text in which `<`, `*` and `_` of error messages have no meaning."""
    for sign in ("\\", "<", ">", "*", "_", "|", "[", "]", "`"):
        text = text.replace(sign, f"\\{sign}" if sign not in "<>" else {"<": "&lt;", ">": "&gt;"}[sign])
    return text
