"""The text of a script: the model, its inputs, the calls, and the comparison of two vectors."""

from __future__ import annotations

import re
from collections.abc import Sequence

from orderproof.reproduction.model_code import LINE_LENGTH, ModelCode
from orderproof.tolerances import FLOAT32_TOLERANCE, ZERO_TOLERANCE

MAX_LINES = 25  # that are not empty
_MODULES = ("copy", "tempfile", "torch", "transformers")


def threshold(*, exact: bool) -> float:
    """The relative difference from which on a script finds the defect; `exact` for two equal calls."""
    return ZERO_TOLERANCE if exact else FLOAT32_TOLERANCE


def script_text(
    title: str, code: ModelCode, *, inputs: Sequence[str], calls: Sequence[str], limit: float, must_differ: bool
) -> str:
    """A script that exits with 1 if the defect is there and with 0 if it is not."""
    flex = any("flex_attention" in line for line in inputs)
    context = 'torch.no_grad(), torch.compiler.set_stance("force_eager")' if flex else "torch.no_grad()"
    relation = "<=" if must_differ else ">"
    body = [
        *code.lines,
        *inputs,
        f"with {context}:",
        *(part for line in calls for part in wrapped(f"    {line}")),
        "difference = float((expected - actual).abs().max() / torch.stack([expected, actual]).abs().max())",
        'print("expected", expected[:3].tolist(), "actual", actual[:3].tolist(), "relative difference", difference)',
        f"raise SystemExit(difference {relation} {limit})",
    ]
    return "\n".join([_docstring(title), "", *_imports(code, body), "", *body]) + "\n"


def wrapped(line: str) -> list[str]:
    """A line with a call, in three lines if it is too long."""
    found = re.fullmatch(r"(?P<indent> *)(?P<head>[^(]*\()(?P<arguments>.*)(?P<tail>\).*)", line)
    if len(line) <= LINE_LENGTH or found is None:
        return [line]
    indent = found["indent"]
    return [indent + found["head"], f"{indent}    {found['arguments']}", indent + found["tail"]]


def _docstring(title: str) -> str:
    text = f'"""{title}."""'
    return text if len(text) <= LINE_LENGTH else text[: LINE_LENGTH - 7] + '...."""'


def _imports(code: ModelCode, body: Sequence[str]) -> list[str]:
    used = [name for name in _MODULES if any(re.search(rf"\b{name}\.", line) for line in body)]
    standard = [f"import {name}" for name in used if name in ("copy", "tempfile")]
    if any("pairwise(" in line for line in body):
        standard.append("from itertools import pairwise")
    others = [f"import {name}" for name in used if name in ("torch", "transformers")]
    if code.imports:
        others.append(f"from transformers import {', '.join(sorted(code.imports))}")
    return [*standard, *([""] if standard else []), *others]
