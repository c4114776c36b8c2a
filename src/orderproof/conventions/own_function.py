"""The user's function, `file.py:name`: its arguments say of which kind it is.

Attention takes queries, keys and values, a table positions only, and a rotation vectors first.
"""

from __future__ import annotations

from orderproof.conventions.attention.own import own_attention
from orderproof.conventions.library import AnyFunction
from orderproof.conventions.positions.own import own_table
from orderproof.conventions.rotation.own import own_rotation
from orderproof.errors import SubjectError
from orderproof.models.python_objects import imported_object


def own_function(spec: str) -> AnyFunction:
    """The function that a text names, `file.py:name` or `package.module:name`.

    Raises `SubjectError` if it cannot be imported, is no function, or is of no kind.
    """
    function = imported_object(spec)
    if not callable(function):
        raise SubjectError(f"{spec}: expected a function; got {type(function).__name__}")
    place = spec.rpartition(":")[0]
    table = own_attention(function, spec, place) or own_table(function, spec, place)
    return table or own_rotation(function, spec, place)
