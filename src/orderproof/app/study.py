"""The curves of a trained comparison as a file (schema version 1), as far as the page draws them.

What the page does not draw is left out, so that a study may hold more than is said here.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orderproof.errors import UsageError
from orderproof.report.reading import problem_of, text_of

Finite = Annotated[float, Field(allow_inf_nan=False)]


class _Drawn(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class CurvePoint(_Drawn):
    """The score after so many steps: interquartile mean over seeds, and its interval."""

    step: int
    iqm: Finite
    low: Finite
    high: Finite


class LengthPoint(_Drawn):
    """The score at one length, and the most a reader that is blind to order can score there."""

    length: int
    trained: bool
    iqm: Finite
    low: Finite
    high: Finite
    ceiling: Finite | None = None


class Cell(_Drawn):
    """One model of the comparison."""

    label: str
    encoding: str
    causal: bool
    layers: int
    curve: tuple[CurvePoint, ...]
    lengths: tuple[LengthPoint, ...]
    proved: tuple[str, ...] = ()


class Published(_Drawn):
    """A number someone else printed."""

    label: str
    text: str
    source: str


class Study(_Drawn):
    """One comparison."""

    version: Literal[1] = Field(alias="schema", serialization_alias="schema")
    kind: Literal["study"]
    study: str
    question: str
    measure: str
    cells: Annotated[tuple[Cell, ...], Field(min_length=1)]
    trained_lengths: tuple[int, int]
    published: tuple[Published, ...] = ()
    seconds: Finite | None = None


def bundled_study() -> Study:
    """The study `who_did_what`, which comes with the page; docs/studies tells how it was made."""
    text = resources.files("orderproof.app").joinpath("static", "who_did_what.json").read_text(encoding="utf-8")
    return Study.model_validate_json(text)


def read_study(path: str | Path) -> Study:
    """A study from its JSON file. Raises `UsageError`."""
    text = text_of(path, "a study")
    try:
        return Study.model_validate_json(text)
    except ValidationError as error:
        raise UsageError(f"{path}: not a study of schema version 1: {problem_of(error)}") from None
