"""Programs of torch.export as modules."""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.export import ExportedProgram

from orderproof.errors import SubjectError
from orderproof.models.eval_mode import switch_mode


def exported_module(program: ExportedProgram, inputs: Any, name: str) -> tuple[nn.Module, Any]:
    """The module of a program, and its inputs: by default those with which it was exported.

    Raises `SubjectError` if it has no inputs.
    """
    module = program.module()
    switch_mode(module)  # it refuses, since it has one mode
    if inputs is not None:
        return module, inputs
    if program.example_inputs is None:
        raise SubjectError(f"{name}: the exported program has no example inputs; give them with inputs=")
    arguments, keywords = program.example_inputs
    if arguments and keywords:
        raise SubjectError(f"{name}: export the program with positional arguments or with keyword arguments, not both")
    return module, keywords or arguments
