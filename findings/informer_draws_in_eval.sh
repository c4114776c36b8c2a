#!/usr/bin/env bash
# Informer in transformers: two equal calls in eval mode give two answers, since it draws the keys that choose its queries.
#
# Guess:   in eval mode, without dropout, the same series gives the same prediction each time.
# True:    ProbSparse attention measures each query on keys that are drawn anew by torch.randint in each call, in eval mode
#          too. Another draw chooses other queries; the rest are given the mean of the values. A forecast changes from call
#          to call, and a compiled, exported or ported model cannot be compared with it.
# Package: transformers 5.23.0, torch 2.13.0 (CPU)
# Source:  transformers/models/informer/modeling_informer.py: InformerProbSparseAttention.forward (index_sample)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet torch==2.13.0 numpy
"$folder/venv/bin/pip" install --quiet transformers==5.23.0
TRANSFORMERS_VERBOSITY=error "$folder/venv/bin/python" -W ignore - <<'PYTHON'
import torch
import transformers
from transformers import InformerConfig, InformerModel

print(f"transformers {transformers.__version__}, torch {torch.__version__}")
torch.manual_seed(0)
past, future = 48, 4
layers = {"encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2}
sizes = {"d_model": 16, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "lags_sequence": [1], "num_time_features": 1}
config = InformerConfig(prediction_length=future, context_length=past, sampling_factor=1, **layers, **sizes)
series = {
    "past_values": torch.randn(2, past + 1),
    "past_time_features": torch.zeros(2, past + 1, 1),
    "past_observed_mask": torch.ones(2, past + 1),
    "future_values": torch.randn(2, future),
    "future_time_features": torch.zeros(2, future, 1),
}
apart = {}
for attention in ("prob", "full"):
    config.attention_type = attention
    torch.manual_seed(0)
    model = InformerModel(config).eval()
    with torch.no_grad():
        answers = [model(**series).last_hidden_state for _ in range(6)]
    apart[attention] = float(max((answer - answers[0]).abs().max() for answer in answers))
    print(f"attention_type={attention!r}: six equal calls in eval mode differ by up to {apart[attention]:.1e}")
assert apart["prob"] > 1e-3, "equal calls agree now"
assert apart["full"] == 0, "full attention differs from call to call now"
PYTHON
