"""Kosmos-2 and Kosmos-2.5: with a cache, default positions count left padding; without one, they do not."""

import torch
import transformers

text = {"vocab_size": 99, "embed_dim": 32, "layers": 2, "ffn_dim": 64, "attention_heads": 4}
vision = {"num_hidden_layers": 1, "hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64}
for name in ("Kosmos2", "Kosmos2_5"):
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(text_config=text, vision_config=vision)
    model = getattr(transformers, f"{name}ForConditionalGeneration")(config).text_model.eval()
    ids = torch.tensor([[1, 1, 1, 5, 6, 7, 8, 9]])  # 1 is the pad token
    mask = ids.ne(1).long()
    with torch.no_grad():
        whole = model(ids, attention_mask=mask, use_cache=False).logits[0, -1]
        past = model(ids[:, :7], attention_mask=mask[:, :7], use_cache=True).past_key_values
        last = model(ids[:, 7:], attention_mask=mask, past_key_values=past, use_cache=True).logits[0, -1]
    change = round(float((whole - last).abs().max() / whole.abs().max()), 6)
    print(f"{config.model_type}: relative difference between one forward pass and its cache: [{change}]")
