"""The questions of the lab: the class `QUESTION` in each file of `lab/questions`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from orderproof.catalogue.source import read_module, read_modules


class QuestionEntry(NamedTuple):
    """The attributes of a `Question` by which it is listed."""

    name: str
    measure: str
    requires_causal: bool | None
    needs_order: bool
    statement: str


def questions() -> dict[str, QuestionEntry]:
    """All questions by name, in alphabetical order."""
    every = [module.class_attributes("QUESTION") for module in read_modules("orderproof.lab.questions")]
    entries = [QuestionEntry(**{name: each[name] for name in QuestionEntry._fields}) for each in every if each]
    return {entry.name: entry for entry in sorted(entries)}


def model_kinds() -> Mapping[bool | None, str]:
    """The models that can be asked a question, by its `requires_causal`."""
    kinds: Mapping[bool | None, str] = read_module("orderproof.lab.ceilings").constant("MODEL_KINDS")
    return kinds
