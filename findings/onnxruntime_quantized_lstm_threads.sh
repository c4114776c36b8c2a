#!/usr/bin/env bash
# The outputs of ONNX Runtime's DynamicQuantizeLSTM depend on the number of threads of the session, far beyond rounding.
#
# Guess:   threads divide the work: with one thread or two, outputs of a batch differ by rounding at most, 1e-6.
# True:    with several threads the rows of a batch are divided, and the states of each part are quantized with a scale of
#          their own; with one thread all rows share one scale. Outputs of two rows are 0.001 apart here, and logits of
#          bilstm.int8.onnx in text2tashkeel 0.1.0 are 0.3 apart, between a machine of one core and one of two.
# Package: onnx 1.23.2, onnxruntime 1.32.0
# Source:  onnxruntime/core/providers/cpu/rnn/uni_directional_lstm.cc, batch_parallel_
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet onnx==1.23.2 onnxruntime==1.32.0
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

print(f"onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__}")
draw, hidden = np.random.default_rng(0), 8
stored = {
    "w": draw.integers(-127, 128, (1, 4, 4 * hidden)).astype(np.int8),
    "r": draw.integers(-127, 128, (1, hidden, 4 * hidden)).astype(np.int8),
    "scale": np.array([0.01], np.float32), "zero": np.array([0], np.int8),
}
names = ["x", "w", "r", "", "", "", "", "", "scale", "zero", "scale", "zero"]
node = helper.make_node("DynamicQuantizeLSTM", names, ["y"], domain="com.microsoft", hidden_size=hidden)
x_info = helper.make_tensor_value_info("x", TensorProto.FLOAT, [7, "rows", 4])
y_info = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
graph = helper.make_graph([node], "one", [x_info], [y_info], [numpy_helper.from_array(v, k) for k, v in stored.items()])
opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
model = helper.make_model(graph, opset_imports=opsets, ir_version=10)


def run(x, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, {"x": x})[0]


x = draw.normal(size=(7, 2, 4)).astype(np.float32)
x[:, 1] *= 0.1
one, two = run(x, 1), run(x, 2)
apart = float(np.abs(one - two).max())
print(f"one thread and two: {apart:.2g} apart; one thread twice: {float(np.abs(one - run(x, 1)).max()):.2g} apart")
print("shapes", one.shape, two.shape)
assert apart > 1e-4, "the number of threads changes rounding only now"
PYTHON
