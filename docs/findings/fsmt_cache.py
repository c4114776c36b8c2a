"""FSMT's decoder hides later tokens only without a cache: with one, a prefill of several tokens is not causal."""

import torch
from transformers import FSMTConfig, FSMTModel

torch.manual_seed(0)
sizes = {"encoder_layers": 2, "decoder_layers": 2, "d_model": 64, "encoder_attention_heads": 4, "decoder_ffn_dim": 128}
config = FSMTConfig(**sizes, decoder_attention_heads=4, src_vocab_size=99, tgt_vocab_size=99, langs=["en", "de"])
model = FSMTModel(config).eval()
source, target = torch.randint(3, 99, (2, 1, 6))
with torch.no_grad():
    whole, kept = (
        model(source, decoder_input_ids=target, use_cache=cache).last_hidden_state[0] for cache in (False, True)
    )
change = (whole - kept).abs().amax(-1) / whole.abs().max()
print("relative difference between one forward and its cache:", [round(x, 6) for x in change.tolist()])
