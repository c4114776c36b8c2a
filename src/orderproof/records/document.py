"""The base of all records, and of the documents among them: a schema version, JSON and an HTML hook.

A *record* is a frozen value with a strict schema. A *document* is a record that is written to a file by itself. This
module imports neither torch nor a renderer: `orderproof.report` registers the renderer of a document here.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from orderproof._version import __version__


class Record(BaseModel):
    """A frozen value with a strict schema."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def __str__(self) -> str:
        """The text that a command prints; the fields if no renderer is registered."""
        renderer = _renderers.get(type(self))
        return super().__str__() if renderer is None else renderer.text(self)

    def __repr__(self) -> str:
        """One line; the fields if no renderer is registered."""
        renderer = _renderers.get(type(self))
        return super().__repr__() if renderer is None else f"<{type(self).__name__} {renderer.line(self)}>"

    def _repr_html_(self) -> str | None:
        """The HTML that a notebook shows; None, and the notebook shows the text, if no renderer is registered."""
        renderer = _renderers.get(type(self))
        return None if renderer is None else renderer.html(self)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with some fields replaced. Raises `TypeError` for an unknown field, which pydantic would accept."""
        unknown = set(update or ()) - set(type(self).model_fields)
        if unknown:
            raise TypeError(f"{type(self).__name__} has no field {', '.join(sorted(unknown))}")
        return super().model_copy(update=update, deep=deep)


class Document(Record):
    """A record with a file of its own. Each kind of document counts the versions of its schema by itself."""

    schema_version: int = Field(default=0, alias="schema", serialization_alias="schema")
    versions: dict[str, str] = Field(default_factory=dict)  # of Python and the libraries that made it
    seconds: float = 0.0  # [s] it took to make

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    def to_json(self, *, indent: int | None = 2) -> str:
        """The document as JSON."""
        return self.model_dump_json(by_alias=True, indent=indent)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The document in a JSON text. Raises `pydantic.ValidationError`."""
        return cls.model_validate_json(text)


R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class Renderer(Generic[R]):
    """How records of one type are printed, shown in one line, and shown in a notebook."""

    text: Callable[[R], str]
    line: Callable[[R], str]
    html: Callable[[R], str]


_renderers: dict[type[Record], Renderer[Any]] = {}


def register_renderer(kind: type[R], renderer: Renderer[R]) -> None:
    """Set how records of this type are shown."""
    _renderers[kind] = renderer


def schema_version(version: int) -> Any:
    """The field `schema` of a document whose schema has this version."""
    return Field(default=version, alias="schema", serialization_alias="schema")


def versions() -> dict[str, str]:
    """The versions of Python, this package and those libraries that are loaded and determine results."""
    loaded = {name: sys.modules.get(name) for name in ("torch", "transformers")}
    return {
        "python": platform.python_version(),
        "orderproof": __version__,
        **{name: str(getattr(module, "__version__", "unknown")) for name, module in loaded.items() if module},
    }
