"""The rotation and the position tables of KerasHub, on the backend that KERAS_BACKEND names."""

from __future__ import annotations

from typing import Any

import keras
import keras_hub
from keras import ops

PACKAGE = "keras_hub"
REQUIREMENTS = ("keras-hub==0.32.0", "keras==3.15.1", "numpy==2.4.6")
VARIANTS = {
    "keras_hub_jax": ({"KERAS_BACKEND": "jax"}, ("jax==0.10.2", "tensorflow-text==2.21.1")),
    "keras_hub_torch": ({"KERAS_BACKEND": "torch"}, ("torch==2.13.0",)),
}
LENGTH, WIDTH = 16, 8  # of a table


def array(given: Any) -> Any:
    """A tensor of the backend."""
    return ops.convert_to_tensor(given.values, dtype=given.dtype)


def numbers(found: Any) -> Any:
    """Numbers in float32, and the dtype of a tensor."""
    dtype = keras.backend.standardize_dtype(found.dtype)
    return ops.convert_to_numpy(ops.cast(found, "float32")), dtype


def _rotate(x: Any, positions: Any) -> Any:
    module = keras_hub.layers.RotaryEmbedding(dtype=keras.backend.standardize_dtype(x.dtype))
    moved = ops.transpose(x, (0, 2, 1, 3))
    return ops.transpose(module(moved, positions=positions), (0, 2, 1, 3))


def _compiled(function: Any) -> Any:
    """The function as one program on JAX, as in a model: operators that are compiled one by one take longer."""
    if keras.backend.backend() != "jax":
        return function
    import jax

    return jax.jit(function)


def functions() -> dict[str, Any]:
    """Each function: kind, options, axes, function."""
    learned, sines = keras_hub.layers.PositionEmbedding(LENGTH), keras_hub.layers.SinePositionEncoding()
    learned.build((1, LENGTH, WIDTH))

    def look_up(module: Any) -> Any:
        return lambda positions: module(ops.zeros((1, positions.shape[0], WIDTH)), positions=positions)[0]

    return {
        "rotary": ("rotation", "rows", "[row, token, head, width]", _compiled(_rotate)),
        "position_embedding": ("positions", "", "[token, width]", look_up(learned)),
        "sine_encoding": ("positions", "", "[token, width]", look_up(sines)),
    }
