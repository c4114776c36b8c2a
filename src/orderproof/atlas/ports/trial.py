"""A short table of some families in one engine: the largest difference, the first token, and the settings behind it."""

from __future__ import annotations

from collections.abc import Sequence

from orderproof.atlas.counts import code_span
from orderproof.atlas.ports.row import PortLawResult, PortRow
from orderproof.atlas.ports.variants import PLAIN
from orderproof.records.audit import PortCause
from orderproof.report.markdown_table import markdown_table
from orderproof.tolerances import PORT_FACTOR

ENGINE = "mlx"
FAMILIES = (  # of the comparison by hand that this package began with
    "llama", "qwen3", "olmo2", "nemotron", "hunyuan_v1_dense", "seed_oss", "mistral", "mixtral", "gemma2", "phi3",
    "qwen2", "phi", "cohere", "starcoder2", "granite", "helium", "glm4", "stablelm", "ernie4_5", "exaone4", "olmo3",
    "apertus", "gpt_neox", "gemma",
)  # fmt: skip
COMPARED = ("same_past_window", "same_prefill")  # a short prompt, past the window if there is one
TITLE = "## Families in MLX, row by row"
TEXT = """\
One prompt of each family, past the window if it has one. *With older keys*: the keys of versions before transformers 5
are added to `config.json`. The command of a row prints its findings, with the configuration."""


def trial(rows: Sequence[PortRow]) -> list[str]:
    """The section of the page; empty if a family was not measured."""
    plain = {row.name: row for row in rows if (row.engine, row.variant) == (ENGINE, PLAIN)}
    if not plain.keys() >= set(FAMILIES):
        return []
    head = ("architecture", "loads", "difference", "first token", "settings: reference, port", "command")
    return [TITLE, TEXT, markdown_table(head, [_line(plain[name]) for name in FAMILIES])]


def _line(row: PortRow) -> tuple[str, ...]:
    command = code_span(f"orderproof audit arch:{row.name} --against {ENGINE}")
    loaded = row.law("loads_checkpoint")
    law = next((found for name in COMPARED if (found := row.law(name)) is not None), None)
    refused = loaded is not None and loaded.verdict == "refuted"
    loads = "with older keys" if row.needs_older_keys else "refused" if refused else "yes"
    if law is None or law.difference is None:
        return (row.name, loads, "-", "-", code_span(loaded.reason) if refused and loaded is not None else "-", command)
    first = "none" if law.first_token is None else str(law.first_token)
    return (row.name, loads, f"{law.difference:.2g}", first, _settings(law), command)


def _settings(law: PortLawResult) -> str:
    if law.verdict == "held":
        return "same model"
    if not law.causes:
        return "not explained"
    text = "; ".join(map(_setting, law.causes)) + ("" if law.explained else "; a part is not explained")
    again = law.with_older_keys
    if again is None or law.rounding is None:
        return text
    if again <= PORT_FACTOR * law.rounding:
        return f"{text}. With older keys: same model, {again:.1g}"
    return f"{text}. With older keys {again:.2g}: {'; '.join(map(_setting, law.older_causes)) or 'not explained'}"


def _setting(cause: PortCause) -> str:
    return f"{code_span(cause.setting)}: {cause.stated}, {cause.assumed}"
