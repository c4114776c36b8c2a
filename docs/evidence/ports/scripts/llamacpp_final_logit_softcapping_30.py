"""gemma4_text, llama_cpp_python 0.3.36: final_logit_softcapping: no softcap in transformers, 30 here."""

import convert_hf_to_gguf as converter  # PYTHONPATH=llama.cpp:llama.cpp/gguf-py
import torch
from llama_cpp import Llama
from transformers import AutoConfig, AutoModelForCausalLM  # 5.23.0

torch.manual_seed(0)
values = {"max_position_embeddings": 128, "intermediate_size": 288, "vocab_size_per_layer_input": 99, "hidden_size": 72}
values |= {"per_layer_config": {"5": {"head_dim": 512}}, "num_hidden_layers": 6, "sliding_window": 6, "bos_token_id": 1}
values |= {"layer_types": ["sliding_attention"] * 5 + ["full_attention"], "vocab_size": 99, "eos_token_id": 2}
values |= {"hidden_size_per_layer_input": 8}
model = AutoModelForCausalLM.from_config(AutoConfig.for_model("gemma4_text", **values)).float().eval()
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
