"""Options shared by several commands."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args

import typer

from orderproof.catalogue.laws import compares_engines, find_law, needs_training_step
from orderproof.cli import completion
from orderproof.errors import UsageError
from orderproof.records.audit import Expectation
from orderproof.subject_spec import (
    JAX_PYTHON_VARIABLE,
    MODEL_KINDS,
    MODES,
    check_length,
    kind_assumption,
    parse_layout,
    parse_shapes,
    parse_stated_axes,
)

SUBJECT = (
    "A checkpoint folder or hub id; arch:NAME (an architecture of transformers without weights; "
    "arch:llama?num_hidden_layers=4 sets configuration values); file.py:name / package.module:name "
    "(a module, or a function that returns one); an ONNX file; a program of torch.export (file.pt2); or a "
    "TorchScript file (file.pt)."
)
AttentionName = Literal["sdpa", "eager"]
DtypeName = Literal["bfloat16", "float16", "float32"]


def _checking(check: Callable[[Any], object]) -> Callable[[Any], Any]:
    """A callback that gives the value of an option back after a check, which raises `UsageError`."""

    def callback(value: Any) -> Any:
        check(value)
        return value

    return callback


def _check_mode(mode: str) -> None:
    if mode not in MODES:
        raise UsageError(f"expected --mode {' or --mode '.join(MODES)}; got {mode!r}")


def _set_jax_python(path: str | None) -> None:
    """Name the interpreter for this process and those that it starts. Raises `UsageError`."""
    if path is None:
        return
    if shutil.which(path) is None:
        raise UsageError(f"expected --jax-python to name a Python that can be run; got {path}")
    os.environ[JAX_PYTHON_VARIABLE] = path


def parse_expectations(texts: Iterable[str] | None) -> dict[str, Expectation]:
    """`["causal=holds"]` as a mapping. Raises `UsageError`."""
    expectations: dict[str, Expectation] = {}
    for text in texts or ():
        name, _, value = text.partition("=")
        if value not in get_args(Expectation):
            raise UsageError(f"expected --expect LAW=holds, LAW=fails or LAW=any; got {text!r}")
        expectations[find_law(name).name] = cast("Expectation", value)
    return expectations


Laws = Annotated[
    list[str] | None,
    typer.Option(
        "--law",
        autocompletion=completion.law_names,
        callback=_checking(lambda names: [find_law(name) for name in names or ()]),
        help="A law by name or code; repeatable. It is expected to hold, a property too, unless --as or --expect says "
        "otherwise: --expect NAME=any. All laws by default.",
    ),
]
Length = Annotated[
    int | None,
    typer.Option(
        "--length",
        callback=_checking(check_length),
        help="Number of tokens of the recorded graph; by default chosen for the model.",
    ),
]
Expect = Annotated[
    list[str] | None,
    typer.Option(
        "--expect",
        autocompletion=completion.expectations,
        callback=_checking(parse_expectations),
        metavar="LAW=holds|fails|any",
        help="Set the expectation for a law, which makes it a check: permutation=fails; repeatable.",
    ),
]
Kind = Annotated[
    str | None,
    typer.Option(
        "--as",
        metavar="|".join(MODEL_KINDS),
        callback=_checking(kind_assumption),
        autocompletion=completion.one_of(MODEL_KINDS),
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
        help="Time limit for each law, which is then undecided, for its proof for every length, and for the first call "
        "of a Python object.",
    ),
]
Budget = Annotated[
    str | None,
    typer.Option(
        "--budget",
        metavar="TIME",
        callback=_checking(lambda text: None if text is None else parse_duration(text)),
        help="The time for the whole audit: 90s, 10min, 2h. What finds most per second comes first; what does not "
        "fit is not checked.",
    ),
]
Resume = Annotated[
    Path | None,
    typer.Option(
        "--resume",
        metavar="FILE",
        help="Go on with the JSON report of the same audit, which was cut short: decide the laws that are left.",
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict", help="Exit code 3 if a law that is expected of the model was not tested, for whatever reason."
    ),
]
Fast = Annotated[
    bool,
    typer.Option(
        "--fast",
        help="Decide the laws that are proved only, and compare no calls of other lengths, rows or masks.",
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
        "ENGINE,ENGINE compares two with each other, as vllm@0.31.0,vllm@0.32.0. See orderproof list engines. "
        "file.py:name compares with a rewrite that has the same weights.",
    ),
]
EnginePython = Annotated[
    str | None,
    typer.Option(
        "--engine-python",
        metavar="PATH",
        help="The interpreter of an environment that has the engine of --against, instead of one that "
        "orderproof engines install made.",
    ),
]
BaselineFile = Annotated[
    Path | None,
    typer.Option("--baseline", metavar="FILE", help="Accept the findings that this file names, until they expire."),
]
WriteBaseline = Annotated[
    Path | None,
    typer.Option(
        "--write-baseline",
        metavar="FILE",
        help="Write the findings of this run that are not as expected to a baseline; reasons in FILE are kept.",
    ),
]
NoCache = Annotated[
    bool,
    typer.Option("--no-cache", help="Audit a subject of the configuration again, also if nothing has changed."),
]
Watch = Annotated[
    bool, typer.Option("--watch", help="Audit again after each change of a file in the folder of the subject.")
]
Jobs = Annotated[
    int,
    typer.Option("--jobs", metavar="N", min=1, help="Audit N subjects of the configuration at a time (on Linux)."),
]
JaxPython = Annotated[
    str | None,
    typer.Option(
        "--jax-python",
        metavar="PATH",
        callback=_checking(_set_jax_python),
        help="The Python with jax for a model of JAX; by default ORDERPROOF_JAX_PYTHON, or this one.",
    ),
]
AllowNetwork = Annotated[
    bool, typer.Option("--allow-network", help="Allow the download of a hub id (safetensors only).")
]
Axis = Annotated[
    str | None,
    typer.Option(
        "--token-axis",
        callback=_checking(lambda axis: parse_layout(axis, None)),
        metavar="AXIS",
        help="Index of the token axis of the inputs of file.py:name, or one for each input: none,1.",
    ),
]
OutputAxes = Annotated[
    list[str] | None,
    typer.Option(
        "--output-axes",
        callback=_checking(parse_stated_axes),
        metavar="NAME=batch,token,...",
        help="State the axes of an output of file.py:name instead of deriving them; NAME= is not needed for the only "
        "output. Other names than batch and token have no meaning; repeatable.",
    ),
]
Together = Annotated[
    bool, typer.Option("--together", help="Inputs of one length are one sequence: permute and replace them together.")
]
Mode = Annotated[
    str,
    typer.Option(
        "--mode",
        metavar="|".join(MODES),
        callback=_checking(_check_mode),
        autocompletion=completion.one_of(MODES),
        help="The mode in which file.py:name is audited: train is the forward of training, with dropout and the "
        "statistics of the batch. A module is audited in eval mode by default, whatever its mode.",
    ),
]

Role = Annotated[
    list[str] | None,
    typer.Option(
        "--role",
        callback=_checking(lambda roles: parse_layout(None, None, roles=roles)),
        metavar="NAME=ROLE",
        help="State the role of an argument of file.py:name instead of deriving it: mask (mask:real and mask:pads say "
        "where 1 or True is), positions, documents, companion (moves with the tokens), held (the same in every call; "
        "of an argument that is not given: its default), cache, or pads:0 (token ids with the id 0 at pads; pads:none: "
        "no id marks pads); repeatable.",
    ),
]
Shape = Annotated[
    list[str] | None,
    typer.Option(
        "--shape",
        callback=_checking(parse_shapes),
        metavar="NAME=2x80x320",
        help="State the sizes of an input of an ONNX file that the file leaves open; repeatable.",
    ),
]
Example = Annotated[
    str | None,
    typer.Option(
        "--example",
        metavar="FILE.npz",
        help="Example inputs from a file of numpy.savez, by the names of the inputs; those that it lacks are drawn.",
    ),
]


def parse_duration(text: str) -> float:
    """`"10min"` in seconds; a number alone is in seconds. Raises `UsageError`."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?(s|min|h|)", text.strip())
    seconds = float(found[1]) * {"": 1, "s": 1, "min": 60, "h": 3600}[found[2]] if found else 0.0
    if not seconds:
        raise UsageError(f"expected a time as 90s, 10min or 2h; got {text!r}")
    return seconds


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


def with_interpreter(against: list[str] | None, python: str | None) -> list[str] | None:
    """The engines of --against, of which one runs in this interpreter. Raises `UsageError`."""
    if python is None:
        return against
    from orderproof.ports.engines.registry import find_engine

    own = [spec for spec in against or () if not {":", ","} & set(spec) and find_engine(spec).has_environment]
    if len(own) != 1:
        raise UsageError(
            f"expected --engine-python with one --against of an engine with an environment of its own; got {len(own)} "
            "of them: name an interpreter as --against ENGINE:PATH"
        )
    return [f"{spec}:{python}" if spec == own[0] else spec for spec in against or ()]


def check_laws(names: Iterable[str] | None, against: Sequence[str] | None = None) -> None:
    """Raises `UsageError` for an unknown law, or one that does not fit --against, before torch is imported."""
    for name in names or ():
        entry = find_law(name)
        if needs_training_step(entry):
            raise UsageError(f"law {entry.name} is one of a training step: expected orderproof training file.py:step")
        if compares_engines(entry) and not against:
            raise UsageError(f"law {entry.name} compares the model with an engine: expected --against ENGINE with it")
        if against and not compares_engines(entry):
            raise UsageError(f"expected a law of ports (OP6xx) with --against; got {entry.name}")


def check_exists(path: str | Path | None, what: str) -> None:
    """Raises `UsageError` if there is no such file, before what reads it is imported; `what`: "a certificate file"."""
    if path is not None:
        try:
            Path(path).expanduser().stat()
        except OSError as error:
            raise UsageError(f"expected {what}; {str(path)!r} cannot be read: {error.strerror}") from None
