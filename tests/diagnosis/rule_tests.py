"""The tests of single rules, found by listing `tests/diagnosis/rules/`.

`rules/NAME.py` tests `src/orderproof/diagnosis/rules/NAME.py`. It defines `SAMPLES`, calls of the rule's operators, and
`MUTANTS`, mistakes in the rule that the samples must reveal. The generic tests of rules, of the rechecker and of
mutants run them.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any


def defined_by_rule_tests(variable: str) -> Iterator[Any]:
    """The members of the lists that the files define under this variable name, file by file."""
    package = importlib.import_module("tests.diagnosis.rules")
    for info in pkgutil.iter_modules(package.__path__):
        if not info.name.startswith("test_"):
            yield from getattr(importlib.import_module(f"{package.__name__}.{info.name}"), variable, ())
