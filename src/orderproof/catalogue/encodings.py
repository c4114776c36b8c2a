"""The encodings: the classes decorated with `@register` in the files of `encodings`."""

from __future__ import annotations

from typing import NamedTuple

from orderproof.catalogue.source import read_modules


class EncodingEntry(NamedTuple):
    """An encoding: its registered name, its class, and the first line of its file."""

    name: str
    class_name: str
    description: str


def encodings() -> tuple[EncodingEntry, ...]:
    """All encodings, by name."""
    return tuple(
        sorted(
            EncodingEntry(name, node.name, module.docstring.partition("\n")[0])
            for module in read_modules("orderproof.encodings")
            for node, (name,) in module.decorated("register")
        )
    )
