"""llama4_text, xllamacpp 2026.10.11549: attention_chunk_size: 4 in transformers, no window here."""

import convert_hf_to_gguf as convert  # PYTHONPATH=llama.cpp:llama.cpp/gguf-py
import torch
import xllamacpp
from transformers import AutoConfig, AutoModelForCausalLM  # 5.23.0

torch.manual_seed(0)
values = {"no_rope_layers": [1] * 3 + [0], "moe_layers": [0, 1, 2, 3], "max_position_embeddings": 70, "floor_scale": 16}
values |= {"vocab_size": 99, "head_dim": 16, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 8}
values |= {"layer_types": ["chunked_attention"] * 3 + ["full_attention"], "hidden_size": 64, "attention_chunk_size": 4}
values |= {"num_hidden_layers": 4, "num_local_experts": 4, "pad_token_id": 0}
model = AutoModelForCausalLM.from_config(AutoConfig.for_model("llama4_text", **values)).float().eval()
for parameter in model.parameters():
    parameter.data += 0.12 * torch.randn(parameter.shape)
tokens = torch.randint(3, model.config.vocab_size, (1, 18))
model.save_pretrained("checkpoint")
text = [("add_tokenizer_model", "rwkv"), ("add_token_list", [*map(str, range(model.config.vocab_size))])]
convert.get_model_class(type(model).__name__).set_vocab = lambda m: [getattr(m.gguf_writer, k)(v) for k, v in text]
convert.sys.argv[1:] = ["checkpoint", "--outtype", "f32", "--outfile", "port.gguf"]
convert.main()
(p := xllamacpp.CommonParams()).model.path, p.cache_type_k, p.cache_type_v, p.flash_attn_type = "port.gguf", 0, 0, 0
asked = {"prompt": tokens[0].tolist(), "n_predict": 1, "n_probs": model.config.vocab_size}
answer = xllamacpp.Server(p).handle_completions(asked)["choices"][0]["logprobs"]["content"][0]
print([e["logprob"] - model(tokens).logits[0, -1].log_softmax(-1)[e["id"]].item() for e in answer["top_logprobs"]])
