"""llama4_text, llama_cpp_python 0.3.36: attention_chunk_size: 4 in transformers, no window here."""

import convert_hf_to_gguf as converter  # PYTHONPATH=llama.cpp:llama.cpp/gguf-py
import torch
from llama_cpp import Llama
from transformers import AutoConfig, AutoModelForCausalLM  # 5.23.0

torch.manual_seed(0)
values = {"no_rope_layers": [1] * 3 + [0], "moe_layers": [0, 1, 2, 3], "max_position_embeddings": 128, "vocab_size": 99}
values |= {"floor_scale": 16, "head_dim": 16, "attention_chunk_size": 4, "num_hidden_layers": 4, "num_local_experts": 4}
values |= {"layer_types": ["chunked_attention"] * 3 + ["full_attention"], "intermediate_size": 128, "hidden_size": 64}
values |= {"num_attention_heads": 4, "num_key_value_heads": 2, "pad_token_id": 0}
model = AutoModelForCausalLM.from_config(AutoConfig.for_model("llama4_text", **values)).float().eval()
for parameter in model.parameters():
    parameter.data += 0.12 * torch.randn(parameter.shape)
tokens = torch.randint(3, model.config.vocab_size, (1, 142))
model.save_pretrained("checkpoint")
kind, words = converter.get_model_class(type(model).__name__), model.config.vocab_size
kind.set_vocab = lambda self: (self._set_vocab_none(), self.gguf_writer.add_vocab_size(words))
converter.sys.argv[1:] = ["checkpoint", "--outtype", "f32", "--outfile", "port.gguf"]
converter.main()
port = Llama("port.gguf", n_ctx=2048, n_batch=2048, logits_all=True, type_k=0, type_v=0, verbose=False)
port.eval(tokens[0].tolist())
print(abs(port.scores[: tokens.shape[1]] - model(tokens).logits[0].detach().numpy()).max(-1))  # by token
