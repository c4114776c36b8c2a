"""Cheaper imports of libraries: what transformers imports or computes twice and no command needs, which takes a second.

Only the commands of this package use this, and not `import orderproof`: in another program the imports are its own.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from orderproof.recording.late_dynamo import late_dynamo

_LISTS = "transformers.utils.import_utils"
_LOSSES = "transformers.loss.loss_utils"
_MARKING = ("transformers.integrations.hub_kernels", "transformers.modeling_utils")
_MASKS = "transformers.masking_utils"
_COMPILER = "torch._dynamo._trace_wrapped_higher_order_op"
_SOLVER = "scipy.optimize"


Way = Callable[[Callable[[], None], ModuleType], None]  # of executing a module


def spare_imports() -> None:
    """From now on import transformers at lower cost."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        ways: dict[str, Way] = {
            _LISTS: _list_folders_faster, _LOSSES: _import_solver_when_called, _MASKS: _import_indexing_when_called,
            **dict.fromkeys(_MARKING, _import_compiler_when_it_compiles),
        }  # fmt: skip
        sys.meta_path.insert(0, _Finder(ways))


class _Finder:
    """Finds some modules as Python does, and executes them in another way."""

    def __init__(self, ways: dict[str, Way]) -> None:
        self._ways = ways

    def find_spec(
        self, name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module, if it is one of these and is looked for the first time."""
        way = self._ways.pop(name, None)
        spec = None if way is None else importlib.util.find_spec(name)
        if way is None or spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module
        spec.loader.exec_module = lambda module: way(lambda: execute(module), module)  # type: ignore[method-assign]
        return spec


def _list_folders_faster(execute: Callable[[], None], module: ModuleType) -> None:
    """Transformers lists the classes in 500 folders twice, and remembers only 128 of them from the first time.

    It also looks at each line of each file for the list of exported names, which is at the end.
    """
    execute()
    names = vars(module)
    listed: Any = names.get("create_import_structure_from_path")
    exported = names.get("fetch__all__")
    if hasattr(listed, "__wrapped__"):
        names["create_import_structure_from_path"] = functools.cache(listed.__wrapped__)
    if exported is not None:
        names["fetch__all__"] = lambda text: exported(text[max(text.find("\n__all__"), 0) :].removeprefix("\n"))


def _import_solver_when_called(execute: Callable[[], None], _module: ModuleType) -> None:
    """The losses of object detection use one function of scipy, and transformers imports them with every model."""
    _execute_with_stand_in(execute, _SOLVER, "linear_sum_assignment")


def _import_indexing_when_called(execute: Callable[[], None], _module: ModuleType) -> None:
    """Masks of packed documents use one mode of the compiler, and transformers imports them with every model."""
    _execute_with_stand_in(execute, _COMPILER, "TransformGetItemToIndex")


def _import_compiler_when_it_compiles(execute: Callable[[], None], _module: ModuleType) -> None:
    """Functions of these modules are marked for the compiler, which imports it with every model."""
    with late_dynamo():
        execute()


def _execute_with_stand_in(execute: Callable[[], None], module: str, function: str) -> None:
    """Execute a module that imports one function of another, which is imported when the function is called."""
    if module in sys.modules:
        execute()
        return
    stand_in = sys.modules[module] = _StandIn(module, function)
    try:
        execute()
    finally:
        stand_in.remove()


class _StandIn(ModuleType):
    """A module with one function that imports the real module when it is called; another name does so at once."""

    def __init__(self, name: str, function: str) -> None:
        super().__init__(name)

        def call(*args: Any, **kwargs: Any) -> Any:
            self.remove()
            return getattr(importlib.import_module(name), function)(*args, **kwargs)

        setattr(self, function, call)

    def __getattr__(self, name: str) -> Any:
        """A name of the real module."""
        if name.startswith("__"):  # Python asks whether a module is a package
            raise AttributeError(name)
        self.remove()
        return getattr(importlib.import_module(self.__name__), name)

    def remove(self) -> None:
        """Make room for the real module."""
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
