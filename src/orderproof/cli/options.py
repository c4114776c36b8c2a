"""Options that several commands share, each defined once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, cast, get_args

import typer

from orderproof.errors import UsageError
from orderproof.record import Expectation

SUBJECT = (
    "A checkpoint folder or hub id; arch:NAME (an architecture of transformers, no weights; "
    "arch:llama?num_hidden_layers=4 sets configuration values); or file.py:name / package.module:name "
    "(a module, or a function returning one)."
)
Attention = Literal["sdpa", "eager"]

Laws = Annotated[
    list[str] | None, typer.Option("--law", help="A law by name or code; may be repeated. All by default.")
]
Length = Annotated[int | None, typer.Option("--length", help="Tokens to export with; chosen by default.")]
Expect = Annotated[
    list[str] | None,
    typer.Option(
        "--expect", metavar="LAW=holds|fails|any", help="Override what is expected of a law; may be repeated."
    ),
]
Json = Annotated[
    str | None, typer.Option("--json", metavar="PATH", help="Write JSON (schema version 1); - for standard output.")
]
Html = Annotated[
    str | None, typer.Option("--html", metavar="PATH", help="Write one self-contained page; - for standard output.")
]
Junit = Annotated[
    str | None,
    typer.Option(
        "--junit", metavar="PATH", help="Write JUnit XML, a test case for each finding; - for standard output."
    ),
]
Sarif = Annotated[
    str | None,
    typer.Option(
        "--sarif", metavar="PATH", help="Write SARIF 2.1.0, a result for each unmet finding; - for standard output."
    ),
]
Markdown = Annotated[
    str | None,
    typer.Option("--markdown", metavar="PATH", help="Write a section for a model card; - for standard output."),
]
Certificate = Annotated[
    str | None,
    typer.Option(
        "--certificate", metavar="PATH", help="Write the certificate of what is proved; - for standard output."
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the random inputs.")]
Timeout = Annotated[
    float, typer.Option("--timeout", metavar="SECONDS", help="Time for each law; one that takes longer is undecided.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No report and no progress; files and the exit code only.")]
Tiny = Annotated[bool, typer.Option("--tiny", help="Shrink an arch: subject and give it random weights.")]
Backend = Annotated[Attention | None, typer.Option("--attention", help="Attention backend of a transformers model.")]
Network = Annotated[bool, typer.Option("--allow-network", help="Let a hub id be downloaded (safetensors only).")]
Axis = Annotated[
    int | None, typer.Option("--token-axis", help="The axis of the inputs that runs over tokens (file.py:name).")
]


def settings(given: Iterable[str] | None) -> dict[str, str]:
    """`["letters=2"]` as a mapping. Raises `UsageError`."""
    found: dict[str, str] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise UsageError(f"expected a setting as KEY=VALUE; got {text!r}")
        if name in found:
            raise UsageError(f"expected setting {name!r} once; got {name}={found[name]} and {text}")
        found[name] = value
    return found


def expectations(given: Iterable[str] | None) -> dict[str, Expectation]:
    """`["causal=holds"]` as a mapping. Raises `UsageError`."""
    from orderproof.laws.measured import find

    found: dict[str, Expectation] = {}
    for text in given or ():
        name, _, value = text.partition("=")
        if value not in get_args(Expectation):
            raise UsageError(f"expected --expect law=holds, law=fails or law=any; got {text!r}")
        found[find(name).name] = cast("Expectation", value)
    return found
