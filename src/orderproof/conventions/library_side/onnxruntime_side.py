"""ONNX Runtime on a processor: the operators of the standard, and its own of the domain com.microsoft."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

PACKAGE = "onnxruntime"
REQUIREMENTS = ("onnxruntime==1.32.0", "onnx==1.23.2", "ml-dtypes==0.6.0", "numpy==2.4.6")
ARRAYS = "numpy"
OPSETS = (23, 24, 25)
DOMAIN, OWN_OPSET = "com.microsoft", 17

_spec: Any = spec_from_file_location("onnx_node", Path(__file__).with_name("onnx_node.py"))
_node = module_from_spec(_spec)
_spec.loader.exec_module(_node)


def _run(model: Any, arrays: Mapping[str, Any]) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, dict(arrays))[0]


def _own(operator: str, given: Mapping[str, Any], own: Mapping[str, Any], outputs: int = 1) -> Any:
    return _node.run_node(_run, OWN_OPSET, operator, given, own, DOMAIN, outputs)


def _joined(x: Any) -> Any:
    return np.ascontiguousarray(x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1))


def _split(found: Any, like: Any) -> Any:
    rows, heads, tokens, width = like.shape
    return found.reshape(rows, tokens, heads, width).transpose(0, 2, 1, 3)


def _multihead(query: Any, key: Any, value: Any, *, as_padding: bool = False, **options: Any) -> Any:
    """Its MultiHeadAttention; `as_padding`: the mask is its key_padding_mask, else its attention_bias."""
    mask = options.get("mask")
    given = {
        "query": _joined(query), "key": _joined(key), "value": _joined(value), "bias": None,
        "padding": mask.astype(np.int32) if as_padding and mask is not None else None,
        "attention_bias": None if as_padding else mask,
    }  # fmt: skip
    own = {"num_heads": query.shape[1], "unidirectional": int(options.get("causal", False))}
    own |= {"scale": options["scale"]} if "scale" in options else {}
    return _split(_own("MultiHeadAttention", given, own), query)


def _grouped(query: Any, key: Any, value: Any, **options: Any) -> Any:
    """Its GroupQueryAttention, which is always causal: keys before the queries are in its cache.

    Without a causal flag queries are given one by one, as in decoding, and see all keys.
    """
    (rows, heads, queries, _), keys = query.shape, key.shape[2]
    if "window" in options and not options.get("causal"):
        raise TypeError("its window is one of earlier keys")
    if queries > 1 and not options.get("causal"):
        each = [_grouped(query[:, :, k : k + 1], key, value, **options) for k in range(queries)]
        return np.concatenate(each, 2)
    if queries > keys:
        raise TypeError("there are fewer keys than queries")
    past = keys - queries
    lengths = options.get("lengths", np.full(rows, keys))
    given = {
        "query": _joined(query), "key": _joined(key[:, :, past:]), "value": _joined(value[:, :, past:]),
        "past_key": np.ascontiguousarray(key[:, :, :past]), "past_value": np.ascontiguousarray(value[:, :, :past]),
        "last": (lengths - 1).astype(np.int32), "total": np.array([keys], np.int32),
        "cos": None, "sin": None, "positions": None, "attention_bias": options.get("mask"),
        "sink": options.get("sinks"),
    }  # fmt: skip
    own = {"num_heads": heads, "kv_num_heads": key.shape[1]}
    own |= {"local_window_size": options["window"]} if "window" in options else {}
    own |= {"softcap": options["soft_cap"]} if "soft_cap" in options else {}
    own |= {"scale": options["scale"]} if "scale" in options else {}
    return _split(_own("GroupQueryAttention", given, own, 3), query)


def _rotate(x: Any, positions: Any, *, interleaved: int, table: int | None = None) -> Any:
    cos, sin = _node.caches(x, table or int(positions.max()) + 1)
    rows = np.ascontiguousarray(np.broadcast_to(positions, (x.shape[0], positions.shape[-1]))).astype(np.int64)
    return _own("RotaryEmbedding", {"X": x, "positions": rows, "cos": cos, "sin": sin}, {"interleaved": interleaved})


def functions() -> dict[str, Any]:
    """Each function: kind, options, axes, function."""
    axes, joined = "[row, head, token, width]", "[row, token, head and width]"
    grouped = "causal scale window grouped sinks"
    return {
        **_node.standard_functions(_run, OPSETS),
        "own_multihead": ("attention", "mask causal scale", joined, _multihead),
        "own_multihead_padding": ("attention", "mask causal scale", joined, partial(_multihead, as_padding=True)),
        "own_group_query": ("attention", grouped, joined, _grouped),
        "own_rotary": ("rotation", "rows table", axes, partial(_rotate, interleaved=0)),
        "own_rotary_interleaved": ("rotation", "rows table", axes, partial(_rotate, interleaved=1)),
    }
