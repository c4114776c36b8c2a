"""The reference page of the Python interface: signature and docstring of every public name.

The public names of a package are those that it re-exports (`__all__`, or `from x import Y as Y`), and those of a module
are the functions and classes that it defines without a leading underscore.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any, ForwardRef

HEAD = """# Python interface

Written by `python tools/reference_pages.py` from the docstrings; not edited by hand.
[What is stable](stability.md) lists the interfaces that keep their meaning between versions.
[Each encoding](each_encoding.md) gives the mathematics of each encoding."""
LAB = (
    "question", "choice_question", "string_question", "transcription_question", "registry", "ceilings", "brute_force",
    "run_config", "study", "study_runner", "result", "model", "trainer", "evaluation", "distributed",
    "distributed_training",
)  # fmt: skip
MODULES = (
    "orderproof",
    "orderproof.pytest_plugin",
    "orderproof.errors",
    "orderproof.positions",
    "orderproof.encodings",
    "orderproof.encodings.schedules",
    "orderproof.encodings.layer_patterns",
    "orderproof.encodings.rotary_layout",
    "orderproof.blocks",
    "orderproof.models",
    "orderproof.report",
    "orderproof.claims",
    *(f"orderproof.lab.{name}" for name in LAB),
)
LINE_LENGTH = 100
ADDRESS = re.compile(r"<.* at 0x[0-9a-f]+>")
MODULE_PREFIX = re.compile(r"\b(?:orderproof|torch|typing|collections\.abc|pathlib)(?:\.\w+)*\.(?=[A-Z])")


def python_api_page() -> str:
    """The page, in Markdown."""
    described: dict[int, str] = {}
    return "\n\n".join([HEAD, *(_module_section(name, described) for name in MODULES)]) + "\n"


def public_names(name: str) -> list[str]:
    """The public names of a module, sorted."""
    module = importlib.import_module(name)
    declared = getattr(module, "__all__", None)
    if declared is not None:
        return sorted(declared)
    if module.__file__ is not None and module.__file__.endswith("__init__.py"):
        tree = ast.parse(inspect.getsource(module))
        imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
        return sorted(alias.asname for node in imports for alias in node.names if alias.asname)
    return sorted(
        key
        for key, value in vars(module).items()
        if not key.startswith(("_", "pytest_"))
        and inspect.isroutine(value) | inspect.isclass(value)
        and getattr(value, "__module__", "") == name
    )


def _module_section(name: str, described: dict[int, str]) -> str:
    """One module. `described`: the full names of the objects that have an entry already, by id."""
    module = importlib.import_module(name)
    first = inspect.cleandoc(module.__doc__ or "").partition("\n\n")[0]
    entries = []
    for key in public_names(name):
        value = getattr(module, key)
        known = described.setdefault(id(value), f"{name}.{key}")
        entries.append(_entry(key, value) if known == f"{name}.{key}" else f"### {key}\n\nThe same as `{known}`.")
    return "\n\n".join([f"## {name}", _markdown(first), *entries])


def _entry(name: str, value: Any) -> str:
    """One name: heading, signature, docstring, members."""
    if isinstance(value, ModuleType):
        listed = value.__name__ in MODULES
        anchor = value.__name__.replace(".", "")
        target = f"[`{value.__name__}`](#{anchor})" if listed else f"`{value.__name__}`"
        return f"### {name}\n\nThe module {target}. {_summary(value)}"
    parts = [f"### {name}"]
    if not callable(value) or not hasattr(value, "__qualname__"):
        text = MODULE_PREFIX.sub("", str(value))
        return "\n\n".join([*parts, _code(f"{name} = {text}")])
    parts.append(_code(_signature(name, value)))
    text = inspect.getdoc(value) if not inspect.isclass(value) else _own_docstring(value)
    parts.append(_markdown(text or ""))
    if inspect.isclass(value):
        parts.append("\n".join(_members(value)))
    return "\n\n".join(part for part in parts if part)


def _own_docstring(cls: type) -> str:
    """The docstring written for this class; dataclasses and pydantic generate or inherit others."""
    text = vars(cls).get("__doc__") or ""
    return "" if dataclasses.is_dataclass(cls) and text.startswith(f"{cls.__name__}(") else inspect.cleandoc(text)


def _members(cls: type) -> Iterator[str]:
    """The public methods and properties that a class defines itself."""
    for key, value in vars(cls).items():
        if key.startswith("_") or key in ("model_config", "model_post_init", "extra_repr"):
            continue
        function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if isinstance(function, property) or hasattr(function, "func"):
            inner = function.fget if isinstance(function, property) else function.func
            if inner is not None and inner.__doc__:
                yield f"- `{key}`: {_summary(inner)}"
        elif isinstance(function, FunctionType) and function.__doc__:
            yield f"- `{_one_line(key, function)}`: {_summary(function)}"


class _Text:
    """An annotation or default whose `repr` is its source text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _source_text(value: object) -> object:
    if isinstance(value, ForwardRef):
        return _Text(value.__forward_arg__)
    return _Text(value) if isinstance(value, str) else value


def _is_annotated(parameter: inspect.Parameter) -> bool:
    """True for `Annotated[T, ...]`, whose metadata is for pydantic and not for readers."""
    return hasattr(parameter.annotation, "__metadata__")


def _signature_of(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    parameters = []
    for each in found.parameters.values():
        default = each.default
        if default is not each.empty and (inspect.isclass(default) or ADDRESS.search(repr(default))):
            default = _Text(getattr(default, "__name__", "..."))
        annotation = getattr(each.annotation, "__origin__", each.annotation) if _is_annotated(each) else each.annotation
        parameters.append(each.replace(annotation=_source_text(annotation), default=default))
    returns = found.empty if inspect.isclass(function) else _source_text(found.return_annotation)
    return found.replace(parameters=parameters, return_annotation=returns)


def _signature(name: str, function: Callable[..., Any]) -> str:
    """The signature, on one line or with one parameter a line."""
    keyword = "class " if inspect.isclass(function) else "def "
    found = _signature_of(function)
    if found is None:
        return keyword + name
    whole = MODULE_PREFIX.sub("", f"{keyword}{name}{found}")
    if len(whole) <= LINE_LENGTH:
        return whole
    lines: list[str] = []
    kinds: set[object] = set()
    for each in found.parameters.values():
        if each.kind is each.KEYWORD_ONLY and not kinds & {each.KEYWORD_ONLY, each.VAR_POSITIONAL}:
            lines.append("    *,")
        kinds.add(each.kind)
        lines.append(MODULE_PREFIX.sub("", f"    {each},"))
    returns = "" if found.return_annotation is found.empty else f" -> {found.return_annotation!r}"
    return "\n".join([f"{keyword}{name}(", *lines, f"){returns}"])


def _one_line(name: str, function: Callable[..., Any]) -> str:
    """The signature of a method without `self`."""
    found = _signature_of(function)
    if found is None:
        return name
    parameters = list(found.parameters.values())
    bound = found.replace(
        parameters=parameters[1:] if parameters and parameters[0].name in ("self", "cls") else parameters
    )
    return MODULE_PREFIX.sub("", f"{name}{bound}")


def _summary(value: object) -> str:
    """The first paragraph of a docstring, on one line."""
    return _markdown(" ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split()))


def _code(text: str) -> str:
    return f"```text\n{text}\n```"


def _markdown(text: str) -> str:
    """A docstring as Markdown: two backticks become one, and nothing outside code is a link or bold."""
    return "\n".join(line if line.startswith("    ") else _escaped(line) for line in text.splitlines())


def _escaped(line: str) -> str:
    return line.replace("``", "`").replace("](", "]\\(").replace("**", "\\*\\*")
