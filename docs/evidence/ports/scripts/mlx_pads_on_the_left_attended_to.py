"""falcon_mamba, mlx-lm 0.32.2: pads on the left: hidden in transformers, attended to here."""

from pathlib import Path

import mlx.core as mx
import numpy as np
import torch
from mlx_lm.models.cache import BatchKVCache, KVCache, make_prompt_cache
from mlx_lm.utils import load_model
from transformers import AutoConfig, AutoModelForCausalLM  # 5.23.0

torch.manual_seed(0)
values = {"intermediate_size": 128, "hidden_size": 64, "num_hidden_layers": 2, "time_step_rank": 4, "bos_token_id": 1}
values |= {"vocab_size": 99, "eos_token_id": 2}
model = AutoModelForCausalLM.from_config(AutoConfig.for_model("falcon_mamba", **values)).float().eval()
for parameter in model.parameters():
    parameter.data += 0.12 * torch.randn(parameter.shape)
tokens = torch.randint(3, model.config.vocab_size, (1, 20))
model.save_pretrained("checkpoint")
port, _ = load_model(Path("checkpoint"))
caches = [BatchKVCache([5]) if isinstance(each, KVCache) else each for each in make_prompt_cache(port)]
for cache in caches:
    cache.left_padding = mx.array([5])
actual = np.array(port(mx.array([[0] * 5 + tokens[0].tolist()]), cache=caches).astype(mx.float32))[0, 5:]
print(abs(actual - model(tokens).logits[0].detach().numpy()).max(-1))  # by token
