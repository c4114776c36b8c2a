"""mlx and transformers compute other logits from the same checkpoint and tokens.

pads on the left: hidden in the model, attended to in the port.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import mlx.core as mx
import numpy as np
import torch
from mlx_lm.models.cache import BatchKVCache, KVCache, make_prompt_cache
from mlx_lm.utils import load_model
from transformers import AutoConfig, AutoModelForCausalLM

CONFIGS = {
    "falcon_mamba": {
        "bos_token_id": 1,
        "eos_token_id": 2,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "time_step_rank": 4,
        "vocab_size": 99,
    },
    "mamba": {
        "bos_token_id": 1,
        "eos_token_id": 2,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "time_step_rank": 4,
        "vocab_size": 99,
    },
}


PADS = 5

torch.manual_seed(0)
for name, values in CONFIGS.items():
    config = AutoConfig.for_model(name, **values)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    for parameter in model.parameters():
        parameter.data += 0.12 * torch.randn(parameter.shape)
    tokens = torch.randint(3, config.vocab_size, (1, 20))
    with torch.no_grad(), TemporaryDirectory() as folder:
        expected = model(tokens).logits[0].numpy()
        model.save_pretrained(folder)
        port, _ = load_model(Path(folder))
        caches = make_prompt_cache(port)
        caches = [BatchKVCache([PADS]) if isinstance(cache, KVCache) else cache for cache in caches]
        for cache in caches:
            cache.left_padding = mx.array([PADS])
        row = mx.array([[0] * PADS + tokens[0].tolist()])
        actual = np.array(port(row, cache=caches).astype(mx.float32))[0, PADS:]
    difference = np.abs(actual - expected).max(-1) / np.abs(expected).max()
    first = int((difference > 1e-5).argmax())
    print(f"{name}: differs by up to {difference.max():.2g}, first at token {first}")
