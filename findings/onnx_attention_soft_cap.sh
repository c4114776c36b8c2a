#!/usr/bin/env bash
# torch.onnx.ops.attention caps scores after the mask in eager mode; the ONNX operator that it exports caps them before.
#
# Guess:   the function is the operator Attention of ONNX in eager mode, so it gives what ONNX Runtime gives for the
#          exported model: scores are capped, then hidden keys are masked and get no weight.
# True:    in eager mode the mask is added first and the sum is capped: a hidden key has the score -softcap and a weight
#          (0.155 with a soft cap of 1). ONNX Runtime gives it 0. A model that is tested in torch sees what it should
#          not, or the export looks wrong although it is right.
# Package: torch 2.13.0 (CPU), onnx 1.23.2, onnxscript 0.7.2, onnxruntime 1.32.0
# Source:  torch/onnx/ops/_impl.py, attention_23; the standard was corrected in onnx pull request 7867
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 onnx==1.23.2 onnxscript==0.7.2 onnxruntime==1.32.0
cd "$folder"
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import onnxruntime
import torch
from torch.onnx import ops


class Capped(torch.nn.Module):
    def forward(self, query, key, value, mask):
        return ops.attention(query, key, value, mask, softcap=1.0)[0]


print(f"torch {torch.__version__}, onnxruntime {onnxruntime.__version__}")
given = (torch.zeros(1, 1, 1, 8), torch.zeros(1, 1, 3, 8), torch.eye(3, 8)[None, None],
         torch.tensor([[[[False, True, True]]]]))
eager = Capped()(*given)[0, 0, 0, :3]
torch.onnx.export(Capped(), given, dynamo=True, opset_version=23, verbose=False).save("capped.onnx")
session = onnxruntime.InferenceSession("capped.onnx")
named = {argument.name: x.numpy() for argument, x in zip(session.get_inputs(), given)}
exported = torch.from_numpy(session.run(None, named)[0])[0, 0, 0, :3]
print("weights of three keys, the first one hidden by a mask, soft cap 1")
print("eager:   ", [round(x, 4) for x in eager.tolist()])
print("exported:", [round(x, 4) for x in exported.tolist()])
assert eager[0] > 0.15, "eager mode hides the key now"
assert exported[0] == 0, "the exported model shows the key now"
PYTHON
