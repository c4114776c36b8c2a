"""The lines of a script that build the model: its configuration with few values, random weights, or a folder.

The lines are run to get the model that the violation is then shown on, so the script has the same model.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from orderproof.errors import ReproductionError, first_line
from orderproof.library_messages import suppress_warnings

LINE_LENGTH = 120
NOT_ABOUT_ORDER = ("_config", "_token_id", "_dropout")  # ends of the keys that a script is tried without
_NOT_SETTINGS = ("transformers_version", "architectures", "_name_or_path", "dtype", "torch_dtype", "model_type")


@dataclass
class ModelCode:
    """Lines that define `model`, and the names that they import from transformers."""

    imports: set[str]
    lines: list[str]
    model: Any = field(default=None, repr=False)
    fewer: Callable[[], Iterator[ModelCode]] = field(default=lambda: iter(()), repr=False)  # with one value less


def from_config(config: Any, model_class: Any, *, attention: str | None, noise: float) -> ModelCode:
    """A model with random weights; `noise` is added to each parameter, which may be initialised to zero or one.

    Raises `ReproductionError` if its configuration cannot be written as a few values.
    """
    return _from_values(type(config), model_class, config_values(config), attention, noise)


def _from_values(
    config_class: Any, model_class: Any, values: Mapping[str, Any], attention: str | None, noise: float
) -> ModelCode:
    config_name, model_name = config_class.__name__, model_class.__name__
    lines = ["torch.manual_seed(0)", *dictionary_lines("sizes", values)]
    arguments = "**sizes" if values else ""
    usual = _on_meta(config_class, model_class, values).config._attn_implementation
    if attention is None or attention == usual:
        lines.append(f"model = {model_name}({config_name}({arguments})).eval()")
    else:
        lines += [
            f"config = {config_name}({arguments})",
            f'model = {model_name}._from_config(config, attn_implementation="{attention}").eval()',
        ]
    if noise:
        lines += [
            "for parameter in model.parameters():",
            f"    parameter.data += {noise} * torch.randn_like(parameter)",
        ]
    code = _built(ModelCode({config_name, model_name}, lines))
    shapes = _shapes(code.model)

    def fewer() -> Iterator[ModelCode]:
        # Other values may decide what is expected, even where the model ignores them: a window, say.
        for key in sorted(k for k in values if k.endswith(NOT_ABOUT_ORDER)):
            rest = {k: v for k, v in values.items() if k != key}
            with contextlib.suppress(Exception):  # third-party code: values may be refused in any way
                if _shapes(_on_meta(config_class, model_class, rest)) == shapes:
                    yield _from_values(config_class, model_class, rest, attention, noise)

    code.fewer = fewer
    return code


def _on_meta(config_class: Any, model_class: Any, values: Mapping[str, Any]) -> Any:
    with torch.device("meta"), suppress_warnings():
        return model_class(config_class(**values))


def _shapes(model: Any) -> dict[str, torch.Size]:
    return {name: parameter.shape for name, parameter in model.named_parameters()}


def from_folder(folder: str, model_class: Any) -> ModelCode:
    """A model loaded from a folder or from the hub."""
    name = model_class.__name__
    return _built(ModelCode({name}, [f'model = {name}.from_pretrained("{folder}", local_files_only=True).eval()']))


def _built(code: ModelCode) -> ModelCode:
    import transformers

    namespace: dict[str, Any] = {"torch": torch}
    for name in code.imports:
        if not hasattr(transformers, name):
            raise ReproductionError(f"transformers does not export {name}, so a script cannot import it by name")
        namespace[name] = getattr(transformers, name)
    with torch.random.fork_rng(devices=[]), suppress_warnings():
        exec("\n".join(code.lines), namespace)
    code.model = namespace["model"]
    return code


def config_values(config: Any) -> dict[str, Any]:
    """The fewest values from which its class builds this configuration. Raises `ReproductionError`."""
    with suppress_warnings():
        whole = _settings(config)
        try:
            usual = _settings(type(config)())
        except Exception:  # noqa: BLE001 - third-party code: a configuration may have no default
            usual = {}
        values = {key: value for key, value in whole.items() if key not in usual or usual[key] != value}
        for key in getattr(config, "sub_configs", {}):
            if key in values and getattr(config, key, None) is not None:
                values[key] = config_values(getattr(config, key))
        try:
            whole = _settings(type(config)(**values))  # values that it derives replace those of `config`
        except Exception as error:  # third-party code: values may be refused in any way
            raise ReproductionError(f"{type(config).__name__}: {first_line(error)}") from error
        for key in sorted(values, key=lambda name: -len(repr(values[name]))):
            fewer = {k: v for k, v in values.items() if k != key}
            if _builds(type(config), fewer, whole):
                values = fewer
    return values


def _settings(config: Any) -> dict[str, Any]:
    return {k: _without_versions(v) for k, v in config.to_dict().items() if k not in _NOT_SETTINGS and k[0] != "_"}


def _without_versions(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _without_versions(v) for k, v in value.items() if k not in _NOT_SETTINGS}
    return list(value) if isinstance(value, tuple) else value


def _builds(config_class: Any, values: Mapping[str, Any], whole: Mapping[str, Any]) -> bool:
    with contextlib.suppress(Exception):  # third-party code: values may be refused in any way
        return _settings(config_class(**values)) == whole
    return False


def dictionary_lines(name: str, values: Mapping[str, Any]) -> list[str]:
    """A dictionary as one or more statements, each short enough for a line."""
    lines: list[str] = []  # of this dictionary
    before: list[str] = []  # of long dictionaries in it
    part: list[str] = []
    for key, value in values.items():
        if isinstance(value, dict) and len(f"{key}: {literal(value)}") > LINE_LENGTH - 20:
            before += dictionary_lines(key, value)
            value = Name(key)  # noqa: PLW2901
        entry = f"{quoted(key)}: {literal(value)}"
        if part and len(_statement(name, [*part, entry], first=not lines)) > LINE_LENGTH:
            lines.append(_statement(name, part, first=not lines))
            part = []
        part.append(entry)
    if part:
        lines.append(_statement(name, part, first=not lines))
    return [*before, *lines]


class Name(str):
    """The name of a variable as a value."""

    __slots__ = ()


def _statement(name: str, entries: list[str], *, first: bool) -> str:
    return f"{name} {'=' if first else '|='} {{{', '.join(entries)}}}"


def literal(value: Any) -> str:
    """A value as Python code, with double quotes. Raises `ReproductionError` for a value without such a form."""
    if isinstance(value, Name):
        return str(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{literal(k)}: {literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return _repeated(value) or "[" + ", ".join(map(literal, value)) + "]"
    if value is None or isinstance(value, (bool, int, float)):
        return repr(value)
    raise ReproductionError(f"a configuration value of type {type(value).__name__} cannot be written into a script")


def _repeated(values: list[Any] | tuple[Any, ...]) -> str:
    """`["a"] * 8` for a long list of one value."""
    same = len(values) > 2 and all(value == values[0] for value in values)
    return f"[{literal(values[0])}] * {len(values)}" if same else ""


def quoted(text: str) -> str:
    """A string literal with double quotes."""
    return json.dumps(text, ensure_ascii=False)
