#!/usr/bin/env bash
# ONNX Runtime's Attention with a causal flag and a mask of integers shows later tokens, or nothing but later tokens.
#
# Guess:   the standard allows masks of any integers (type U), which are added to the scores as real numbers are. So three
#          causal queries with equal scores and a mask of -9 everywhere have the weights 1; 1/2, 1/2; 1/3, 1/3, 1/3.
# True:    only a mask of real numbers gives that. With int8, int16 or uint8 the causal flag has no effect: the first query
#          sees all three tokens. With int32 or int64 it sees the two later tokens and not itself: the number that hides a
#          token is the least integer, and -9 more wraps around to a large score. A mask of zeros of int64 is causal.
# Package: onnx 1.23.2, onnxruntime 1.32.0
# Source:  onnxruntime/core/providers/cpu/llm/attention.cc; onnx/defs/nn/defs.cc, Attention, type U
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet onnx==1.23.2 onnxruntime==1.32.0
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

print(f"onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__}")


def weights(kind, value):
    """The weights of three tokens in the view of the first query."""
    arrays = {
        "Q": np.zeros((1, 1, 3, 8), np.float32), "K": np.zeros((1, 1, 3, 8), np.float32),
        "V": np.eye(3, 8, dtype=np.float32)[None, None], "mask": np.full((3, 3), value).astype(kind),
    }
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in arrays.items()
    ]
    output = helper.make_tensor_value_info("Y", TensorProto.FLOAT, (1, 1, 3, 8))
    graph = helper.make_graph([helper.make_node("Attention", list(arrays), ["Y"], is_causal=1)], "one", inputs, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
    onnx.checker.check_model(model)
    return onnxruntime.InferenceSession(model.SerializeToString()).run(None, arrays)[0][0, 0, 0, :3]


found = {}
for kind, value in ((np.float32, -9), (np.int64, 0), (np.int64, -9), (np.int32, -9), (np.int8, 0), (np.int8, -9)):
    found[kind.__name__, value] = weights(kind, value).round(3).tolist()
    print(f"mask of {value} as {kind.__name__}: the first query gives the three tokens", found[kind.__name__, value])
assert found["float32", -9] == found["int64", 0] == [1, 0, 0], "real masks are not causal now"
assert found["int8", 0][2] > 0.3, "a mask of int8 is causal now"
assert found["int64", -9][0] == 0, "a mask of int64 is causal now"
PYTHON
