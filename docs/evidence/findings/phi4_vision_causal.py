"""Phi-4 vision encoder: attention is bidirectional with the eager backend and causal with SDPA."""

import torch
from transformers import Phi4MultimodalVisionConfig, Phi4MultimodalVisionModel

sizes = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128}
config = Phi4MultimodalVisionConfig(**sizes, image_size=56, patch_size=14, crop_size=56)
image = torch.rand(1, 3, 56, 56, generator=torch.Generator().manual_seed(1))
other = image.clone()
other[..., 42:, 42:] = 0  # the last patch
for attention in ("eager", "sdpa"):
    torch.manual_seed(0)
    model = Phi4MultimodalVisionModel._from_config(config, attn_implementation=attention).eval()
    with torch.no_grad():
        whole = torch.ones(1, 4, 4, dtype=torch.bool)
        first, second = (model(x, patch_attention_mask=whole).last_hidden_state[0, 0] for x in (image, other))
    print(f"{attention}: the last patch changes the first by", round(float((first - second).abs().max()), 6))
