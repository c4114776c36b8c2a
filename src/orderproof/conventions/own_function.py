"""The user's function, `file.py:name`: attention if it takes queries, keys and values, else a rotation."""

from __future__ import annotations

from orderproof.conventions.attention.own import own_attention
from orderproof.conventions.library import AnyFunction
from orderproof.conventions.rotation.own import own_rotation
from orderproof.errors import SubjectError
from orderproof.models.python_objects import imported_object


def own_function(spec: str) -> AnyFunction:
    """The function that a text names, `file.py:name` or `package.module:name`.

    Raises `SubjectError` if it cannot be imported, is no function, or neither attends nor rotates.
    """
    function = imported_object(spec)
    if not callable(function):
        raise SubjectError(f"{spec}: expected a function; got {type(function).__name__}")
    place = spec.rpartition(":")[0]
    return own_attention(function, spec, place) or own_rotation(function, spec, place)
