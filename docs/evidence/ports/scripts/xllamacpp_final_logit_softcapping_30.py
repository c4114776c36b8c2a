"""gemma4_text, xllamacpp 2026.10.11549: final_logit_softcapping: no softcap in transformers, 30 here."""

import convert_hf_to_gguf as convert  # PYTHONPATH=llama.cpp:llama.cpp/gguf-py
import torch
import xllamacpp
from transformers import AutoConfig, AutoModelForCausalLM  # 5.23.0

torch.manual_seed(0)
values = {"per_layer_config": {"5": {"head_dim": 32}}, "max_position_embeddings": 70, "hidden_size": 72, "head_dim": 16}
values |= {"vocab_size_per_layer_input": 99, "vocab_size": 99, "hidden_size_per_layer_input": 8, "num_hidden_layers": 6}
values |= {"intermediate_size": 288, "sliding_window": 6, "bos_token_id": 1, "eos_token_id": 2}
model = AutoModelForCausalLM.from_config(AutoConfig.for_model("gemma4_text", **values)).float().eval()
for parameter in model.parameters():
    parameter.data += 0.12 * torch.randn(parameter.shape)
tokens = torch.randint(3, model.config.vocab_size, (1, 20))
model.save_pretrained("checkpoint")
convert.Path("checkpoint/tokenizer.json").write_text(f'{{"model": {{"vocab": {[0] * 999}}}, "added_tokens": []}}')
text = [("add_tokenizer_model", "rwkv"), ("add_token_list", [*map(str, range(model.config.vocab_size))])]
convert.get_model_class(type(model).__name__).set_vocab = lambda m: [getattr(m.gguf_writer, k)(v) for k, v in text]
convert.sys.argv[1:] = ["checkpoint", "--outtype", "f32", "--outfile", "port.gguf"]
convert.main()
(p := xllamacpp.CommonParams()).model.path, p.cache_type_k, p.cache_type_v, p.flash_attn_type = "port.gguf", 0, 0, 0
asked = {"prompt": tokens[0].tolist(), "n_predict": 1, "n_probs": model.config.vocab_size}
answer = xllamacpp.Server(p).handle_completions(asked)["choices"][0]["logprobs"]["content"][0]
print([e["logprob"] - model(tokens).logits[0, -1].log_softmax(-1)[e["id"]].item() for e in answer["top_logprobs"]])
