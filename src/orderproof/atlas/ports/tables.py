"""The tables of pages of ports: how many architectures agree, and what explains the differences of the others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from orderproof.atlas.counts import code_span
from orderproof.atlas.ports.groups import DifferenceGroup, difference_groups
from orderproof.atlas.ports.row import PortRow
from orderproof.atlas.ports.script import has_script
from orderproof.report.markdown_table import markdown_table

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
    ("vllm", "mask"): (
        "`hrm_text.py` of vLLM 0.32.0: by design, as it was trained; transformers does so with `token_type_ids` of 1"
    ),
    ("ctranslate2", "rope_parameters.rope_type"): (
        "[CTranslate2 issue 1764](https://github.com/OpenNMT/CTranslate2/issues/1764)"
    ),
}
STATED_UPSTREAM |= {("xllamacpp", key): text for (engine, key), text in STATED_UPSTREAM.items() if engine == "llamacpp"}
_CALL_ERROR = re.compile(r"\S+ (raised |ended its process|was not done)")  # by the engine, in a call of a law


def summary(rows: Sequence[PortRow], names: Iterable[str]) -> str:
    """The numbers of architectures by engine and configuration."""
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
            kinds = [kind_of(row) for row in chosen]
            counts = [str(kinds.count(kind)) for kind in head[3:]]
            lines.append((name, variant, str(len(chosen)), *counts))
    return markdown_table(head, lines, right=range(2, len(head)))


def kind_of(row: PortRow) -> str:
    """The column of the summary in which a row is counted."""
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


def differences(rows: Sequence[PortRow], scripts: str = "scripts") -> str:
    """The differences with what explains them; `scripts` is the folder of their scripts, seen from the page."""
    head = (
        "engine", "configuration", "cause", "setting: reference, port", "kind", "first token", "largest",
        "architectures", "stated upstream", "script",
    )  # fmt: skip
    lines = [_difference_line(group, scripts) for group in difference_groups(rows)]
    return markdown_table(head, lines) if lines else "None."


def _difference_line(group: DifferenceGroup, scripts: str) -> tuple[str, ...]:
    each, shown = group.cause, group.clearest
    setting = "not explained" if each is None else f"{code_span(each.setting)}: {each.stated}, {each.assumed}"
    stated = "-" if each is None else STATED_UPSTREAM.get((group.engine, each.setting), "-")
    firsts = sorted({law.first_token for _, law in shown if law.first_token is not None})
    sizes = [law.difference for _, law in shown if law.difference is not None]
    names = ", ".join(f"{name} (in part)" if name in group.partly else name for name in group.names)
    return (
        group.engine, group.variant, "-" if each is None else each.cause, setting, group.status,
        ", ".join(map(str, firsts[:4])), f"{max(sizes):.2g}" if sizes else "other tokens", names, stated,
        f"[{group.script}]({scripts}/{group.script})" if has_script(group) else "-",
    )  # fmt: skip
