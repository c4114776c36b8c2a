"""Quantised cache: `crop` removes tokens and leaves the length, so later positions and masks are wrong."""

import torch
from transformers import LlamaConfig, LlamaModel
from transformers.cache_utils import Cache, DynamicCache, QuantizedLayer

torch.manual_seed(0)
sizes = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128}
model = LlamaModel(LlamaConfig(**sizes, vocab_size=99, initializer_range=0.2)).eval()
keep = {"_quantize": lambda self, tensor, axis: tensor.clone(), "_dequantize": lambda self, tensor: tensor}
exact = type("Exact", (QuantizedLayer,), keep)  # a quantiser that changes nothing
text, rejected, other = torch.randint(99, (1, 6)), torch.randint(99, (1, 1)), torch.randint(99, (1, 1))
with torch.no_grad():
    expected = model(torch.cat([text, other], 1))[0][:, -1]
    for name, cache in (("dynamic", DynamicCache()), ("quantised", Cache(layers=[exact(), exact()]))):
        for tokens in (text, rejected):
            model(tokens, past_key_values=cache)
        cache.crop(-1)
        actual = model(other, past_key_values=cache)[0][:, -1]
        print(name, "length", cache.get_seq_length(), "off by", float((actual - expected).abs().max()))
