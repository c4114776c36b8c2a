"""The page of the forks of engines, from the outcomes of each."""

from __future__ import annotations

from collections.abc import Mapping

from orderproof.report.markdown_table import markdown_table
from tests.ports.config_mistakes import FORKS

BY_ITSELF = "differs by itself: "

HEAD = """# Forks of the reading of a configuration

Written by `python -m tests.ports.config_forks`; not edited by hand. [How to audit a serving
engine](../../how_to/audit_a_serving_engine.md).

Each engine is the library itself, whose reader of `config.json` makes one mistake: a key has another value when the
engine reads it. The audit compares this fork with transformers, and is to name the key and the value. *named*: the
difference is found, and the one setting that explains it, up to rounding, is the one that was changed. *not read*: the
engine computes the same, since it does not read this key. *refused*: it does not take the changed configuration.
*differs by itself*: it differs from transformers without a fork, as the table below says; nothing is planted. *not
compared*: it has no such architecture, or does not compute it here. The reader of mistral.rs is compiled, and that of
llama.cpp is a converter: they too are given a `config.json` with one other value."""


def _cell(said: str | None) -> str:
    return "not run" if said is None else "differs by itself" if said.startswith(BY_ITSELF) else said


def page(results: Mapping[str, Mapping[str, str]], versions: Mapping[str, str], planted: Mapping[str, int]) -> str:
    """The page of the outcomes by engine and fork."""
    engines = list(results)
    rows = [
        (name, f"`{FORKS[name].setting}`: {FORKS[name].assumed}", *(_cell(results[e].get(name)) for e in engines))
        for name in FORKS
    ]
    own = {
        (e, said.removeprefix(BY_ITSELF), ", ".join(name for name in FORKS if results[e].get(name) == said)): None
        for e in engines for said in results[e].values() if said.startswith(BY_ITSELF)
    }  # fmt: skip
    read = {e: sum(o == "named" or o.startswith("found") for o in results[e].values()) for e in engines}
    named = {e: sum(o == "named" for o in results[e].values()) for e in engines}
    head = ("mistake of the reader", "to be named", *engines)
    counts = [(e, versions[e], str(read[e]), str(named[e])) for e in engines]
    total = ("all", "", str(sum(read.values())), str(sum(named.values())))
    tests = "; ".join(f"{count} {where}" for where, count in planted.items())
    return "\n\n".join(
        [
            HEAD, markdown_table(("engine", "version", "found", "named"), [*counts, total], right=(2, 3)),
            markdown_table(head, rows), "## Differs by itself",
            markdown_table(("engine", "what explains it", "mistakes"), list(own)),
            f"Planted in the tests besides: {tests}.",
        ]
    ) + "\n"  # fmt: skip


def planted_in_tests() -> dict[str, int]:
    """The numbers of differences that the tests plant in other engines, by where."""
    from tests.ports import test_encoders, test_engine_side, test_planted_differences

    return {
        "in the modules and calls of transformers": len(test_planted_differences.CASES),
        "in an engine in numpy, in a process of its own": len(test_engine_side.CASES),
        "in encoders": len(test_encoders.CASES),
    }
