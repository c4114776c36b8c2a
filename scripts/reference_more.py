"""The reference pages of the lemmas, the encodings and the claims, from the docstrings of their files."""

from __future__ import annotations

import importlib
import inspect

from orderproof import encodings
from orderproof.claims import Claim, claims
from orderproof.claims.claim import Ground
from orderproof.encodings import PositionalEncoding
from orderproof.prover.rule import PLAIN, rules

WRITTEN = "Written by `python scripts/reference.py` from the files of `{}`; not edited by hand."
LEMMAS_HEAD = f"""# The lemmas

{WRITTEN.format("src/orderproof/prover/rules/")}

A lemma lets a fact about an operator's result follow from facts about its operands. A rule applies it to a family of
operators of torch; an operator without a rule gives *nothing follows*, never a proof. `orderproof list rules` says how
many architectures of transformers use each operator. [How to add one](../how_to/add_a_lemma.md).

What needs no file of its own:

"""
ENCODINGS_HEAD = f"""# Each encoding

{WRITTEN.format("src/orderproof/encodings/")}

The formula of each encoding that `encodings.get(name)` finds, and where it comes from. What the tests and the audits
say of them stands in [one table](encodings.md). [How to use one](../how_to/use_an_encoding.md),
[how to add one](../how_to/add_an_encoding.md)."""
CLAIMS_HEAD = f"""# The claims

{WRITTEN.format("src/orderproof/claims/")}

What people say about attention and the order of tokens, each as something that is run: `orderproof claims`, or
`orderproof claims 1 4` for two of them. A claim rests on grounds. A ground asks one thing of one subject: a law, proved
or refuted on its recorded graph; an identity, worked out with symbols; a look at the graph, or at numbers. The verdict
follows from what is found:

- *proved*: every ground that the statement speaks of came out as it says, by a proof or by a counterexample;
- *shown*: the same, but one of them was only looked at;
- *refuted*: one came out the other way;
- *undecided*: one could not be settled.

Here stands the verdict that is documented. Exit code 0 says that the run found it, and every ground as it is given
here; 1 that it did not. Each ground carries a broken subject, and the tests see it found out.
[As JSON](claims_json.md)."""


def lemmas_page() -> str:
    """The page of the lemmas, in Markdown."""
    plain = "\n".join(f"- `{name}`: {text}" for name, text in PLAIN.items())
    files: dict[str, dict[str, list[str]]] = {}
    for rule in rules():
        files.setdefault(rule.module, {}).setdefault(rule.lemma, []).extend(rule.operators)
    return "\n\n".join([LEMMAS_HEAD + plain, *(_lemmas(module, files[module]) for module in sorted(files))]) + "\n"


def _lemmas(module: str, lemmas: dict[str, list[str]]) -> str:
    """One file, and what each of its lemmas covers."""
    title, text = _split(module)
    covered = [f"- `{lemma}`: {', '.join(f'`{o}`' for o in sorted(operators))}" for lemma, operators in lemmas.items()]
    return "\n\n".join([f"## {module.rpartition('.')[2]}", f"**{title}**", _verbatim(text), "\n".join(covered)])


def encodings_page() -> str:
    """The page of the encodings, in Markdown."""
    return "\n\n".join([ENCODINGS_HEAD, *(_encoding(encodings.get(name)) for name in encodings.names())]) + "\n"


def _encoding(found: type[PositionalEncoding]) -> str:
    """One encoding."""
    title, text = _split(found.__module__)
    return "\n\n".join([f"## {found.name}", f"**{title}** `encodings.{found.__name__}`", text])


def claims_page() -> str:
    """The page of the claims, in Markdown."""
    rows = [f"| [{c.number}](#{c.number}-{c.name}) | {c.statement} | {c.documented} |" for c in claims()]
    table = "\n".join(["| claim | as people say it | verdict |", "| --- | --- | --- |", *rows])
    return "\n\n".join([CLAIMS_HEAD, table, *map(_claim, claims())]) + "\n"


def _claim(claim: Claim) -> str:
    """One claim."""
    module = next(m for m in _claim_modules() if getattr(importlib.import_module(m), "CLAIM", None) is claim)
    _, text = _split(module)
    rows = [f"| {g.what} | {_subject(g)} | {g.expected} |" for g in claim.grounds]
    return "\n\n".join(
        [
            f"## {claim.number} {claim.name}",
            f"**{claim.statement}** {claim.documented.capitalize()}.",
            f"*Exactly:* {claim.exact}",
            "\n".join(f"- {condition[:1].upper()}{condition[1:]}." for condition in claim.conditions),
            text,
            "\n".join(["| asked | of | is to come out |", "| --- | --- | --- |", *rows]),
        ]
    )


def _claim_modules() -> list[str]:
    import pkgutil

    package = importlib.import_module("orderproof.claims")
    return [f"{package.__name__}.{info.name}" for info in pkgutil.iter_modules(package.__path__)]


def _subject(ground: Ground) -> str:
    return " ".join((inspect.getdoc(ground.subject) or "").partition("\n\n")[0].split())


def _split(module: str) -> tuple[str, str]:
    """The first line of a module's docstring, and the rest."""
    first, _, rest = inspect.cleandoc(importlib.import_module(module).__doc__ or "").partition("\n")
    return first, rest.strip("\n")


def _verbatim(text: str) -> str:
    """A lemma with its numbered cases, as it stands in its file."""
    return f"```text\n{text}\n```" if text else ""
