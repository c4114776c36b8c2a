"""CSM: the depth decoder raises an error if the batch size equals the number of tokens."""

import torch
from transformers import CsmDepthDecoderConfig, CsmDepthDecoderModel

sizes = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}
config = CsmDepthDecoderConfig(**sizes, intermediate_size=128, backbone_hidden_size=64, vocab_size=99)
model = CsmDepthDecoderModel(config).eval()
for rows in (3, 4, 5):
    try:
        model(torch.full((rows, 4), 7), backbone_last_hidden_state=torch.ones(rows, 64), use_cache=False)
        print(f"{rows} rows of 4 tokens: done")
    except IndexError as error:
        print(f"{rows} rows of 4 tokens:", error)
