"""Calls of a model that leave the settings of the process as they were."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from orderproof.errors import SubjectError, first_line
from orderproof.recording.compiled_code import without_compilation
from orderproof.recording.process_settings import read_settings, restore_settings


def module_classes(module: nn.Module) -> dict[str, tuple[type[nn.Module], bool]]:
    """The class and the mode of each module, by path; a lazy module changes its class in its first call."""
    return {
        f"the class or the mode of {path or 'the model'}": (type(part), part.training)
        for path, part in module.named_modules()
        if not isinstance(part, nn.modules.lazy.LazyModuleMixin)
    }


@contextmanager
def preserved_settings(name: str) -> Iterator[None]:
    """Call a model: compiled parts run eagerly, and the settings are restored afterwards.

    An exception that would end the program, unless it is an interrupt, becomes a `SubjectError` of the model.
    """
    before = read_settings()
    try:
        with without_compilation():
            yield
    except BaseException as error:
        if isinstance(error, (Exception, KeyboardInterrupt)) or type(error).__module__.startswith("orderproof."):
            raise
        raise SubjectError(f"{name}: calling it raised {first_line(error)}") from error
    finally:
        restore_settings(before)


def is_compiled(part: nn.Module) -> bool:
    """True if torch.compile returned this module, or compiled its call."""
    compiler = sys.modules.get("torch._dynamo.eval_frame")
    made = compiler is not None and isinstance(part, compiler.OptimizedModule)
    return made or part._compiled_call_impl is not None
