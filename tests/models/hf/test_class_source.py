"""The source of a class is that which `inspect` gives."""

from __future__ import annotations

import importlib
import inspect

import pytest

from orderproof.models.hf.class_source import class_source

pytest.importorskip("transformers")


@pytest.mark.parametrize("name", ["bert", "longformer", "mamba"])
def test_it_is_that_of_inspect(name: str) -> None:
    module = importlib.import_module(f"transformers.models.{name}.modeling_{name}")
    classes = [x for x in vars(module).values() if inspect.isclass(x) and x.__module__ == module.__name__]
    assert len(classes) > 3
    for kind in classes:
        assert class_source(kind).rstrip() == inspect.getsource(kind).rstrip()


class Outer:
    class Inner:
        pass


def test_nested_and_local_classes_are_found() -> None:
    class Local:
        number = 7

    assert class_source(Outer.Inner) == "    class Inner:\n        pass\n"
    assert "number = 7" in class_source(Local)


def test_class_without_source_raises_what_inspect_raises() -> None:
    with pytest.raises(TypeError):
        class_source(int)
    with pytest.raises(OSError, match="class"):
        class_source(type("Made", (), {"__module__": __name__}))
