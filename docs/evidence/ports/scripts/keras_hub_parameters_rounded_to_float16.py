"""keras-hub and transformers compute other logits from the same checkpoint and tokens.

parameters: in float32 in the model, rounded to float16 in the port.
"""

from tempfile import TemporaryDirectory

import keras_hub
import numpy as np
import torch
from keras import ops
from transformers import AutoConfig, AutoModelForCausalLM

CONFIGS = {
    "mistral": {
        "head_dim": 16,
        "hidden_size": 64,
        "intermediate_size": 128,
        "max_position_embeddings": 70,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "num_key_value_heads": 2,
        "pad_token_id": 0,
        "sliding_window": 6,
        "vocab_size": 99,
    },
}

torch.manual_seed(0)
for name, values in CONFIGS.items():
    config = AutoConfig.for_model(name, **values)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    for parameter in model.parameters():
        parameter.data += 0.12 * torch.randn(parameter.shape)
    tokens = torch.randint(3, config.vocab_size, (1, 84))
    with torch.no_grad(), TemporaryDirectory() as folder:
        expected = model(tokens).logits[0].numpy()
        model.save_pretrained(folder)
        port = keras_hub.models.CausalLM.from_preset(folder, preprocessor=None, dtype="float32")
        inputs = {"token_ids": tokens.numpy(), "padding_mask": np.ones(tokens.shape)}
        actual = ops.convert_to_numpy(port(inputs))[0]
    difference = np.abs(actual - expected).max(-1) / np.abs(expected).max()
    first = int((difference > 1e-5).argmax())
    print(f"{name}: differs by up to {difference.max():.2g}, first at token {first}")
