"""The token input of a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from orderproof.errors import SubjectError
from orderproof.models.sample import Sample


class NoTokenInputError(SubjectError):
    """A model whose input is not a sequence of tokens, at any size."""


@dataclass(frozen=True)
class InputSpec:
    """The argument that receives the tokens, and how values for it are drawn."""

    argument: str
    draw: Callable[[int, int], Sample]  # (length, seed) -> inputs
    patch_embedding_path: str | None = None  # images: the submodule whose output is [batch, patch, width]
    patch_count: int | None = None  # images: the number of patches, fixed by the image size
    summary: str = ""  # for Subject.load_summary; empty or starting with a comma
