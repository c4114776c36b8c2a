#!/usr/bin/env bash
# reformer-pytorch and routing-transformer, causal=True: a later token decides which earlier tokens meet.
#
# Guess:   both mask later keys, so no output depends on a later token.
# True:    the mask is right, and the choice of the keys leaks. Reformer sorts all tokens by hash and cuts the order into
#          chunks: a later token shifts the cuts. The routing transformer keeps the nearest tokens of each cluster among all
#          tokens: a later token takes an earlier one's place. One changed token moves outputs well before it.
# Package: reformer-pytorch 1.4.4, routing-transformer 1.6.1, torch 2.13.0 (CPU)
# Source:  reformer_pytorch/reformer_pytorch.py: LSHAttention.forward (sort, then chunks);
#          routing_transformer/routing_transformer.py: distribution (topk over the tokens)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy setuptools
"$folder/venv/bin/pip" install --quiet reformer-pytorch==1.4.4 routing-transformer==1.6.1 local-attention==1.11.2
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import torch
from reformer_pytorch import ReformerLM
from routing_transformer import RoutingTransformerLM

print(*(f"{name} {version(name)}" for name in ("reformer-pytorch", "routing-transformer")), f"torch {torch.__version__}", sep=", ")
sizes = {"num_tokens": 50, "max_seq_len": 64, "dim": 32, "depth": 1, "heads": 2, "causal": True}
torch.manual_seed(0)
reformer = ReformerLM(**sizes, bucket_size=8, n_hashes=2).eval()
routing = RoutingTransformerLM(**sizes, window_size=16, n_local_attn_heads=1).eval()
ids, place = torch.randint(0, 50, (1, 64)), 32
changed = ids.clone()
changed[0, place] = (ids[0, place] + 7) % 50


def logits(model: torch.nn.Module, row: torch.Tensor) -> torch.Tensor:
    torch.manual_seed(1)  # Reformer draws its hashes in each call
    with torch.no_grad():
        result = model(row)
    return (result[0] if isinstance(result, tuple) else result)[0, :place]


for model in (reformer, routing):
    assert torch.equal(logits(model, ids), logits(model, ids)), "two equal calls differ"
    moved = (logits(model, changed) - logits(model, ids)).abs().amax(-1)
    tokens = (moved > 1e-3).nonzero().flatten().tolist()
    print(f"{type(model).__name__}: token {place} changed, {len(tokens)} tokens before it move by up to {moved.max():.3f}, first {tokens[:1]}")
    assert tokens, f"{type(model).__name__} is causal now"
PYTHON
