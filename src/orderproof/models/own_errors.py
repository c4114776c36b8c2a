"""Tell defects of this package from errors of the model that is called."""

from __future__ import annotations

from orderproof.errors import EncodingError, OrderproofError, PositionError, SubjectError, UnsupportedCallError

_REFUSALS = (SubjectError, UnsupportedCallError, PositionError, EncodingError)  # raised for what a model cannot do
_DEFECTS = (AssertionError, TypeError, NameError)
_OWN_MODULES = ("orderproof.models", "orderproof.adapter", "orderproof.batch_layout")
_LIBRARY = ("orderproof.blocks", "orderproof.encodings")  # layers that users call


def raise_own_error(error: Exception) -> None:
    """Raise ``error`` again if it is a defect of this package; return if the called model refused.

    A probe calls third-party code and catches every exception. Without this check a defect in the probe itself would
    be reported as "not applicable". Own errors are the errors of `orderproof.errors` that do not describe a refusal,
    and assertions, type errors and name errors whose innermost frame lies in this package.
    """
    place = _innermost_module(error)
    if place.startswith(_LIBRARY):  # a layer of this package refuses a call as any other module does
        return
    if isinstance(error, OrderproofError):
        if not isinstance(error, _REFUSALS):
            raise error
        return
    if isinstance(error, _DEFECTS) and place.startswith(_OWN_MODULES):
        raise error


def _innermost_module(error: Exception) -> str:
    """The name of the Python module that raised an error; empty if it was not raised."""
    traceback = error.__traceback__
    if traceback is None:
        return ""
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    return str(traceback.tb_frame.f_globals.get("__name__", ""))
