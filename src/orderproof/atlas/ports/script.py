"""Scripts of at most 25 lines that reproduce a difference of a port, in a form that can be sent to its project."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from orderproof.atlas.ports.groups import DifferenceGroup
from orderproof.atlas.ports.row import PortLawResult, PortRow
from orderproof.atlas.ports.script_steps import LOGITS, PADDED, TOKENS, Steps
from orderproof.library_messages import suppress_warnings
from orderproof.models.tiny.fixed_sizes import WEIGHT_NOISE_STD
from orderproof.ports.older_config import older_keys

PROMPT_LAWS = ("same_prefill", "same_past_window", "same_past_context", "same_far_positions")
CALLS = ((LOGITS, PROMPT_LAWS), (PADDED, ("same_padded_batch",)), (TOKENS, ("same_greedy_tokens",)))
MOST_LINES = 25
_WIDTH = 120  # characters of a line
_SHORT_NAMES = {"rope_parameters": "rope"}  # of variables, by key
_WRITE_OLDER_KEYS = "vars(model.config).update(older)  # as transformers wrote it before version 5"


def has_script(group: DifferenceGroup) -> bool:
    """True if a prompt, a row with pads or generated tokens show the difference: a script makes no other call."""
    return _call_of(group) is not None


def _call_of(group: DifferenceGroup) -> tuple[Steps, PortRow, PortLawResult] | None:
    """The steps of a script, and the row of the group that it shows: the one with the shortest configuration."""
    for steps, laws in CALLS:
        shown = [each for each in group.clearest if each[1].law in laws]
        if shown and group.engine in steps:
            row, law = min(shown, key=lambda each: _order(each[0]))
            return steps[group.engine], row, law
    return None


def _order(row: PortRow) -> tuple[bool, int, bool, str]:
    """The row that a script shows comes first: an architecture of its own before one with the same text model."""
    return row.needs_older_keys, len(_source(row.values)), row.name != row.model_type, row.name


def script(group: DifferenceGroup) -> str:
    """A script that prints the difference for one architecture of a group that has a script."""
    call = _call_of(group)
    assert call is not None
    engine, row, law = call
    values = dict(row.values)
    lines = _lines(group, engine, row, law, values)
    for fewer in (_without_computed_values, _without_ends_of_texts):
        if len(lines) > MOST_LINES:
            values = fewer(row.model_type, values)
            lines = _lines(group, engine, row, law, values)
    return "\n".join(lines) + "\n"


def _lines(
    group: DifferenceGroup, engine: Steps, row: PortRow, law: PortLawResult, values: Mapping[str, Any]
) -> list[str]:
    older = _older_keys(row) if row.needs_older_keys else {}
    steps = "".join(engine.steps)
    classes = ["AutoConfig", engine.of_model, *["PreTrainedTokenizerFast"] * ("PreTrained" in steps)]
    about = _docstring(group, row)
    standard = ["from pathlib import Path"] * ("Path(" in steps)
    return [
        *about,
        *[""] * (not about[-1].startswith("#")),
        *standard,
        *[""] * bool(standard),
        *_sorted(
            ["import torch", *engine.imports, f"from transformers import {', '.join(classes)}  # {row.transformers}"]
        ),
        "",
        "torch.manual_seed(0)",
        *assignments("values", values),
        *(assignments("older", older) if older else ()),
        f'model = {engine.of_model}.from_config(AutoConfig.for_model("{row.model_type}", **values)).float().eval()',
        "for parameter in model.parameters():",
        f"    parameter.data += {WEIGHT_NOISE_STD} * torch.randn(parameter.shape)",
        f"tokens = torch.randint(3, model.config.vocab_size, ({engine.prompts}, {law.tokens}))",
        *[_WRITE_OLDER_KEYS] * bool(older),
        'model.save_pretrained("checkpoint")',
        *filter(None, [engine.before.get(row.model_type)]),
        *engine.steps,
        *engine.shown,
    ]


def _docstring(group: DifferenceGroup, row: PortRow) -> list[str]:
    """The setting that differs, with the version of the engine; on one line if it fits."""
    name, each = f"{row.name}, {row.engine_version}", group.cause
    if each is None:
        return [f'"""{name}: differs from transformers."""']
    for here in (f"{each.stated} in transformers, {each.assumed} here", f"{each.stated}; here {each.assumed}"):
        line = f'"""{name}: {each.setting}: {here}."""'
        if len(line) <= _WIDTH:
            return [line]
    return [f'"""{name}: {each.setting}: {each.assumed}."""', "", f"# In transformers: {each.stated}"]


def _sorted(imports: Any) -> list[str]:
    """Imports in the usual order: modules first, then names from modules."""
    return sorted(imports, key=lambda line: (line.startswith("from"), line.split()[1]))


def _older_keys(row: PortRow) -> dict[str, Any]:
    """The keys of older versions that the configuration of an architecture lacks."""
    from transformers import AutoConfig

    return older_keys(AutoConfig.for_model(row.model_type, **row.values).to_dict())


def _without_ends_of_texts(model_type: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values without ids that only a text that is generated reads."""
    del model_type
    return {key: value for key, value in values.items() if key not in ("bos_token_id", "eos_token_id")}


def _without_computed_values(model_type: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The values without those that the configuration computes from the others."""
    from transformers import AutoConfig

    def whole(some: Mapping[str, Any]) -> Any:
        try:
            with suppress_warnings():
                return AutoConfig.for_model(model_type, **some).to_dict()
        except Exception:  # noqa: BLE001 - third-party code: a configuration that is not valid without a value
            return None

    values = dict(given)
    for key in given:
        rest = {name: value for name, value in values.items() if name != key}
        if whole(rest) == whole(given):
            values = rest
    return values


def assignments(name: str, values: Mapping[str, Any]) -> list[str]:
    """Source that sets a variable to a dictionary, in few lines; a long inner one has a variable of its own."""
    lines, entries, sign = list[str](), list[str](), "="
    for key, value in sorted(values.items(), key=lambda item: (-len(_source(item[1])), -len(item[0]), item[0])):
        text = _source(value)
        if isinstance(value, Mapping) and len(text) > _WIDTH // 2:
            text = _SHORT_NAMES.get(key, key)
            lines += assignments(text, value)
        entries.append(f"{json.dumps(key)}: {text}")
    while entries:
        fullest = _fullest(entries, _WIDTH - len(f"{name} {sign} {{}}"))
        lines.append(f"{name} {sign} {{{', '.join(fullest)}}}")
        entries, sign = [each for each in entries if each not in fullest], "|="
    return lines


def _fullest(entries: Sequence[str], room: int) -> list[str]:
    """The entries that fill a line best; the first alone if it is too long for one."""
    best: dict[int, list[str]] = {-2: []}  # by length
    for entry in entries:
        for length, chosen in list(best.items()):
            if length + len(entry) + 2 <= room:
                best.setdefault(length + len(entry) + 2, [*chosen, entry])
    return best[max(best)] or [entries[0]]


def _source(value: Any) -> str:
    """A value on one line; a list that repeats a part is written as a product."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{json.dumps(key)}: {_source(each)}' for key, each in sorted(value.items()))}}}"
    if isinstance(value, list | tuple):
        runs = [(_source(each), len(list(same))) for each, same in groupby(value)]
        if 1 < len(runs) <= len(value) // 2:
            return " + ".join(f"[{each}] * {count}" if count > 1 else f"[{each}]" for each, count in runs)
        period = next((size for size in range(1, len(value)) if _repeats(value, size)), len(value))
        times = len(value) // period if period else 1
        part = f"[{', '.join(map(_source, value[:period]))}]"
        return part if times == 1 else f"{part} * {times}"
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _repeats(value: Sequence[Any], size: int) -> bool:
    return len(value) % size == 0 and list(value) == list(value[:size]) * (len(value) // size)
