"""Which theorems of proofs/ a module names in its docstring, and the table of them on the page of the lemmas.

A docstring says `Machine-checked (proofs/FILE.v): NAME, NAME.` and `Not machine-checked: REASON.`, each from the start
of a line to the end of the sentence.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator

from orderproof.diagnosis.rule import rules

CHECKED = re.compile(r"^Machine-checked \((proofs/[\w/]+\.v)\): ([\w,\s]+)\.$", re.MULTILINE)
UNCHECKED = re.compile(r"^Not machine-checked: (.+?)\.$", re.MULTILINE | re.DOTALL)
ANALYSIS_THEOREMS = {  # lemmas of the analysis itself, without a rule file
    "given": "fact_given",
    "same_in_both_runs": "fact_constant",
    "part_of_a_tuple": "fact_part",
    "pure_function_of_unmoved": "fact_pure",
}
STEPS = "orderproof.theorems.operators"
STEP_MODULES = ("orderproof.theorems.walks.depth", "orderproof.theorems.agreement")
HEAD = """## Machine-checked

Statements with a proof that Coq checks: `make theorems` compiles them and prints that none rests on an axiom
([what this means](../explanation/machine_checked.md)). The last column is what the theorems do not say."""
STEPS_HEAD = """The steps of [theorems about every length](../explanation/theorems.md), from
`src/orderproof/theorems/`:"""


def machine_checked_section() -> str:
    """The tables of the lemmas and of the steps, in Markdown."""
    analysis = [(f"`{name}`", "", f"`fact.v`: `{theorem}`", "") for name, theorem in ANALYSIS_THEOREMS.items()]
    lemmas: dict[tuple[str, str], None] = dict.fromkeys((each.module, each.lemma) for each in rules())
    rows = [(f"`{lemma}`", _link(module), *columns(module)) for module, lemma in sorted(lemmas)]
    steps = [(_step_name(module), *columns(module)) for module in step_modules()]
    headers = ("lemma", "file", "theorems in Coq", "not machine-checked")
    tables = [_table(headers, [*analysis, *rows]), STEPS_HEAD, _table(("steps", *headers[2:]), steps)]
    return "\n\n".join([HEAD, *tables])


def step_modules() -> Iterator[str]:
    """The modules with steps of theorems about every length."""
    for info in pkgutil.walk_packages(importlib.import_module(STEPS).__path__, f"{STEPS}."):
        if not info.ispkg:
            yield info.name
    yield from STEP_MODULES


def columns(module: str) -> tuple[str, str]:
    """The theorems that a module names, and what it says is not machine-checked."""
    text = inspect.cleandoc(importlib.import_module(module).__doc__ or "")
    checked = [
        f"`{file.rpartition('/')[2]}`: " + ", ".join(f"`{name.strip()}`" for name in names.split(","))
        for file, names in CHECKED.findall(text)
    ]
    reasons = [" ".join(reason.split()) for reason in UNCHECKED.findall(text)]
    return "; ".join(checked), "; ".join(reasons)


def _link(module: str) -> str:
    name = module.rpartition(".")[2]
    return f"[{name}](#{name})"


def _step_name(module: str) -> str:
    return f"`{module.removeprefix('orderproof.theorems.').replace('.', '/')}.py`"


def _table(headers: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [headers, ("---",) * len(headers), *rows])
