"""The quantised cache of transformers with a quantiser that changes nothing, which leaves its bookkeeping.

Quantised entries, entries of full precision, and lengths are stored separately. Rounding is left out, so that
decoding with this cache must give what decoding with the default cache gives.
"""

from __future__ import annotations

from typing import Any

RESIDUAL_LENGTH = 2  # [tokens] of full precision: a short text already moves tokens into the quantised part


def has_quantised_cache(config: Any) -> bool:
    """True if the library has such a cache for all layers of a model: it is for full attention only."""
    from transformers import DynamicCache, cache_utils

    layers = DynamicCache(config=config).layers
    return hasattr(cache_utils, "QuantizedLayer") and all(type(layer) is cache_utils.DynamicLayer for layer in layers)


def exact_quantised_cache(config: Any) -> Any:
    """An empty quantised cache that stores tensors as they are."""
    from transformers.cache_utils import Cache, QuantizedLayer

    class ExactLayer(QuantizedLayer):  # type: ignore[misc]
        def _quantize(self, tensor: Any, axis: int) -> Any:
            return tensor.clone()

        def _dequantize(self, q_tensor: Any) -> Any:
            return q_tensor

    layers = config.get_text_config(decoder=True).num_hidden_layers
    return Cache(layers=[ExactLayer(residual_length=RESIDUAL_LENGTH) for _ in range(layers)])
