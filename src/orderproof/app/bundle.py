"""Modules in one script: a page opened from disk may not import its neighbours, so they are put in it.

Each file becomes a function scope of its own that returns what the file exports, the imported ones first:

    import { a } from "./x.js";              const y_js = (() => {
    export const b = a + 1;                  const { a } = x_js;
                                             const b = a + 1;
                                             return { b };
                                             })();

The files stay ES modules that a browser can load one by one. The forms written above are the ones understood: named
imports on one line, `export` before a declaration. Anything else is an error here and never a broken page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from orderproof.errors import UsageError

_IMPORT = re.compile(r'^import \{ ([\w, ]+) \} from "\./(\w+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async function|function\*?|const|class) )", re.MULTILINE)
_EXPORTED = re.compile(r"^export (?:async function|function\*?|const|class) (\w+)", re.MULTILINE)
_LEFT = re.compile(r"^(?:import|export)\b.*$", re.MULTILINE)


def bundle(modules: Mapping[str, str], start: str) -> str:
    """The text of one script that runs the module ``start``. Raises `UsageError`."""
    ordered: list[str] = []
    _visit(modules, start, ordered, ())
    return '"use strict";\n' + "".join(_scoped(modules, name) for name in ordered)


def exported(source: str) -> list[str]:
    """The names a module exports."""
    return _EXPORTED.findall(source)


def _visit(modules: Mapping[str, str], name: str, ordered: list[str], above: tuple[str, ...]) -> None:
    """Put a module after all that it imports."""
    if name in above:
        raise UsageError(f"modules import each other in a circle: {' -> '.join((*above, name))}")
    if name in ordered:
        return
    if name not in modules:
        raise UsageError(f"{above[-1] if above else 'start'}: imports {name}.js, which does not exist")
    for names, other in _IMPORT.findall(modules[name]):
        _visit(modules, other, ordered, (*above, name))
        if unknown := set(names.split(", ")) - set(exported(modules[other])):
            raise UsageError(f"{name}.js imports {', '.join(sorted(unknown))}, which {other}.js does not export")
    ordered.append(name)


def _scoped(modules: Mapping[str, str], name: str) -> str:
    source = modules[name]
    body = _EXPORT.sub("", _IMPORT.sub(r"const { \1 } = \2_js;\n", source))
    if left := _LEFT.search(body):
        raise UsageError(f"{name}.js: a form of import or export that is not understood: {left.group()}")
    if "</script" in body:
        raise UsageError(f"{name}.js: a script in a page cannot hold </script")
    return f"const {name}_js = (() => {{\n{body}return {{ {', '.join(exported(source))} }};\n}})();\n"
