"""The part of a study's JSON (schema version 3) that the page draws; other fields are ignored."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orderproof.errors import UsageError
from orderproof.report.json_input import first_validation_error, read_text_file

Finite = Annotated[float, Field(allow_inf_nan=False)]


class _PageModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class PageCurvePoint(_PageModel):
    """A score during training: the interquartile mean over seeds and its interval."""

    step: int
    iqm: Finite
    low: Finite
    high: Finite


class PageLengthPoint(_PageModel):
    """The score at one length, with the ceiling of a predictor that ignores token order."""

    length: int
    in_training_range: bool
    iqm: Finite
    low: Finite
    high: Finite
    ceiling: Finite | None = None


class PageCell(_PageModel):
    """One configuration of the study, over its seeds."""

    label: str
    encoding: str
    causal: bool
    layers: int
    curve: tuple[PageCurvePoint, ...]
    lengths: tuple[PageLengthPoint, ...]
    proved_laws: tuple[str, ...] = ()


class PagePublished(_PageModel):
    """A result from the literature."""

    label: str
    text: str
    source: str


class PageStudy(_PageModel):
    """A study as the page reads it."""

    version: Literal[3] = Field(alias="schema", serialization_alias="schema")
    kind: Literal["study"]
    name: str
    question: str
    measure: str
    cells: Annotated[tuple[PageCell, ...], Field(min_length=1)]
    trained_lengths: tuple[int, int]
    published: tuple[PagePublished, ...] = ()
    seconds: Finite | None = None


def bundled_study() -> PageStudy:
    """The bundled study `who_did_what`; docs/evidence/studies/who_did_what.md documents it."""
    text = resources.files("orderproof.explain").joinpath("static", "who_did_what.json").read_text(encoding="utf-8")
    return PageStudy.model_validate_json(text)


def read_study(path: str | Path) -> PageStudy:
    """Read a study from its JSON file. Raises `UsageError`."""
    text = read_text_file(path, "a study")
    try:
        return PageStudy.model_validate_json(text)
    except ValidationError as error:
        raise UsageError(f"{path}: not a study of schema version 3: {first_validation_error(error)}") from None
