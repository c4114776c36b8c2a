"""Load `file.py:name` or `package.module:name`: a module, or a function that returns one."""

from __future__ import annotations

import importlib
import importlib.util
import linecache
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import Tensor, nn
from torch.export import ExportedProgram

from orderproof.adapter import ModelAdapter
from orderproof.errors import OrderproofError, SubjectError, UsageError, first_line
from orderproof.models.jax_function.load_function import is_of_jax, load_jax
from orderproof.models.plain_adapter import from_adapter
from orderproof.models.plain_module import Inputs, of_layout, refuse_layout
from orderproof.models.subject import Subject
from orderproof.models.trial_call import check_trial_load
from orderproof.object_names import on_import_path
from orderproof.recording.source import source_of_error
from orderproof.registry import did_you_mean
from orderproof.seeded_random import seeded_random
from orderproof.subject_spec import NO_LAYOUT, Layout, object_location


def load_object(
    spec: str,
    *,
    inputs: Inputs | None = None,
    layout: Layout = NO_LAYOUT,
    seed: int = 0,
    assume: Mapping[str, Any] | None = None,
) -> Subject:
    """Import the object and build a subject from it, or from its result if it is a function or a class.

    `inputs` replace example inputs that it returns. The random numbers of torch that the code draws are determined by
    the seed, so that a second audit has the same weights; the generator of this process stays as it is.

    Raises `SubjectError` if it cannot be imported or called or is no module, and errors of `from_module`.
    """
    place, name = object_location(spec)
    if is_of_jax(Path(place).expanduser()):
        return load_jax(spec, inputs=inputs, layout=layout, assume=assume)
    result = made_object(spec, seed)
    model, examples = result if isinstance(result, (tuple, list)) and len(result) == 2 else (result, None)
    if isinstance(model, Subject | ModelAdapter):
        kind = f"a {type(model).__name__}, which states its inputs itself"
        refuse_layout(spec, layout, kind)
        if inputs is not None:
            raise UsageError(f"{spec}: expected no inputs with {kind}")
    if isinstance(model, Subject):
        if assume:
            raise SubjectError(f"{spec} makes a subject, which states its kind itself; got {dict(assume)!r}")
        return model
    if isinstance(model, ModelAdapter):
        return from_adapter(model, name, kind=(assume or {}).get("model_kind"))
    if not isinstance(model, nn.Module | ExportedProgram):
        raise SubjectError(
            f"{spec}: it returned {_type_name(result)}; expected a torch.nn.Module, or one with example inputs"
        )
    inputs = examples if inputs is None else inputs
    if inputs is not None and not isinstance(inputs, (Tensor, tuple, list, Mapping)):
        raise SubjectError(
            f"{spec}: example inputs must be a tensor, a tuple or a dict of tensors; got {_type_name(inputs)}"
        )
    return of_layout(model, inputs, layout, name=name, assume=assume)


def made_object(spec: str, seed: int) -> Any:
    """The object, or its result if it is a function or a class, with the random numbers of a seed.

    Raises `SubjectError` if it cannot be imported or called.
    """
    place = object_location(spec)[0]
    linecache.checkcache()  # the file may have changed since an earlier audit of this process
    make = partial(_make, spec, seed)
    _import_transformers_for(Path(place).expanduser())
    check_trial_load(spec, make)
    return make()


def imported_object(spec: str) -> Any:
    """The object itself, which is not called. Raises `SubjectError` if it cannot be imported."""
    place, name = object_location(spec)
    module = _from_file(Path(place).expanduser(), spec) if place.endswith(".py") else _from_package(place, spec)
    return _resolve_attribute(module, name, spec)


def _import_transformers_for(path: Path) -> None:
    """Import transformers once, and not in the trial and again here: it takes seconds. Its settings come first."""
    if path.suffix == ".py" and path.is_file():
        text = path.read_text(encoding="utf-8", errors="replace")
        if re.search(r"^(from|import) transformers\b", text, re.MULTILINE) and "environ" not in text:
            with suppress(ImportError):
                importlib.import_module("transformers.modeling_utils")


def _make(spec: str, seed: int) -> Any:
    with seeded_random(seed):
        return _import_and_call(spec)


def _import_and_call(spec: str) -> Any:
    target = imported_object(spec)
    if isinstance(target, nn.Module | ModelAdapter):
        return target
    if not callable(target):
        raise SubjectError(
            f"{spec}: expected a torch.nn.Module or a function that returns one; got {_type_name(target)}"
        )
    try:
        return target()
    except (OrderproofError, KeyboardInterrupt):
        raise
    except BaseException as error:  # the user's function: anything may come
        raise SubjectError(f"{spec}: calling it {_raised(error)}") from error


def _raised(error: BaseException) -> str:
    """The error with its line in the code of the user."""
    return f"raised {first_line(error)}{source_of_error(error)}"


def _from_file(path: Path, spec: str) -> ModuleType:
    name = f"orderproof_subject_{path.stem}"
    module_spec = importlib.util.spec_from_file_location(name, path)
    if module_spec is None or module_spec.loader is None:
        raise SubjectError(f"{spec}: {path} cannot be imported")
    module = importlib.util.module_from_spec(module_spec)
    sys.modules[name] = module  # dataclasses and pickle look up modules by name
    with on_import_path(path.resolve().parent):
        try:
            module_spec.loader.exec_module(module)
        except KeyboardInterrupt:
            del sys.modules[name]
            raise
        except BaseException as error:  # the user's file: anything may come
            del sys.modules[name]
            raise SubjectError(f"{spec}: running {path} {_raised(error)}") from error
    return module


def _from_package(place: str, spec: str) -> ModuleType:
    with on_import_path(Path.cwd()):
        try:
            return importlib.import_module(place)
        except ModuleNotFoundError as error:
            if error.name and (place == error.name or place.startswith(error.name + ".")):
                raise SubjectError(f"{spec}: no module named {error.name}") from error
            raise SubjectError(f"{spec}: importing {place} {_raised(error)}") from error
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # the user's package: anything may come
            raise SubjectError(f"{spec}: importing {place} {_raised(error)}") from error


def _resolve_attribute(module: ModuleType, name: str, spec: str) -> Any:
    value: Any = module
    for part in name.split("."):
        if not hasattr(value, part):
            hint = did_you_mean(part, dir(value), limit=3)
            raise SubjectError(f"{spec}: nothing is named {part!r} there{hint}")
        value = getattr(value, part)
    return value


def _type_name(value: object) -> str:
    return "None" if value is None else type(value).__name__
