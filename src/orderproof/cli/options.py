"""Options shared by several commands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal, cast, get_args

import typer

from orderproof.catalogue.laws import compares_engines, find_law
from orderproof.errors import UsageError
from orderproof.records.audit import Expectation
from orderproof.subject_spec import MODEL_KINDS, MODES, kind_assumption

SUBJECT = (
    "A checkpoint folder or hub id; arch:NAME (an architecture of transformers without weights; "
    "arch:llama?num_hidden_layers=4 sets configuration values); file.py:name / package.module:name "
    "(a module, or a function that returns one); or an ONNX file."
)
AttentionName = Literal["sdpa", "eager"]
DtypeName = Literal["bfloat16", "float16", "float32"]

Laws = Annotated[
    list[str] | None,
    typer.Option(
        "--law",
        help="A law by name or code; repeatable. It is expected to hold, a property too, unless --as or --expect says "
        "otherwise: --expect NAME=any. All laws by default.",
    ),
]
Length = Annotated[
    int | None,
    typer.Option("--length", help="Number of tokens of the recorded graph; by default chosen for the model."),
]
Expect = Annotated[
    list[str] | None,
    typer.Option(
        "--expect",
        metavar="LAW=holds|fails|any",
        help="Set the expectation for a law, which makes it a check: permutation=fails; repeatable.",
    ),
]


def _checked_kind(kind: str | None) -> str | None:
    kind_assumption(kind)
    return kind


def _checked_mode(mode: str) -> str:
    if mode not in MODES:
        raise UsageError(f"expected --mode {' or --mode '.join(MODES)}; got {mode!r}")
    return mode


Kind = Annotated[
    str | None,
    typer.Option(
        "--as",
        metavar="|".join(MODEL_KINDS),
        callback=_checked_kind,
        help="The kind of the model: expect what a decoder or an encoder should do. By default the model's own.",
    ),
]
Json = Annotated[
    str | None, typer.Option("--json", metavar="PATH", help="Write JSON (schema version 2); - for standard output.")
]
Html = Annotated[
    str | None,
    typer.Option("--html", metavar="PATH", help="Write one self-contained HTML page; - for standard output."),
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
        "--sarif",
        metavar="PATH",
        help="Write SARIF 2.1.0, a result for each failed or undecided check; - for standard output.",
    ),
]
Markdown = Annotated[
    str | None,
    typer.Option("--markdown", metavar="PATH", help="Write a section for a model card; - for standard output."),
]
Certificate = Annotated[
    str | None,
    typer.Option("--certificate", metavar="PATH", help="Write the certificates of all proofs; - for standard output."),
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the random inputs.")]
Timeout = Annotated[
    float,
    typer.Option(
        "--timeout",
        metavar="SECONDS",
        min=0.001,
        help="Time limit for each law, which is then undecided, and for the first call of a Python object.",
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict", help="Exit code 3 if a law that is expected of the model was not tested, for whatever reason."
    ),
]
Details = Annotated[bool, typer.Option("--details", help="Print every proof, comparison, witness and assumption too.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print no report and no progress; files and exit code only.")
]
Tiny = Annotated[bool, typer.Option("--tiny", help="Shrink an arch: subject and initialise it with random weights.")]
AttentionBackend = Annotated[
    AttentionName | None, typer.Option("--attention", help="Attention backend of a transformers model.")
]
Dtype = Annotated[
    DtypeName | None,
    typer.Option("--dtype", help="The dtype of a checkpoint; by default the one in which transformers loads it."),
]
Against = Annotated[
    list[str] | None,
    typer.Option(
        "--against",
        metavar="ENGINE",
        help="Compare with another implementation of the same checkpoint: mlx, onnx, ...; repeatable. "
        "See orderproof list engines.",
    ),
]
AllowNetwork = Annotated[
    bool, typer.Option("--allow-network", help="Allow the download of a hub id (safetensors only).")
]
Axis = Annotated[
    str | None,
    typer.Option(
        "--token-axis",
        metavar="AXIS",
        help="Index of the token axis of the inputs of file.py:name, or one for each input: none,1.",
    ),
]
OutputAxes = Annotated[
    list[str] | None,
    typer.Option(
        "--output-axes",
        metavar="NAME=batch,token,...",
        help="State the axes of an output of file.py:name instead of deriving them; NAME= is not needed for the only "
        "output. Other names than batch and token have no meaning; repeatable.",
    ),
]
Together = Annotated[
    bool, typer.Option("--together", help="Inputs of one length are one sequence: permute and replace them together.")
]
Mask = Annotated[
    str | None,
    typer.Option(
        "--mask",
        metavar="NAME[=real|pads]",
        help="State the argument of file.py:name that takes a padding mask [row, token], and whether 1 or True is at "
        "real tokens or at pads; none: there is none. By default it is found by its name or by its effect.",
    ),
]
PositionIds = Annotated[
    str | None,
    typer.Option(
        "--position-ids",
        metavar="NAME",
        help="State the argument of file.py:name that takes position ids [row, token]; none: there is none.",
    ),
]


Mode = Annotated[
    str,
    typer.Option(
        "--mode",
        metavar="|".join(MODES),
        callback=_checked_mode,
        help="The mode in which file.py:name is audited: train is the forward of training, with dropout and the "
        "statistics of the batch. A module is audited in eval mode by default, whatever its mode.",
    ),
]

Role = Annotated[
    list[str] | None,
    typer.Option(
        "--role",
        metavar="NAME=ROLE",
        help="State the role of an input of file.py:name instead of deriving it: mask, mask:real, mask:pads, "
        "positions, companion (moves with the tokens), held (the same in every call) or cache; repeatable.",
    ),
]


def parse_settings(texts: Iterable[str] | None) -> dict[str, str]:
    """`["letters=2"]` as a mapping. Raises `UsageError`."""
    settings: dict[str, str] = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise UsageError(f"expected a setting as KEY=VALUE; got {text!r}")
        if name in settings:
            raise UsageError(f"expected setting {name!r} once; got {name}={settings[name]} and {text}")
        settings[name] = value
    return settings


def check_laws(names: Iterable[str] | None, against: Sequence[str] | None = None) -> None:
    """Raises `UsageError` for an unknown law, or one that does not fit --against, before torch is imported."""
    for name in names or ():
        entry = find_law(name)
        if compares_engines(entry) and not against:
            raise UsageError(f"law {entry.name} compares the model with an engine: expected --against ENGINE with it")
        if against and not compares_engines(entry):
            raise UsageError(f"expected a law of ports (OP6xx) with --against; got {entry.name}")


def parse_expectations(texts: Iterable[str] | None) -> dict[str, Expectation]:
    """`["causal=holds"]` as a mapping. Raises `UsageError`."""
    expectations: dict[str, Expectation] = {}
    for text in texts or ():
        name, _, value = text.partition("=")
        if value not in get_args(Expectation):
            raise UsageError(f"expected --expect LAW=holds, LAW=fails or LAW=any; got {text!r}")
        expectations[find_law(name).name] = cast("Expectation", value)
    return expectations


def check_exists(path: str | Path | None, what: str) -> None:
    """Raises `UsageError` if there is no such file, before what reads it is imported; `what`: "a certificate file"."""
    if path is not None:
        try:
            Path(path).expanduser().stat()
        except OSError as error:
            raise UsageError(f"expected {what}; {str(path)!r} cannot be read: {error.strerror}") from None
