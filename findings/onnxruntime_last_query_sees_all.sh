#!/usr/bin/env bash
# ONNX Runtime's MultiHeadAttention with `unidirectional` hides no key from the last query, however many keys are later.
#
# Guess:   `unidirectional` is a causal mask: query i sees keys 0 to i, also where a call has more keys than queries. Two
#          queries on four equal keys have the weights 1, 0, 0, 0 and 1/2, 1/2, 0, 0.
# True:    the last query sees all four keys (1/4 each), while the others see only those up to their place. With as many
#          keys as queries, nothing shows it. A single query sees everything, so a chunk that ends earlier changes outputs.
# Package: onnx 1.23.2, onnxruntime 1.32.0
# Source:  onnxruntime/contrib_ops/cpu/bert/attention_helper.h, PrepareMask: its loop over queries leaves the last one out
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


def weights(queries, keys):
    """The weights of the keys for each query, whose scores are equal."""
    arrays = {
        "query": np.zeros((1, queries, 16), np.float32), "key": np.zeros((1, keys, 16), np.float32),
        "value": np.eye(keys, 16, dtype=np.float32)[None],
    }
    node = helper.make_node(
        "MultiHeadAttention", list(arrays), ["y"], domain="com.microsoft", num_heads=1, unidirectional=1
    )
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, x.shape) for name, x in arrays.items()]
    graph = helper.make_graph([node], "one", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    return onnxruntime.InferenceSession(model.SerializeToString()).run(None, arrays)[0][0, :, :keys].round(3).tolist()


for queries in (4, 3, 2, 1):
    print(f"{queries} queries, 4 keys:", weights(queries, 4))
first, last = weights(2, 4)
assert first == [1, 0, 0, 0], "the first query sees later keys now"
assert last == [0.25] * 4, "the last query sees earlier keys only now"
assert weights(3, 4)[1] == [0.5, 0.5, 0, 0], "the second of three queries sees something else now"
PYTHON
