"""RoBERTa as a decoder: with a cache, default positions count left padding; without one, they do not."""

import torch
import transformers

sizes = {"hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4, "num_hidden_layers": 2}
for name in ("Roberta", "XLMRoberta", "XLMRobertaXL", "Camembert", "Data2VecText", "RobertaPreLayerNorm"):
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**sizes, vocab_size=50, is_decoder=True, pad_token_id=1)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    for parameter in model.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    ids = torch.tensor([[1, 1, 1, 5, 6, 7, 8, 9]])  # 1 is the pad token
    mask = ids.ne(1).long()
    with torch.no_grad():
        whole = model(ids, attention_mask=mask, use_cache=False).logits[0, -1]
        past = model(ids[:, :7], attention_mask=mask[:, :7], use_cache=True).past_key_values
        last = model(ids[:, 7:], attention_mask=mask, past_key_values=past, use_cache=True).logits[0, -1]
    change = round(float((whole - last).abs().max() / whole.abs().max()), 6)
    print(f"{name}: relative difference between one forward pass and its cache: [{change}]")
