"""T5 with FlexAttention raises an error for a batch size above 1: it indexes its position bias by batch."""

import torch
from transformers import T5Config, T5EncoderModel

config = T5Config(num_layers=2, d_model=64, d_kv=16, num_heads=4, d_ff=128, vocab_size=99)
for attention in ("eager", "flex_attention"):
    model = T5EncoderModel._from_config(config, attn_implementation=attention).eval()
    for rows in (1, 2):
        try:
            with torch.no_grad(), torch.compiler.set_stance("force_eager"):
                model(torch.full((rows, 4), 7))
            print(f"{attention}, batch of {rows}: done")
        except Exception as error:  # noqa: BLE001
            print(f"{attention}, batch of {rows}:", str(error).splitlines()[0])
