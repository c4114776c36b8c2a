"""Youtu: loading a checkpoint sets the embedding of the pad token to zero, whatever was saved."""

from tempfile import TemporaryDirectory

import torch
from transformers import YoutuConfig, YoutuForCausalLM

ids = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
sizes = {"vocab_size": 50, "hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4}
built = YoutuForCausalLM(YoutuConfig(**sizes, **ids, num_hidden_layers=2, num_key_value_heads=4)).eval()
built.model.embed_tokens.weight.data[0] = 1  # training with tied weights, the default, moves it away from zero
with TemporaryDirectory() as folder, torch.no_grad():
    built.save_pretrained(folder)
    loaded = YoutuForCausalLM.from_pretrained(folder).eval()
    for name, model in {"saved": built, "loaded": loaded}.items():
        logits = model(torch.tensor([[3, 14, 15, 9, 2]])).logits[0, :, 0]
        print(
            f"{name}: embedding {model.model.embed_tokens.weight[0, 0]:.3f}, logits of the pad token {logits.tolist()}"
        )
