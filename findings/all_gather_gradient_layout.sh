#!/usr/bin/env bash
# The gradient of torch.distributed.nn.functional.all_gather depends on the memory layout of the gradient that it gets.
#
# Guess:   the backward pass of all_gather is the sum over ranks of the gradients of one's own part. How the next
#          operator lays its gradient out in memory cannot matter: a gradient is a matrix of numbers.
# True:    with gloo the gradient is right if the incoming one is row-major, and silently permuted if it is the transpose
#          of a row-major one, as after `keys.t()` of attention scores. `gathered.t() * w` and `gathered * w.t()` are one
#          sum with two different gradients.
# Package: torch 2.13.0 (CPU, gloo)
# Source:  torch/distributed/nn/functional.py, _AllGather.backward: the parts that are sent are made contiguous; the
#          buffers for those that arrive are `torch.empty_like(gradient)`, which keeps the strides, and gloo writes the
#          numbers in the order of memory.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy
cat > "$folder/gather.py" <<'PYTHON'
import os
import sys
import warnings

import torch
import torch.distributed as dist
from torch.distributed.nn.functional import all_gather

warnings.simplefilter("ignore")
rank, folder = int(sys.argv[1]), sys.argv[2]
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
dist.init_process_group("gloo", store=dist.FileStore(f"{folder}/store", 2), rank=rank, world_size=2)
x, w = torch.ones(2, 3, requires_grad=True), torch.arange(6.0).reshape(2, 3)
forms = {"gathered * w": lambda part: part * w, "gathered.t() * w.t()": lambda part: part.t() * w.t().contiguous()}
gradients = {}
for name, form in forms.items():
    x.grad = None
    sum(form(part).sum() for part in all_gather(x)).backward()
    gradients[name] = x.grad.tolist()
if rank == 0:
    print(f"torch {torch.__version__}")
    for name, gradient in gradients.items():
        print(f"sum of {name}: the gradient is {gradient}")
    print("One sum, written in two ways, has two gradients.")
    first, second = gradients.values()
    assert first == (2 * w).tolist(), "the plain gradient is another now"
    assert second != first, "both gradients are equal now"
dist.barrier()
dist.destroy_process_group()
PYTHON
"$folder/venv/bin/python" "$folder/gather.py" 1 "$folder" &
"$folder/venv/bin/python" "$folder/gather.py" 0 "$folder"
wait $!
