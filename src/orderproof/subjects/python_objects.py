"""`file.py:name` and `package.module:name`: a module, or a function that returns one."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import Tensor, nn

from orderproof.driver import Driver
from orderproof.errors import OrderproofError, SubjectError
from orderproof.subjects.modules import from_module
from orderproof.subjects.plain import from_driver
from orderproof.subjects.subject import Subject

_FILE = re.compile(r"(?P<place>.+\.py):(?P<name>[A-Za-z_][\w.]*)")
_MODULE = re.compile(r"(?P<place>[A-Za-z_]\w*(\.[A-Za-z_]\w*)*):(?P<name>[A-Za-z_][\w.]*)")


def is_python_name(spec: str) -> bool:
    """Whether a text has the form `file.py:name` or `package.module:name`."""
    return bool(_FILE.fullmatch(spec) or _MODULE.fullmatch(spec))


def load_object(spec: str, *, token_axis: int | None = None) -> Subject:
    """Import what is named, call it if it is a function or a class, and make a subject of the module it gives."""
    match = _FILE.fullmatch(spec) or _MODULE.fullmatch(spec)
    if match is None:
        raise SubjectError(f"{spec}: expected file.py:name or package.module:name")
    place, name = match["place"], match["name"]
    module = _from_file(Path(place).expanduser(), spec) if place.endswith(".py") else _from_package(place, spec)
    found = _attribute(module, name, spec)
    if isinstance(found, nn.Module):
        return from_module(found, token_axis=token_axis, name=name)
    if isinstance(found, Driver):
        return from_driver(found, name)
    if not callable(found):
        raise SubjectError(f"{spec}: expected a torch.nn.Module or a function that returns one; got {_kind(found)}")
    try:
        made = found()
    except OrderproofError:
        raise
    except Exception as error:  # the user's function: anything may come
        raise SubjectError(f"{spec}: calling it raised {_told(error)}") from error
    model, inputs = made if isinstance(made, (tuple, list)) and len(made) == 2 else (made, None)
    if isinstance(model, Subject):
        return model
    if isinstance(model, Driver):
        return from_driver(model, name)
    if not isinstance(model, nn.Module):
        raise SubjectError(f"{spec}: it returned {_kind(made)}; expected a torch.nn.Module, or one with example inputs")
    if inputs is not None and not isinstance(inputs, (Tensor, tuple, list, Mapping)):
        raise SubjectError(
            f"{spec}: example inputs must be a tensor, a tuple or a dict of tensors; got {_kind(inputs)}"
        )
    return from_module(model, inputs, token_axis=token_axis, name=name)


def _from_file(path: Path, spec: str) -> ModuleType:
    if not path.is_file():
        raise SubjectError(f"{spec}: no file {path}")
    name = f"orderproof_subject_{path.stem}"
    found = importlib.util.spec_from_file_location(name, path)
    if found is None or found.loader is None:
        raise SubjectError(f"{spec}: {path} cannot be imported")
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module  # dataclasses and pickling look their module up by name
    with _importable(path.resolve().parent):
        try:
            found.loader.exec_module(module)
        except Exception as error:  # the user's file: anything may come
            del sys.modules[name]
            raise SubjectError(f"{spec}: running {path} raised {_told(error)}") from error
    return module


def _from_package(place: str, spec: str) -> ModuleType:
    with _importable(Path.cwd()):
        try:
            return importlib.import_module(place)
        except ModuleNotFoundError as error:
            if error.name and (place == error.name or place.startswith(error.name + ".")):
                raise SubjectError(f"{spec}: no module named {error.name}") from error
            raise SubjectError(f"{spec}: importing {place} raised {_told(error)}") from error
        except Exception as error:  # the user's package: anything may come
            raise SubjectError(f"{spec}: importing {place} raised {_told(error)}") from error


def _attribute(module: ModuleType, name: str, spec: str) -> Any:
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            close = get_close_matches(part, dir(found), n=3)
            hint = f"; did you mean {', '.join(close)}?" if close else ""
            raise SubjectError(f"{spec}: nothing is named {part!r} there{hint}")
        found = getattr(found, part)
    return found


def _kind(value: object) -> str:
    return "nothing" if value is None else f"{type(value).__name__}"


def _told(error: BaseException) -> str:
    text = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Let modules beside the one named be imported."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        if str(folder) in sys.path:
            sys.path.remove(str(folder))
