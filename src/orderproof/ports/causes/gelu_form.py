"""GELU by the error function, or by a hyperbolic tangent: torch computes the first by default, and JAX the second.

x Phi(x),    or x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from orderproof.ports.causes.cause import Candidate, Cause, Defaults
from orderproof.ports.reference import Change, Reference

FORMS = {"by the error function": "none", "by a hyperbolic tangent": "tanh"}


def _candidates(reference: Reference, defaults: Defaults) -> Iterator[Candidate]:
    del defaults
    if reference.config.to_dict():
        return  # config.json names the activation
    for stated, assumed in (list(FORMS), list(FORMS)[::-1]):
        yield Candidate("other", "GELU", stated, assumed, Change(patch=partial(_in_form, form=FORMS[assumed])))


def _in_form(model: Any, *, form: str) -> AbstractContextManager[object]:
    del model
    return _Form(form)


class _Form(TorchFunctionMode):
    """In this context, every GELU has this form."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.form = form

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call an operator, GELU in the form."""
        return func(*args, **{**(kwargs or {}), **({"approximate": self.form} if func is F.gelu else {})})


CAUSE = Cause("other", 102, _candidates)
