"""The reference pages of the lemmas, the encodings and the claims, from the docstrings of their files."""

from __future__ import annotations

import importlib
import inspect

import machine_checked

from orderproof import encodings
from orderproof.claims import Claim, claims
from orderproof.claims.claim import ClaimCheck
from orderproof.diagnosis.lemma_summary import ANALYSIS_LEMMAS
from orderproof.diagnosis.rule import rules
from orderproof.encodings import PositionalEncoding

GENERATED_NOTE = "Written by `python tools/reference_pages.py` from the files of `{}`; not edited by hand."
LEMMAS_HEAD = f"""# The lemmas

{GENERATED_NOTE.format("src/orderproof/diagnosis/rules/")}

A lemma derives a fact about the result of an operator from facts about its operands. A rule applies a lemma to a family
of torch operators. For an operator without a rule, the prover derives nothing, so it never proves too much.
`orderproof list rules` shows how many architectures of transformers use each operator.
[How to add one](../how_to/add_a_lemma.md).

Lemmas of the analysis itself, which belong to no operator:

"""
ENCODINGS_HEAD = f"""# Each encoding

{GENERATED_NOTE.format("src/orderproof/encodings/")}

The formula and the source of each encoding that `encodings.get(name)` returns. Their claims, audits and rounding errors
are in [one table](encodings.md). [How to use one](../how_to/use_an_encoding.md),
[how to add one](../how_to/add_an_encoding.md)."""
CLAIMS_HEAD = f"""# The claims

{GENERATED_NOTE.format("src/orderproof/claims/")}

Common statements about attention and token order, each as a program: `orderproof claims`, or `orderproof claims 1 4`
for two of them. Each claim has supporting results. A supporting result tests one subject: a law, proved or refuted on
its recorded graph; an identity, derived symbolically; a look at the graph; or a numerical comparison. The verdict
follows from these results:

- *proved*: every result that the statement depends on is as stated; a law that holds is proved by lemmas, and a law
  that fails is refuted by a counterexample;
- *shown*: the same, but at least one result is numerical or a look at the graph;
- *refuted*: a result contradicts the statement;
- *undecided*: a result is undecided.

This page gives the documented verdicts. Exit code 0 means that the run reproduced the verdict and every result listed
here; exit code 1 means that it did not. Each result has a broken subject, and the tests check that it is detected.
[As JSON](claims_json.md)."""


def lemmas_page() -> str:
    """The page of the lemmas, in Markdown."""
    plain = "\n".join(f"- `{name}`: {text}" for name, text in ANALYSIS_LEMMAS.items())
    files: dict[str, dict[str, list[str]]] = {}
    for rule in rules():
        files.setdefault(rule.module, {}).setdefault(rule.lemma, []).extend(rule.operators)
    sections = [
        machine_checked.machine_checked_section(),
        *(_lemmas(module, files[module]) for module in sorted(files)),
    ]
    return "\n\n".join([LEMMAS_HEAD + plain, *sections]) + "\n"


def _lemmas(module: str, lemmas: dict[str, list[str]]) -> str:
    """One file: its docstring, and the operators of each lemma."""
    title, text = _docstring_parts(module)
    covered = [f"- `{lemma}`: {', '.join(f'`{o}`' for o in sorted(operators))}" for lemma, operators in lemmas.items()]
    return "\n\n".join([f"## {module.rpartition('.')[2]}", f"**{title}**", _text_block(text), "\n".join(covered)])


def encodings_page() -> str:
    """The page of the encodings, in Markdown."""
    return "\n\n".join([ENCODINGS_HEAD, *(_encoding(encodings.get(name)) for name in encodings.names())]) + "\n"


def _encoding(found: type[PositionalEncoding]) -> str:
    """One encoding."""
    title, text = _docstring_parts(found.__module__)
    return "\n\n".join([f"## {found.name}", f"**{title}** `encodings.{found.__name__}`", text])


def claims_page() -> str:
    """The page of the claims, in Markdown."""
    rows = [f"| [{c.number}](#{c.number}-{c.name}) | {c.statement} | {c.expected_verdict} |" for c in claims()]
    table = "\n".join(["| claim | statement | verdict |", "| --- | --- | --- |", *rows])
    return "\n\n".join([CLAIMS_HEAD, table, *map(_claim, claims())]) + "\n"


def _claim(claim: Claim) -> str:
    """One claim."""
    module = next(m for m in _claim_modules() if getattr(importlib.import_module(m), "CLAIM", None) is claim)
    _, text = _docstring_parts(module)
    rows = [f"| {check.statement} | {_subject(check)} | {check.expected} |" for check in claim.checks]
    return "\n\n".join(
        [
            f"## {claim.number} {claim.name}",
            f"**{claim.statement}** {claim.expected_verdict.capitalize()}.",
            f"*Exactly:* {claim.exact_statement}",
            "\n".join(f"- {condition[:1].upper()}{condition[1:]}." for condition in claim.conditions),
            text,
            _theorems(claim),
            "\n".join(["| test | subject | expected |", "| --- | --- | --- |", *rows]),
        ]
    )


def _theorems(claim: Claim) -> str:
    """The theorems in Coq that state it."""
    names = ", ".join(f"`{each.rpartition('.')[2]}`" for each in claim.theorems)
    files = sorted({f"`proofs/{each.rpartition('.')[0].replace('.', '/')}.v`" for each in claim.theorems})
    return f"[Machine-checked](../explanation/machine_checked.md): {names} ({', '.join(files)})."


def _claim_modules() -> list[str]:
    import pkgutil

    package = importlib.import_module("orderproof.claims")
    return [f"{package.__name__}.{info.name}" for info in pkgutil.iter_modules(package.__path__)]


def _subject(check: ClaimCheck) -> str:
    return " ".join((inspect.getdoc(check.make_subject) or "").partition("\n\n")[0].split())


def _docstring_parts(module: str) -> tuple[str, str]:
    """The first line of a module's docstring, and the rest."""
    first, _, rest = inspect.cleandoc(importlib.import_module(module).__doc__ or "").partition("\n")
    return first, rest.strip("\n")


def _text_block(text: str) -> str:
    """A docstring as preformatted text."""
    return f"```text\n{text}\n```" if text else ""
