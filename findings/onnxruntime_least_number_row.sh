#!/usr/bin/env bash
# ONNX Runtime's Attention gives zeros for a row masked by the least finite number; onnx's reference and torch give the mean.
#
# Guess:   a mask of finite numbers is added to scores: equal scores, equal weights, so a row to which the least float32
#          is added everywhere is the mean of the values, as in transformers' eager attention.
# True:    ONNX Runtime 1.32 treats such a row as one without a visible key and gives zeros. The reference evaluator of
#          onnx 1.23 gives the mean. A decoder exported with the usual finite mask differs from torch at every query
#          that sees only pads.
# Package: onnx 1.23.2, onnxruntime 1.32.0
# Source:  onnxruntime/core/providers/cpu/llm/attention.h, mask_filter_value; onnx/reference/ops/op_attention.py
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
from onnx.reference import ReferenceEvaluator

print(f"onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__}")
arrays = {
    "Q": np.zeros((1, 1, 1, 8), np.float32), "K": np.zeros((1, 1, 3, 8), np.float32),
    "V": np.eye(3, 8, dtype=np.float32)[None, None], "mask": np.full((1, 1, 1, 3), np.finfo(np.float32).min, np.float32),
}
inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, x.shape) for name, x in arrays.items()]
output = helper.make_tensor_value_info("Y", TensorProto.FLOAT, (1, 1, 1, 8))
graph = helper.make_graph([helper.make_node("Attention", list(arrays), ["Y"])], "one", inputs, [output])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
runtime = onnxruntime.InferenceSession(model.SerializeToString()).run(None, arrays)[0][0, 0, 0, :3]
reference = ReferenceEvaluator(model).run(None, arrays)[0][0, 0, 0, :3]
print("onnxruntime:", runtime.round(4), " reference:", reference.round(4))
assert not runtime.any(), "ONNX Runtime gives the mean now"
assert np.allclose(reference, 1 / 3), "the reference gives something else now"
PYTHON
