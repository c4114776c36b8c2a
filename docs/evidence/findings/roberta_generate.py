"""RoBERTa and models with its embeddings, as decoders: generate counts positions from 0, the model from 2."""

import torch
import transformers

names = "Roberta", "XLMRoberta", "XLMRobertaXL", "Camembert", "Data2VecText", "RobertaPreLayerNorm", "Bert"
sizes = {"hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4, "num_hidden_layers": 2}
for name in names:
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**sizes, vocab_size=50, is_decoder=True, pad_token_id=1)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    for parameter in model.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    ids = torch.tensor([[5, 6, 7, 8]])
    options = {"max_new_tokens": 1, "output_logits": True, "return_dict_in_generate": True, "eos_token_id": None}
    generated = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, **options).logits[0][0]
    with torch.no_grad():
        called = model(ids).logits[0, -1]
    change = float((generated - called).abs().max() / called.abs().max())
    print(f"{name}: relative difference of the first logits of generate and of a call: {change:.2g}")
