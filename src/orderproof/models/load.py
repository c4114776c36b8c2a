"""Load a subject from a specification, as on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from orderproof.errors import UsageError
from orderproof.models import python_objects
from orderproof.models.example_file import read_example
from orderproof.models.hf import architectures, checkpoint, hub
from orderproof.models.onnx_file import load_file
from orderproof.models.plain_module import Inputs, of_layout, refuse_layout
from orderproof.models.program_file import load_program
from orderproof.models.subject import Subject
from orderproof.models.torchscript.archive import load_script
from orderproof.subject_spec import NO_LAYOUT, Layout, check_spec


def load(
    spec: str,
    *,
    tiny: bool = False,
    attention: str | None = None,
    dtype: str | None = None,
    seed: int = 0,
    allow_network: bool = False,
    inputs: Inputs | None = None,
    layout: Layout = NO_LAYOUT,
    assume: Mapping[str, Any] | None = None,
    length: int | None = None,
) -> Subject:
    """Load a checkpoint folder, a hub id, `arch:NAME?key=value`, `file.py:name`, `module:name` or a file of a model.

    Args:
        spec: One of these forms.
        tiny: Build a tiny random model of an architecture on the CPU, not one of full size without weights.
        attention: "sdpa" or "eager"; by default the best backend of the model.
        dtype: "bfloat16", "float16" or "float32" of a checkpoint; by default the one in which transformers loads it.
        seed: Of the random weights of a tiny model, and of torch while a Python object is imported and called.
        allow_network: Download a hub id that is not in the local cache.
        inputs: Example inputs of a Python object, instead of those that it returns.
        layout: What the user states of the axes of a Python object.
        assume: Values that replace inferred ones, by the names in `orderproof.models.hf.assumptions.ASSUMABLE`; see
            also `from_module`.
        length: Of the example inputs of an ONNX file [tokens], where the file leaves it open.

    Raises:
        SubjectError: The model is not found or cannot be loaded, built or called.
        UsageError: An argument does not exist or does not fit.

    """
    form = check_spec(spec, tiny=tiny, attention=attention, dtype=dtype, allow_network=allow_network)
    if layout.example is not None:
        if inputs is not None:
            raise UsageError(f"{spec}: expected example inputs once; got inputs= and {layout.example}")
        inputs, layout = read_example(Path(layout.example).expanduser()), replace(layout, example=None)
    if form == "onnx":
        return load_file.load_onnx(Path(spec).expanduser(), inputs=inputs, layout=layout, assume=assume, length=length)
    if form == "program":
        path = Path(spec).expanduser()
        return of_layout(load_program(path), inputs, layout, name=path.name, assume=assume)
    if form == "script":
        return load_script(Path(spec).expanduser(), inputs, layout, assume)
    if form != "object":
        refuse_layout(spec, layout, "a model of transformers, whose axes are known")
        if inputs is not None:
            raise UsageError(f"{spec}: expected no inputs with a model of transformers; it draws its own")
    if form == "architecture":
        return architectures.load_architecture(spec, tiny=tiny, attention=attention, seed=seed, assume=assume)
    if form == "folder":
        return checkpoint.load_checkpoint(Path(spec).expanduser(), attention=attention, dtype=dtype, assume=assume)
    if form == "object":
        return python_objects.load_object(spec, inputs=inputs, layout=layout, seed=seed, assume=assume)
    return hub.load_from_hub(spec, attention=attention, dtype=dtype, allow_network=allow_network, assume=assume)
