"""ES modules bundled into one script: a page opened from disk cannot import files.

Each file becomes a function that returns its exports, imported files first:

    import { a } from "./x.js";              const y_js = (() => {
    export const b = a + 1;                  const { a } = x_js;
                                             const b = a + 1;
                                             return { b };
                                             })();

The files remain ES modules that a browser can load one by one. Supported forms are named imports on one line and
`export` before a declaration; every other form is an error here, so that no page breaks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from orderproof.errors import UsageError

_IMPORT = re.compile(r'^import \{ ([\w, ]+) \} from "\./(\w+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async function|function\*?|const|class) )", re.MULTILINE)
_EXPORTED = re.compile(r"^export (?:async function|function\*?|const|class) (\w+)", re.MULTILINE)
_UNSUPPORTED = re.compile(r"^(?:import|export)\b.*$", re.MULTILINE)


def bundle_modules(modules: Mapping[str, str], start: str) -> str:
    """One script that runs the module ``start``. Raises `UsageError`."""
    ordered: list[str] = []
    _order_dependencies(modules, start, ordered, ())
    return '"use strict";\n' + "".join(_wrap_module(modules, name) for name in ordered)


def exported_names(source: str) -> list[str]:
    """The names a module exports."""
    return _EXPORTED.findall(source)


def _order_dependencies(modules: Mapping[str, str], name: str, ordered: list[str], ancestors: tuple[str, ...]) -> None:
    """Append a module to `ordered` after its imports."""
    if name in ancestors:
        raise UsageError(f"modules import each other in a circle: {' -> '.join((*ancestors, name))}")
    if name in ordered:
        return
    if name not in modules:
        raise UsageError(f"{ancestors[-1] if ancestors else 'start'}: imports {name}.js, which does not exist")
    for names, other in _IMPORT.findall(modules[name]):
        _order_dependencies(modules, other, ordered, (*ancestors, name))
        if unknown := set(names.split(", ")) - set(exported_names(modules[other])):
            raise UsageError(f"{name}.js imports {', '.join(sorted(unknown))}, which {other}.js does not export")
    ordered.append(name)


def _wrap_module(modules: Mapping[str, str], name: str) -> str:
    source = modules[name]
    body = _EXPORT.sub("", _IMPORT.sub(r"const { \1 } = \2_js;\n", source))
    if left := _UNSUPPORTED.search(body):
        raise UsageError(f"{name}.js: unsupported form of import or export: {left.group()}")
    if "</script" in body:
        raise UsageError(f"{name}.js: a script in a page cannot contain </script")
    return f"const {name}_js = (() => {{\n{body}return {{ {', '.join(exported_names(source))} }};\n}})();\n"
