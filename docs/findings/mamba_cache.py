"""Mamba, Falcon Mamba and Zamba: in chunked prefill, the scan of the second chunk ignores the cached state."""

import torch
from transformers import AutoModel, FalconMambaConfig, MambaConfig, ZambaConfig

sizes = {"hidden_size": 64, "num_hidden_layers": 4, "vocab_size": 99, "initializer_range": 0.2}
zamba = {"num_attention_heads": 4, "num_key_value_heads": 4, "layers_block_type": ["mamba", "hybrid"] * 2}
ids = torch.randint(1, 99, (1, 8), generator=torch.Generator().manual_seed(0))
for config in (MambaConfig(**sizes), FalconMambaConfig(**sizes), ZambaConfig(**sizes, **zamba)):
    torch.manual_seed(0)
    model = AutoModel.from_config(config).eval()
    name = "past_key_values" if config.model_type == "zamba" else "cache_params"
    with torch.no_grad():
        whole = model(ids).last_hidden_state[0, 4:]
        past = model(ids[:, :4], use_cache=True)[name]
        chunk = model(ids[:, 4:], use_cache=True, **{name: past}).last_hidden_state[0]
    change = round(float((whole - chunk).abs().max() / whole.abs().max()), 6)
    print(f"{config.model_type}: relative difference between one forward pass and its cache: [{change}]")
