"""FSMT: the decoder applies its causal mask only without a cache, so a prefill with a cache is not causal."""

import torch
from transformers import FSMTConfig, FSMTModel

torch.manual_seed(0)
sizes = {"encoder_layers": 2, "decoder_layers": 2, "d_model": 64, "encoder_attention_heads": 4, "decoder_ffn_dim": 128}
config = FSMTConfig(**sizes, decoder_attention_heads=4, src_vocab_size=99, tgt_vocab_size=99, langs=["en", "de"])
model = FSMTModel(config).eval()
source, target = torch.randint(3, 99, (2, 1, 6))
with torch.no_grad():
    whole, cached = (
        model(source, decoder_input_ids=target, use_cache=cache).last_hidden_state[0] for cache in (False, True)
    )
change = (whole - cached).abs().amax(-1) / whole.abs().max()
print("relative difference between one forward pass and its cache:", [round(x, 6) for x in change.tolist()])
